/**
 * A collector that fails, hangs or redirects: nothing waits for it, nothing piles up, and the log has two lines. The units of metrics, and
 * the standard variables of OpenTelemetry that the operators' guide lists.
 */
import { inspect } from "node:util"
import { assert, describe, it, test } from "@effect/vitest"
import { Array, Clock, Effect, Exit, Fiber, Layer, Logger, Option, Redacted, References, Scope } from "effect"
import { FetchHttpClient, HttpClient, HttpClientError, HttpClientRequest, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { unitOf } from "../../../src/observability/Metrics.ts"
import * as Otlp from "../../../src/observability/Otlp.ts"
import * as Tracing from "../../../src/observability/Tracing.ts"
import * as Failure from "../../../src/process/Failure.ts"
import { samples, withRegistry } from "../../support/metrics.ts"
import { settingsOf } from "../../integration/observability/traced.ts"

const target = "http://collector/v1/traces?token=secret-parameter"
const request = HttpClientRequest.post(target, { headers: { "x-api-key": "secret-header" } })

type Answer = Effect.Effect<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError>

const status = (code: number, headers = {}): Answer =>
  Effect.sync(() =>
    HttpClientResponse.fromWeb(request, new Response("the collector's own words", { status: code, headers }))
  )

const cause = Object.assign(new Error("secret"), { code: "ECONNRESET" })
const resets: Answer = Effect.fail(
  new HttpClientError.HttpClientError({ reason: new HttpClientError.TransportError({ request, cause }) })
)

/** Exports within five seconds to a collector that answers so, one after the other, the last again and again. */
const exporting = Effect.fnUntraced(function* (...answers: Array.NonEmptyReadonlyArray<Answer>) {
  const lines: Array<string> = []
  let tries = 0
  const collector = HttpClient.make(() => answers[Math.min(tries++, answers.length - 1)] ?? answers[0])
  const { execute } = yield* Otlp.makeClient("traces", { url: Redacted.make(new URL(target)), timeout: 5000 }).pipe(
    Effect.provideService(HttpClient.HttpClient, collector)
  )
  const send = execute(request).pipe(
    Effect.provide(Logger.layer([Logger.map(Logger.formatJson, (line) => void lines.push(line))]))
  )
  const name = 'practice_data_telemetry_export_failures_total{signal="traces"}'
  const failures = Effect.map(samples, (found) => found[name])
  return { failures, lines, send, tries: () => tries }
})

it.effect.each<readonly [name: string, answer: Answer, reason: string]>([
  ["is elsewhere", status(307, { location: "/elsewhere" }), "status 307"],
  ["fails", status(503), "status 503"],
  ["has no time for an hour", status(429, { "retry-after": "3600" }), "status 429"],
  ["hangs", Effect.never, "No response in time"],
  ["resets the connection", resets, "ECONNRESET"]
])("an export to a collector that %s fails in time, and says nothing of its secrets", ([, answer, reason]) =>
  Effect.gen(function* () {
    const { failures, lines, send } = yield* exporting(answer)
    const fiber = yield* Effect.forkChild(Effect.flip(send))
    yield* TestClock.adjust(5000)
    assert.isDefined(fiber.pollUnsafe())
    const error = yield* Fiber.join(fiber)
    assert.deepStrictEqual([yield* failures, lines.length], [1, 1])
    assert.include(lines[0], reason)
    for (const text of [inspect(error, { depth: 10 }), String(error.stack), ...lines]) {
      assert.notMatch(text, /secret|own words/)
    }
  }).pipe(withRegistry)
)

it.effect.each([503, 500])("an export that is answered %d is tried again only if the protocol allows it", (code) =>
  Effect.gen(function* () {
    const { lines, send, tries } = yield* exporting(status(code), status(200))
    const fiber = yield* Effect.forkChild(Effect.exit(send))
    yield* TestClock.adjust(1000)
    yield* Fiber.join(fiber)
    assert.deepStrictEqual([tries(), lines.length], code === 503 ? [2, 0] : [1, 1])
  }).pipe(withRegistry)
)

it.effect("an export to a collector whose response never ends is done when the status is there", () =>
  Effect.gen(function* () {
    let pulls = 0
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
      pulls += 1
      controller.enqueue(new Uint8Array(65_536))
    }
    const endless = Effect.sync(() => HttpClientResponse.fromWeb(request, new Response(new ReadableStream({ pull }))))
    yield* (yield* exporting(endless)).send
    assert.isBelow(pulls, 10)
  }).pipe(withRegistry)
)

