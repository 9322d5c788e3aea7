/**
 * The program beside a collector: several processes, a collector that fails, and a stop.
 *
 * @module-tag long
 */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer, Schedule } from "effect"
import { OtlpCollector, type Span } from "../../support/OtlpCollector.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import * as Process from "../../support/Process.ts"
import { startUsed } from "../../support/usedFolder.ts"

const started = Effect.fnUntraced(function* (environment: Process.Environment) {
  const { url } = yield* OtlpCollector
  const program = yield* startUsed({
    LOG_FORMAT: "json",
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_EXPORTER_OTLP_TIMEOUT: "500",
    OTEL_BSP_SCHEDULE_DELAY: "100",
    OTEL_BLRP_SCHEDULE_DELAY: "100",
    OTEL_METRIC_EXPORT_INTERVAL: "300",
    ...environment
  })
  const address = yield* program.address
  // On a connection of its own, which may come to any of the processes.
  const ask = Effect.scoped(
    Effect.flatMap(Client.make(address), (client) => Client.patient(client).ask("/charges/search", { limit: 1 }))
  )
  // On a busy machine, a connection to the database may take too long.
  const isAnswered = Effect.map(
    Effect.repeat(ask, { until: ({ status }) => status === 200, schedule: Schedule.spaced("100 millis"), times: 20 }),
    ({ status }) => assert.strictEqual(status, 200)
  )
  return { ...program, isAnswered }
})

/** How long a stop takes. */
const stopOf = Effect.fnUntraced(function* ({ ended, kill }: Process.Process) {
  const [took, end] = yield* Effect.timed(Effect.andThen(kill("SIGTERM"), ended))
  assert.deepStrictEqual(end, { code: 0, signal: null })
  return Duration.toMillis(took)
})

const lines = (output: string) => output.split("\n").filter((line) => line.includes("OpenTelemetry collector"))

describe("A collector", () => {
  it.live("hears of each process by itself, up to the last moment", () =>
    Effect.gen(function* () {
      const { spans, metrics, lines: logged, faults } = yield* OtlpCollector
      const { url } = yield* TestDatabase
      const program = yield* started({ DATABASE_URL: url, PROCESSES: "2" })
      const processes = Effect.map(
        spans,
        (all) => new Map(all.map(({ resource }) => [resource["service.instance.id"], resource["process.pid"]]))
      )
      yield* eventually(
        "two processes",
        Effect.andThen(
          program.isAnswered,
          Effect.map(processes, ({ size }) => size === 2)
        )
      )
      assert.strictEqual(new Set((yield* processes).values()).size, 2)
      const before = (yield* spans).length
      yield* program.isAnswered
      assert.isBelow(yield* stopOf(program), 5000)
      assert.isAbove((yield* spans).length, before)
      // What is below the span of a request is in its trace: the read, and the statement.
      const all = yield* spans
      const childrenOf = ({ spanId }: Span) => all.filter(({ parentSpanId }) => parentSpanId === spanId)
      const searches = all.filter(({ name }) => name === "POST /api/v3/charges/search").flatMap(childrenOf)
      assert.include(
        searches.map(({ name }) => name),
        "Records.search"
      )
      assert.isTrue(searches.flatMap(childrenOf).some(({ attributes }) => "db.query.text" in attributes))
      assert.isAbove((yield* metrics).get("practice_data_http_requests_total") ?? 0, 0)
      assert.isTrue((yield* logged).some(({ text }) => text?.startsWith("Listening on") === true))
      assert.deepStrictEqual(yield* faults, [])
    }).pipe(Effect.provide(Layer.merge(OtlpCollector.layer, Layer.fresh(TestDatabase.layerDemo))))
  )

  it.live("that never responds keeps nobody waiting, and is told of once", () =>
    Effect.gen(function* () {
      const { answer, requests } = yield* OtlpCollector
      yield* answer(() => undefined)
      const program = yield* started({})
      yield* eventually(
        "the line",
        Effect.andThen(
          program.isAnswered,
          Effect.sync(() => lines(program.output()).length > 0)
        )
      )
      // Each signal fails once by now, and is off for a minute.
      yield* Effect.sleep("1500 millis")
      const before = yield* requests
      const [took] = yield* Effect.timed(Effect.repeat(program.isAnswered, { times: 20 }))
      assert.isBelow(Duration.toMillis(took), 5000)
      assert.strictEqual(yield* requests, before)
      assert.isBelow(yield* stopOf(program), 4000)
      assert.strictEqual(lines(program.output()).length, 1, program.output())
    }).pipe(Effect.provide(OtlpCollector.layer))
  )
})
