/** The exports to a collector, and one that hangs or redirects: nothing waits for it. */
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Layer, Option, Redacted, References, Scope } from "effect"
import { FetchHttpClient, HttpClient, type HttpClientRequest, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import * as Otlp from "../../../src/observability/Otlp.ts"
import * as Tracing from "../../../src/observability/Tracing.ts"
import { withRegistry } from "../../support/metrics.ts"

const settings: Otlp.OtlpSettings = {
  otlpEndpoint: Option.some(new URL("http://collector:4318/base")),
  otlpHeaders: Redacted.make({ "x-api-key": "secret" }),
  otlpServiceName: "practice-data",
  traceRatio: 1
}

const oneOfEach = Effect.log("a line").pipe(
  Tracing.root({ name: "a trace", kind: "internal" }),
  Effect.provideService(References.TracerEnabled, false)
)

/** Exports to a collector that never answers, and the paths of the requests. */
const hanging = () => {
  const sent: Array<string> = []
  const client = HttpClient.make(({ url }) => {
    sent.push(new URL(url).pathname)
    return Effect.never
  })
  return { sent, layer: Layer.provide(Otlp.layerNoDeps(settings), Layer.succeed(HttpClient.HttpClient, client)) }
}

it.effect("A stop waits for two seconds for the collector, for all signals together", () =>
  Effect.gen(function* () {
    const { layer, sent } = hanging()
    const scope = yield* Scope.make()
    yield* Effect.provideContext(oneOfEach, yield* Layer.buildWithScope(layer, scope))
    const stop = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
    yield* TestClock.adjust("1999 millis")
    assert.sameMembers(sent, ["/base/v1/traces", "/base/v1/metrics", "/base/v1/logs"])
    const early = stop.pollUnsafe()
    yield* TestClock.adjust("1 millis")
    const inTime = stop.pollUnsafe()
    // A stop that takes longer ends as well, so that this test fails and does not hang.
    yield* TestClock.adjust("1 minute")
    assert.isUndefined(early)
    assert.isDefined(inTime)
  })
)

it.effect("An export follows no redirect, which would take its headers to another host", () =>
  Effect.gen(function* () {
    const redirects: Array<string | undefined> = []
    const fetch: typeof globalThis.fetch = (_, init) => {
      redirects.push(init?.redirect)
      return Promise.resolve(new Response("{}"))
    }
    yield* Effect.scoped(Layer.build(Otlp.layer(settings))).pipe(Effect.provideService(FetchHttpClient.Fetch, fetch))
    assert.deepStrictEqual(redirects, ["manual"])
  }).pipe(withRegistry)
)

it.effect("An export has its headers, and log lines with their trace and without secrets", () =>
  Effect.gen(function* () {
    const sent: Array<HttpClientRequest.HttpClientRequest> = []
    const client = HttpClient.make((request) => {
      sent.push(request)
      return Effect.succeed(HttpClientResponse.fromWeb(request, new Response("{}")))
    })
    const exporting = Layer.provide(Otlp.layerNoDeps(settings), Layer.succeed(HttpClient.HttpClient, client))
    yield* Effect.log("authorization: Bearer abc").pipe(
      Tracing.root({ name: "a trace", kind: "internal" }),
      Effect.provideService(References.TracerEnabled, false),
      Effect.provide(exporting)
    )
    const textOf = (path: string) => {
      const body = sent.find(({ url }) => url.endsWith(path))?.body
      return body?._tag === "Uint8Array" ? Buffer.from(body.body).toString() : ""
    }
    const [, traceId = "none"] = /"traceId":"(\w+)"/.exec(textOf("traces")) ?? []
    for (const text of [traceId, "authorization: Bearer …", "practice-data"]) assert.include(textOf("logs"), text)
    assert.isTrue(sent.every(({ headers }) => headers["x-api-key"] === "secret"))
  }).pipe(withRegistry)
)
