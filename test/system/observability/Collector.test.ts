/**
 * The program beside a collector: several processes, and a stop; and its log.
 *
 * @module-tag long
 */
import { assert, describe, it } from "@effect/vitest"
import { Array, Effect, Layer, Schema } from "effect"
import { OtlpCollector } from "../../integration/observability/OtlpCollector.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import { inTime } from "../../support/inTime.ts"
import type * as Process from "../../support/Process.ts"
import * as Program from "../../support/Program.ts"
import * as Raw from "../../support/Raw.ts"

const started = Effect.fnUntraced(function* (environment: Process.Environment) {
  const { url: collector } = yield* OtlpCollector
  const { url } = yield* TestDatabase
  const program = yield* Program.start({
    DATABASE_URL: url,
    LOG_FORMAT: "json",
    OTEL_EXPORTER_OTLP_ENDPOINT: collector,
    OTEL_BSP_SCHEDULE_DELAY: "100",
    OTEL_BLRP_SCHEDULE_DELAY: "100",
    OTEL_METRIC_EXPORT_INTERVAL: "300",
    ...environment
  })
  // On a connection of its own, which may come to any of the processes.
  const isAnswered = Effect.flatMap(Client.make(program.url), (client) =>
    eventually("an answer", client.ask("/charges/search", { limit: 1 }), ({ status }) => status === 200)
  ).pipe(Effect.scoped)
  return { ...program, isAnswered }
})

const services = Layer.fresh(Layer.merge(OtlpCollector.layer, TestDatabase.layerDemo))

describe.concurrent("A collector", () => {
  it.live("hears of each process by itself, up to the last moment", () =>
    Effect.gen(function* () {
      const { spans, metrics, lines: logged, faults } = yield* OtlpCollector
      const program = yield* started({ PROCESSES: "2" })
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
      const { end, seconds } = yield* Program.stop(program)
      assert.deepStrictEqual(end, Program.inOrder)
      assert.isBelow(seconds, inTime(4))
      assert.isAbove((yield* spans).length, before)
      const exported = yield* metrics
      assert.isAbove(exported.get("practice_data_http_requests_total")?.total ?? 0, 0)
      const measured = ["http_request_duration_seconds", "http_response_bytes_total", "http_requests_total"]
      assert.deepStrictEqual(
        measured.map((name) => exported.get(`practice_data_${name}`)?.unit),
        ["s", "By", "1"]
      )
      assert.isTrue((yield* logged).some(({ text }) => text.startsWith("Listening on")))
      assert.deepStrictEqual(yield* faults, [])
    }).pipe(Effect.provide(services))
  )
})

const decode = Schema.decodeEffect(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))

const linesOf = (output: string) => Effect.forEach(output.split("\n").slice(0, -1), (line) => decode(line))

const logging = Effect.flatMap(TestDatabase, ({ url }) =>
  Program.start({ DATABASE_URL: url, LOG_FORMAT: "json", BODY_TIMEOUT: "1s" })
)

const requestId = (id: string) => ({ ...Client.headersOf("oakridge"), "x-request-id": id })

describe.concurrent("The log of the program", () => {
  it.live("is whole lines of JSON, one of each request under its id, also after a stop", () =>
    Effect.gen(function* () {
      const program = yield* logging
      const { client, stdout, url } = program
      const late = Raw.unfinished.replace("\r\n\r\n", "\r\nX-Request-Id: late\r\n\r\n")
      assert.deepStrictEqual(Raw.statusesOf(yield* Raw.exchange(url, late)), [408])
      const search = (id: string) =>
        client.call({ path: "/api/v3/charges/search", headers: requestId(id), body: '{"limit":1}' })
      const ids = Array.makeBy(200, (index) => `mine-${index}`)
      yield* Effect.forEach(ids, search, { concurrency: 8 })
      yield* Program.stop(program)

      const lines = yield* linesOf(stdout())
      assert.match(String(lines[0]?.["message"]), /^Listening on http/)
      const logged = lines.filter(({ message }) => message === "Request").map((line) => String(line["request_id"]))
      assert.sameMembers(
        logged.filter((id) => id.startsWith("mine-")),
        ids
      )
      assert.deepStrictEqual(
        lines.filter((line) => line["request_id"] === "late").map((line) => [line["status"], line["refusal"]]),
        [[408, "timeout"]]
      )
    }).pipe(Effect.provide(Layer.fresh(TestDatabase.layerDemo)))
  )
})
