/** The exports to a collector, and one that hangs or redirects: nothing waits for it. */
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Layer, Option, Redacted, References, Scope } from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
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

const oneOfEach = Effect.log("authorization: Bearer abc").pipe(
  Tracing.root({ name: "a trace", kind: "internal" }),
  Effect.provideService(References.TracerEnabled, false)
)

it.effect("A stop waits for two seconds for the collector, for all signals together", () =>
  Effect.gen(function* () {
    const sent: Array<string> = []
    const client = HttpClient.make(({ url }) => {
      sent.push(new URL(url).pathname)
      return Effect.never
    })
    const layer = Layer.provide(Otlp.layerNoDeps(settings), Layer.succeed(HttpClient.HttpClient, client))
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

it.effect("An export has its headers, no secret, and the trace of its lines, and follows no redirect", () =>
  Effect.gen(function* () {
    const sent: Array<{ readonly request: Request; readonly text: string }> = []
    const fetch: typeof globalThis.fetch = (input, init) => {
      const request = new Request(input, init)
      return request.text().then((text) => {
        sent.push({ request, text })
        return new Response("{}")
      })
    }
    yield* oneOfEach.pipe(Effect.provide(Otlp.layer(settings)), Effect.provideService(FetchHttpClient.Fetch, fetch))
    const textOf = (path: string) => sent.find(({ request }) => request.url.endsWith(path))?.text ?? ""
    const [, traceId = "none"] = /"traceId":"(\w+)"/.exec(textOf("traces")) ?? []
    for (const text of [traceId, "authorization: Bearer …", "practice-data"]) assert.include(textOf("logs"), text)
    for (const { request } of sent)
      assert.deepStrictEqual([request.headers.get("x-api-key"), request.redirect], ["secret", "manual"])
  }).pipe(withRegistry)
)
