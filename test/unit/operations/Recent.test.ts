/** The counts of recent requests, by minute. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import * as Recent from "../../../src/operations/Recent.ts"

const observed = (some: Partial<Recent.Observed> = {}): Recent.Observed => ({
  endpoint: "/api/v3/charges/search",
  status: 200,
  duration: 1,
  ...some
})

it.effect("Requests and errors but those of probes are counted by minute, for an hour", () =>
  Effect.gen(function* () {
    const { lastHour, observe } = yield* Recent.Recent.make
    for (const status of [200, 422, 499, 503]) observe(observed({ status }))
    observe(observed({ endpoint: "/api/v1/health/ready", status: 503 }))
    const [first] = yield* lastHour
    assert.deepInclude(first, { start: 0, requests: 4, clientErrors: 2, serverErrors: 1 })
    for (let minute = 1; minute <= 90; minute++) {
      yield* TestClock.adjust("1 minute")
      observe(observed())
    }
    const slots = yield* lastHour
    assert.deepStrictEqual([slots.length, slots[0]?.start], [Recent.slots, 31 * Recent.step])
    assert.strictEqual(Recent.total(slots).requests, Recent.slots)
    yield* TestClock.adjust("2 hours")
    assert.deepStrictEqual(yield* lastHour, [])
  })
)

it.effect("Quantiles are read off the buckets, without reads of changes, which may wait", () =>
  Effect.gen(function* () {
    const { lastHour, observe } = yield* Recent.Recent.make
    const quantile = (share: number) => Effect.map(lastHour, (slots) => Recent.quantile(Recent.total(slots), share))
    observe(observed({ endpoint: "/api/v3/changes", duration: 20_000 }))
    assert.isUndefined(yield* quantile(0.5))
    for (let index = 0; index < 90; index++) observe(observed())
    assert.strictEqual(yield* quantile(1), 1)
    for (let index = 0; index < 10; index++) observe(observed({ duration: 150 }))
    assert.isAtMost((yield* quantile(0.5)) ?? 0, 1)
    assert.strictEqual(yield* quantile(0.95), 150)
    observe(observed({ duration: 60_000 }))
    assert.strictEqual(yield* quantile(1), Infinity)
  })
)