it.effect("four exports are under way at once; one more fails at once", () =>
  Effect.gen(function* () {
    const { send, tries } = yield* exporting(Effect.never)
    const waiting = yield* Effect.forEach(Array.range(1, 4), () => Effect.forkChild(send, { startImmediately: true }))
    yield* Effect.flip(send)
    assert.strictEqual(tries(), 4)
    yield* Fiber.interruptAll(waiting)
  }).pipe(withRegistry)
)

it.effect("a collector that fails has a line in the log, and one when all is well again", () =>
  Effect.gen(function* () {
    const { failures, lines, send } = yield* exporting(status(400), status(400), status(400), status(200))
    yield* Effect.repeat(Effect.flip(send), { times: 2 })
    yield* Effect.repeat(send, { times: 2 })
    assert.deepStrictEqual([yield* failures, lines.length], [3, 2])
    assert.match(lines[0] ?? "", /collector is failing.*status 400/)
    assert.match(lines[1] ?? "", /responds again/)
  }).pipe(withRegistry)
)

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" }

it.effect("A stop waits for two seconds for the collector, for all signals together", () =>
  Effect.gen(function* () {
    const sent: Array<string> = []
    const units: Array<string | undefined> = []
    const hanging = HttpClient.make(({ body, url }) => {
      sent.push(new URL(url).pathname)
      if (body._tag === "Uint8Array") units.push(...(/"unit":"\w+"/.exec(Buffer.from(body.body).toString()) ?? []))
      return Effect.never
    })
    const settings = yield* settingsOf({ ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" })
    const layerExports = Layer.provide(Otlp.layerNoDeps(settings), Layer.succeed(HttpClient.HttpClient, hanging))
    const scope = yield* Scope.make()
    const context = yield* Layer.buildWithScope(layerExports, scope)
    yield* Effect.log("a line").pipe(
      Tracing.root({ name: "a trace", kind: "internal" }),
      Effect.provideContext(context),
      Effect.provideService(References.TracerEnabled, false)
    )
    const stop = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
    yield* TestClock.adjust("1999 millis")
    assert.sameMembers(sent, ["/v1/traces", "/v1/metrics", "/v1/logs"])
    assert.deepStrictEqual(units, ['"unit":"1"'])
    const early = stop.pollUnsafe()
    yield* TestClock.adjust("1 millis")
    const inTime = stop.pollUnsafe()
    // A stop that takes longer ends as well, so that this test fails and does not hang.
    yield* TestClock.adjust("1 minute")
    assert.isUndefined(early)
    assert.isDefined(inTime)
  })
)

it.effect("Exports pause for a minute after a failure, though the clock is set back, and have its times", () =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const hour = 3_600_000_000_000n
    let ahead = hour
    const nanos = () => clock.currentTimeNanosUnsafe() + ahead
    const settable: Clock.Clock = Object.assign(Object.create(clock), {
      currentTimeMillisUnsafe: () => Number(nanos() / 1_000_000n),
      currentTimeNanosUnsafe: nanos,
      currentTimeNanos: Effect.sync(nanos)
    })
    const sent: Array<string | undefined> = []
    const refusing = HttpClient.make(({ body }) => {
      if (body._tag === "Uint8Array") sent.push(/"timeUnixNano":"(\d+)"/.exec(Buffer.from(body.body).toString())?.[1])
      return status(400)
    })
    const settings = yield* settingsOf({ ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" })
    yield* Layer.build(Layer.provide(Otlp.layerNoDeps(settings), Layer.succeed(HttpClient.HttpClient, refusing))).pipe(
      Effect.provideService(Clock.Clock, settable)
    )
    yield* TestClock.adjust("1 minute")
    ahead = 0n
    yield* TestClock.adjust("90 seconds")
    assert.deepStrictEqual(sent, [String(hour + 60_000_000_000n), "120000000000"])
  }).pipe(withRegistry)
)

it.effect("An export follows no redirect, which would take its headers to another host", () =>
  Effect.gen(function* () {
    const redirects: Array<string | undefined> = []
    const fetch: typeof globalThis.fetch = (_, init) => {
      redirects.push(init?.redirect)
      return Promise.resolve(new Response("{}"))
    }
    const settings = yield* settingsOf(endpoint)
    yield* Effect.scoped(Layer.build(Otlp.layer(settings))).pipe(Effect.provideService(FetchHttpClient.Fetch, fetch))
    assert.deepStrictEqual(redirects, ["manual"])
  }).pipe(withRegistry)
)

test("A metric has the unit of its name", () => {
  const units = ["request_duration_seconds", "response_bytes_total", "requests_total"].map(unitOf)
  assert.deepStrictEqual(units, ["s", "By", "1"])
})

const secret = "s3cret"

const anEndpoint = "an http or https URL without a password, such as http://127.0.0.1:4318"
const someAttributes = "attributes such as deployment.environment.name=production,region=eu, percent-encoded"
const someHeaders = "headers such as x-api-key=secret,x-tenant=1, percent-encoded"

/** Invalid values of a variable, each with what is expected. */
const wrong: ReadonlyArray<readonly [variable: string, value: string, expected: string]> = [
  ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", 'http/protobuf or http/json, such as http/protobuf, got "grpc"'],
  ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "localhost:4318", anEndpoint],
  ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", `http://user:${secret}@host`, anEndpoint],
  ["OTEL_EXPORTER_OTLP_HEADERS", secret, someHeaders],
  ["OTEL_EXPORTER_OTLP_HEADERS", `a b=${secret}`, someHeaders],
  ["OTEL_EXPORTER_OTLP_HEADERS", `a=${secret}%0d%0ab: c`, someHeaders],
  ["OTEL_TRACES_SAMPLER_ARG", "1.1", 'a number from 0 to 1, such as 0.01, got "1.1"'],
  ["OTEL_RESOURCE_ATTRIBUTES", "region", `${someAttributes}, got "region"`]
]

describe("the variables of OpenTelemetry", () => {
  it.effect.each(wrong)("abort startup with %s=%s", ([variable, value, expected]) =>
    Effect.gen(function* () {
      const said = Failure.explain(yield* Effect.flip(settingsOf({ [variable]: value })))
      assert.strictEqual(said, `Invalid configuration. ${variable}: expected ${expected}`)
    })
  )

  it.effect.each<Readonly<Record<string, string>>>([
    { OTEL_TRACES_EXPORTER: "otlp" },
    { OTEL_SDK_DISABLED: "true", ...endpoint }
  ])("export nothing with %j", (env) =>
    Effect.gen(function* () {
      const { logs, metrics, traces } = yield* settingsOf(env)
      assert.isTrue([traces, metrics, logs].every(Option.isNone))
    })
  )

  it.effect("export all three with one, each below it, as protobuf and within ten seconds", () =>
    Effect.gen(function* () {
      const settings = yield* settingsOf({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318/base/" })
      for (const signal of ["traces", "metrics", "logs"] as const) {
        const { compression, headers, protocol, timeout, url } = Option.getOrThrow(settings[signal])
        assert.strictEqual(Redacted.value(url).href, `http://collector:4318/base/v1/${signal}`)
        assert.deepStrictEqual(Redacted.value(headers), {})
        assert.deepStrictEqual([compression, protocol, timeout], ["none", "http/protobuf", 10_000])
      }
      const { ratio, sampler, temporality } = settings
      assert.deepStrictEqual([sampler, ratio, temporality], ["parentbased_always_on", 1, "cumulative"])
    })
  )

  it.effect("of one signal come before those of all", () =>
    Effect.gen(function* () {
      const settings = yield* settingsOf({
        ...endpoint,
        OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20all, x-tenant = 1",
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://traces.example.com/otlp?token=1",
        OTEL_EXPORTER_OTLP_TRACES_HEADERS: "authorization=Basic%20dHJhY2Vz",
        OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: "500",
        OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/json",
        OTEL_METRICS_EXPORTER: "none"
      })
      const traces = Option.getOrThrow(settings.traces)
      assert.strictEqual(Redacted.value(traces.url).href, "https://traces.example.com/otlp?token=1")
      assert.deepStrictEqual(Redacted.value(traces.headers), { authorization: "Basic dHJhY2Vz" })
      assert.deepStrictEqual([traces.protocol, traces.timeout], ["http/json", 500])
      assert.isTrue(Option.isNone(settings.metrics))
      const logs = Option.getOrThrow(settings.logs)
      assert.deepStrictEqual(Redacted.value(logs.headers), { authorization: "Bearer all", "x-tenant": "1" })
    })
  )
})
