/** A stop with a collector that hangs, redirects, and the units of metrics. */
import { assert, it, test } from "@effect/vitest"
import { Effect, Exit, Layer, References, Scope } from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import { unitOf } from "../../../src/observability/Metrics.ts"
import * as Otlp from "../../../src/observability/Otlp.ts"
import * as Tracing from "../../../src/observability/Tracing.ts"
import { withRegistry } from "../../support/metrics.ts"
import { settingsOf } from "../../integration/observability/traced.ts"

it.effect("A stop waits for two seconds for the collector, for all signals together", () =>
  Effect.gen(function* () {
    const sent: Array<string> = []
    const units: Array<string | undefined> = []
    const hanging = HttpClient.make(({ body, url }) => {
      sent.push(new URL(url).pathname)
      if (body._tag === "Uint8Array") units.push(...(/"unit":"\w+"/.exec(Buffer.from(body.body).toString()) ?? []))
      return Effect.never
    })
    const settings = yield* settingsOf({
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json"
    })
    const exporting = Layer.provide(Otlp.layerNoDeps(settings), Layer.succeed(HttpClient.HttpClient, hanging))
    const scope = yield* Scope.make()
    const context = yield* Layer.buildWithScope(exporting, scope)
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

it.effect("An export follows no redirect, which would take its headers to another host", () =>
  Effect.gen(function* () {
    const redirects: Array<string | undefined> = []
    const fetch: typeof globalThis.fetch = (_, init) => {
      redirects.push(init?.redirect)
      return Promise.resolve(new Response("{}"))
    }
    const settings = yield* settingsOf({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" })
    yield* Effect.scoped(Layer.build(Otlp.layer(settings))).pipe(Effect.provideService(FetchHttpClient.Fetch, fetch))
    assert.deepStrictEqual(redirects, ["manual"])
  }).pipe(withRegistry)
)

test("A metric has the unit of its name", () => {
  const units = ["request_duration_seconds", "response_bytes_total", "requests_total"].map(unitOf)
  assert.deepStrictEqual(units, ["s", "By", "1"])
})
