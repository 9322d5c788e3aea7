/** What becomes of exports to a collector that fails: nothing waits for it, nothing piles up, and the log has two lines. */
import { inspect } from "node:util"
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Logger, Redacted } from "effect"
import { HttpClientRequest } from "effect/http"
import * as OtlpClient from "../../../src/observability/OtlpClient.ts"
import * as HttpClient from "../../../src/process/HttpClient.ts"
import { type Behaviour, OtlpCollector, takes } from "./OtlpCollector.ts"
import { eventually } from "../../support/eventually.ts"
import { samples, withRegistry } from "../../support/metrics.ts"

const live = { excludeTestServices: true, timeout: "1 minute" } as const

const status =
  (code: number, headers: Readonly<Record<string, string>> = {}): Behaviour =>
  (response) =>
    response.writeHead(code, headers).end("the collector's own words")

const hangs: Behaviour = () => undefined
const resets: Behaviour = (response) => void response.socket?.resetAndDestroy()
const neverEnds: Behaviour = (response) => {
  response.writeHead(200)
  const write = () => {
    while (!response.destroyed && response.write(Buffer.alloc(65_536)));
  }
  response.on("drain", write)
  write()
}

/** A client with a collector that behaves so, and what it says. */
const clientOf = Effect.fnUntraced(function* (behaviour: Behaviour, timeout = 400) {
  const collector = yield* OtlpCollector
  yield* collector.answer(behaviour)
  const url = `${collector.url}/v1/traces?token=secret-parameter`
  const lines: Array<string> = []
  const client = yield* OtlpClient.make("traces", { url: Redacted.make(new URL(url)), timeout })
  const send = client
    .execute(HttpClientRequest.post(url, { headers: { "x-api-key": "secret-header" } }))
    .pipe(Effect.provide(Logger.layer([Logger.map(Logger.formatJson, (line) => void lines.push(line))])))
  const failures = Effect.map(
    samples,
    (found) => found['practice_data_telemetry_export_failures_total{signal="traces"}']
  )
  return { collector, failures, lines, send }
})

layer(Layer.merge(OtlpCollector.layer, HttpClient.layer), live)("an export", (it) => {
  it.effect.each<readonly [name: string, behaviour: Behaviour, reason: string]>([
    ["is elsewhere", status(307, { location: "/elsewhere" }), "status 307"],
    ["fails", status(503), "status 503"],
    ["has no time for an hour", status(429, { "retry-after": "3600" }), "status 429"],
    ["hangs", hangs, "No response in time"],
    ["resets the connection", resets, "ECONNRESET"]
  ])("to a collector that %s fails in time, and says nothing of its secrets", ([, behaviour, reason]) =>
    Effect.gen(function* () {
      const { failures, lines, send } = yield* clientOf(behaviour)
      const [took, error] = yield* Effect.timed(Effect.flip(send))
      assert.isBelow(Duration.toMillis(took), 1500)
      assert.strictEqual(yield* failures, 1)
      assert.strictEqual(lines.length, 1)
      assert.include(lines[0], reason)
      for (const text of [inspect(error, { depth: 10 }), String(error.stack), ...lines]) {
        assert.notMatch(text, /secret|own words/)
      }
    }).pipe(withRegistry)
  )

  it.effect.each([503, 500])("that is answered %d is tried again only if the protocol allows it", (code) =>
    Effect.gen(function* () {
      let tries = 0
      const { lines, send } = yield* clientOf((response) => (tries++ === 0 ? status(code) : takes)(response), 5000)
      yield* Effect.exit(send)
      assert.deepStrictEqual([tries, lines.length], code === 503 ? [2, 0] : [1, 1])
    }).pipe(withRegistry)
  )

  it.effect("to a collector whose response never ends is done when the status is there", () =>
    Effect.gen(function* () {
      const { send } = yield* clientOf(neverEnds, 5000)
      const [took] = yield* Effect.timed(send)
      assert.isBelow(Duration.toMillis(took), 2000)
    }).pipe(withRegistry)
  )

  it.effect("is one of four at once; one more fails at once", () =>
    Effect.gen(function* () {
      const { collector, send } = yield* clientOf(hangs, 10_000)
      const before = yield* collector.requests
      const waiting = yield* Effect.forEach([1, 2, 3, 4], () => Effect.forkChild(send))
      yield* eventually("all of them", collector.requests, (now) => now === before + 4)
      const [took] = yield* Effect.timed(Effect.flip(send))
      assert.isBelow(Duration.toMillis(took), 500)
      yield* Effect.forEach(waiting, Fiber.interrupt)
      yield* collector.answer(takes)
    }).pipe(withRegistry)
  )

  it.effect("that fails has a line in the log, and one when all is well again", () =>
    Effect.gen(function* () {
      const { collector, failures, lines, send } = yield* clientOf(status(400), 5000)
      yield* Effect.repeat(Effect.flip(send), { times: 2 })
      yield* collector.answer((response) => status(200)(response))
      yield* Effect.repeat(send, { times: 2 })
      assert.strictEqual(yield* failures, 3)
      assert.strictEqual(lines.length, 2)
      assert.match(lines[0] ?? "", /collector fails.*status 400/)
      assert.match(lines[1] ?? "", /responds again/)
    }).pipe(withRegistry)
  )
})
