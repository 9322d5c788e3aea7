/** The standard variables of OpenTelemetry that the operators' guide lists. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import * as Failure from "../../../src/process/Failure.ts"
import { settingsOf } from "../../integration/observability/traced.ts"

const secret = "s3cret"

const anEndpoint = "an http or https URL without a password, such as http://127.0.0.1:4318"
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
  [
    "OTEL_RESOURCE_ATTRIBUTES",
    "region",
    'attributes such as deployment.environment.name=production,region=eu, percent-encoded, got "region"'
  ]
]

describe("the variables of OpenTelemetry", () => {
  it.effect.each(wrong)("abort startup with %s=%s", ([variable, value, expected]) =>
    Effect.gen(function* () {
      const said = Failure.explain(yield* Effect.flip(settingsOf({ [variable]: value })))
      assert.strictEqual(said, `The configuration is wrong. ${variable}: expected ${expected}`)
    })
  )

  it.effect.each<Readonly<Record<string, string>>>([
    { OTEL_TRACES_EXPORTER: "otlp" },
    { OTEL_SDK_DISABLED: "true", OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" }
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
        OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318",
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
