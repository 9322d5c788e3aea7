/** What becomes of exports to a collector that fails: nothing waits for it, nothing piles up, and the log has two lines. */
import { inspect } from "node:util"
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Logger, Redacted, Scope, Exit } from "effect"
import { HttpClientRequest } from "effect/http"
import * as OtlpClient from "../../../src/observability/OtlpClient.ts"
import type { Signal } from "../../../src/observability/OtlpConfig.ts"
import * as HttpClient from "../../../src/process/HttpClient.ts"
import * as Tracing from "../../../src/observability/Tracing.ts"
import { type Behaviour, OtlpCollector, takes } from "./OtlpCollector.ts"
import { eventually } from "../../support/eventually.ts"
import { long } from "../../support/tries.ts"
import { exporting } from "./traced.ts"

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
const clientOf = Effect.fnUntraced(function* (behaviour: Behaviour, timeout = 200) {
  const collector = yield* OtlpCollector
  yield* collector.answer(behaviour)
  const failed: Array<Signal> = []
  const health = OtlpClient.makeHealth()
  const make = (signal: Signal) =>
    OtlpClient.make({
      signal,
      url: Redacted.make(new URL(`${collector.url}/v1/${signal}?token=secret-parameter`)),
      timeout,
      atOnce: 2,
      health,
      tryFailed: () => failed.push(signal)
    })
  const lines: Array<string> = []
  const logging = Logger.layer([Logger.map(Logger.formatJson, (line) => void lines.push(line))])
  const send = (signal: Signal) =>
    Effect.flatMap(make(signal), (client) =>
      client.execute(
        HttpClientRequest.post(`${collector.url}/v1/${signal}?token=secret-parameter`, {
          headers: { "x-api-key": "secret-header" }
        })
      )
    ).pipe(Effect.provide(logging))
  return { collector, failed, lines, make, send }
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
      const { collector, failed, lines, send } = yield* clientOf(behaviour)
      const before = yield* collector.requests
      const [took, error] = yield* Effect.timed(Effect.flip(send("traces")))
      assert.isBelow(Duration.toMillis(took), 1500)
      assert.strictEqual((yield* collector.requests) - before, 1)
      assert.deepStrictEqual(failed, ["traces"])
      assert.strictEqual(lines.length, 1)
      assert.include(lines[0], reason)
      for (const text of [inspect(error, { depth: 10 }), String(error.stack), ...lines]) {
        assert.notMatch(text, /secret|own words/)
      }
    })
  )

  it.effect.each([503, 500])("that is answered %d is tried again only if the protocol allows it", (code) =>
    Effect.gen(function* () {
      let tries = 0
      const { lines, send } = yield* clientOf((response) => (tries++ === 0 ? status(code) : takes)(response), 5000)
      yield* Effect.exit(send("logs"))
      assert.deepStrictEqual([tries, lines.length], code === 503 ? [2, 0] : [1, 1])
    })
  )

  it.effect("to a collector whose response never ends is done when the status is there", () =>
    Effect.gen(function* () {
      const { failed, send } = yield* clientOf(neverEnds, 5000)
      const [took] = yield* Effect.timed(send("traces"))
      assert.isBelow(Duration.toMillis(took), 2000)
      assert.deepStrictEqual(failed, [])
    })
  )

  it.effect("is one of a few at once; one more fails at once", () =>
    Effect.gen(function* () {
      const { collector, make } = yield* clientOf(hangs, 10_000)
      const client = yield* make("traces")
      const send = client.execute(HttpClientRequest.post(collector.url))
      const before = yield* collector.requests
      const waiting = yield* Effect.forEach([1, 2], () => Effect.forkChild(send))
      yield* eventually("both", collector.requests, (now) => now === before + 2)
      const [took] = yield* Effect.timed(Effect.flip(send))
      assert.isBelow(Duration.toMillis(took), 500)
      yield* Effect.forEach(waiting, Fiber.interrupt)
      yield* collector.answer(takes)
    })
  )

  it.effect("that fails has a line in the log for all signals, and one when all is well again", () =>
    Effect.gen(function* () {
      const { collector, failed, lines, send } = yield* clientOf(status(400), 5000)
      for (const signal of ["traces", "metrics", "logs", "traces"] as const) yield* Effect.flip(send(signal))
      assert.strictEqual(lines.length, 1)
      assert.deepStrictEqual([...new Set(failed)], ["traces", "metrics", "logs"])
      yield* collector.answer((response) => status(200)(response))
      for (const signal of ["metrics", "traces", "logs", "traces"] as const) yield* send(signal)
      assert.strictEqual(lines.length, 2)
      assert.match(lines[0] ?? "", /collector fails.*status 400/)
      assert.match(lines[1] ?? "", /responds again/)
    })
  )
})

layer(OtlpCollector.layer, live)("a stop", (it) => {
  it.effect(
    "waits for a collector that hangs for two seconds, for all signals together",
    () =>
      Effect.gen(function* () {
        const { answer } = yield* OtlpCollector
        const scope = yield* Scope.make()
        const traces = yield* Layer.buildWithScope(exporting({ OTEL_BSP_SCHEDULE_DELAY: "60000" }), scope)
        yield* answer(hangs)
        yield* Effect.log("a line").pipe(Tracing.root({ name: "a trace", kind: "internal" }), Effect.provide(traces))
        const [took] = yield* Effect.timed(Scope.close(scope, Exit.void))
        assert.isAbove(Duration.toMillis(took), 1500)
        assert.isBelow(Duration.toMillis(took), 3000)
      }),
    long
  )
})
