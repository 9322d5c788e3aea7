/** Series in the registry that /metrics and OTLP read. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Scope, Exit } from "effect"
import { metrics } from "../../../src/observability/Metrics.ts"
import * as Series from "../../../src/observability/Series.ts"
import { samples, withRegistry } from "../../support/metrics.ts"

const waits = { pool: "records" } as const

describe("a series", () => {
  it.effect("of a counter is there, at 0, from when it is asked for, and is the same one each time", () =>
    Effect.gen(function* () {
      const { counter } = yield* Series.current
      const labels = { pool: "records", outcome: "success" } as const
      counter("practice_data_statements_total", labels)
      const name = 'practice_data_statements_total{pool="records",outcome="success"}'
      assert.deepStrictEqual(yield* samples, { [name]: 0 })
      counter("practice_data_statements_total", { outcome: "success", pool: "records" }).add()
      counter("practice_data_statements_total", labels).add(2)
      assert.deepStrictEqual(yield* samples, { [name]: 3 })
    }).pipe(withRegistry)
  )

  it.effect("of a histogram counts each value in the buckets that it is not above", () =>
    Effect.gen(function* () {
      const { histogram } = yield* Series.current
      const { observe } = histogram("practice_data_pool_wait_seconds", waits)
      for (const value of [0, 0.001, 0.0011, 0.3, 7]) observe(value)
      const found = yield* samples
      const name = "practice_data_pool_wait_seconds"
      const upTo = (le: number | string) => found[`${name}_bucket{pool="records",le="${le}"}`]
      assert.deepStrictEqual([...metrics[name].buckets, "+Inf"].map(upTo), [2, 3, 3, 3, 3, 3, 3, 4, 4, 5])
      assert.strictEqual(found[`${name}_count{pool="records"}`], 5)
      assert.closeTo(found[`${name}_sum{pool="records"}`] ?? 0, 7.3021, 1e-9)
    }).pipe(withRegistry)
  )

  it.effect("of a gauge is there while its value is known", () =>
    Effect.gen(function* () {
      const { gauge } = yield* Series.current
      const lag = gauge("practice_data_changes_lag_seconds")
      assert.deepStrictEqual(yield* samples, {})
      lag.set(3)
      assert.deepStrictEqual(yield* samples, { practice_data_changes_lag_seconds: 3 })
      let now = 4
      lag.set(() => now)
      now = 5
      assert.deepStrictEqual(yield* samples, { practice_data_changes_lag_seconds: 5 })
      lag.set(undefined)
      assert.deepStrictEqual(yield* samples, {})
    }).pipe(withRegistry)
  )

  it.effect(
    "that is read when the metrics are is there until its scope closes, unless another one took its place",
    () =>
      Effect.gen(function* () {
        const { read } = yield* Series.current
        const [first, second] = [yield* Scope.make(), yield* Scope.make()]
        yield* Scope.provide(
          read("practice_data_http_connections", () => 1),
          first
        )
        yield* Scope.provide(
          read("practice_data_http_connections", () => 2),
          second
        )
        yield* Scope.close(first, Exit.void)
        assert.deepStrictEqual(yield* samples, { practice_data_http_connections: 2 })
        yield* Scope.close(second, Exit.void)
        assert.deepStrictEqual(yield* samples, {})
      }).pipe(withRegistry)
  )
})

describe("the list of metrics", () => {
  const all = Object.entries(metrics)

  it("has names that Prometheus takes, with a unit or `_total` at the end of what needs it", () => {
    for (const [name, { kind }] of all) {
      assert.match(name, /^[a-z][a-z0-9_]*$/)
      assert.strictEqual(name.endsWith("_total"), kind === "counter", name)
      if (kind === "histogram") assert.match(name, /_seconds$/)
    }
  })
})
