/** What the standard variables of OpenTelemetry say. src/operations/README.md: "Traces". */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Option, Redacted } from "effect"
import * as Failure from "../../../src/process/Failure.ts"
import { settingsOf } from "../../integration/observability/traced.ts"

const secret = "s3cret"

const wrong: ReadonlyArray<readonly [variable: string, value: string, expected: string]> = [
  ...["grpc", "http", "HTTP/JSON"].map(
    (value) =>
      [
        "OTEL_EXPORTER_OTLP_PROTOCOL",
        value,
        `http/protobuf or http/json, such as http/protobuf: gRPC is not supported, got "${value}"`
      ] as const
  ),
  ...["localhost:4318", "ftp://host", "grpc://host", `http://user:${secret}@host`, " "].map(
    (value) =>
      [
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        value,
        "an http or https URL without a password, such as http://127.0.0.1:4318"
      ] as const
  ),
  ...[secret, `=${secret}`, `a b=${secret}`, `a=${secret}%zz`, `a=${secret}%0d%0ab: c`].map(
    (value) =>
      ["OTEL_EXPORTER_OTLP_HEADERS", value, "headers such as x-api-key=secret,x-tenant=1, percent-encoded"] as const
  ),
  ["OTEL_TRACES_EXPORTER", "console", 'otlp or none, such as none, got "console"'],
  ["OTEL_EXPORTER_OTLP_LOGS_COMPRESSION", "zstd", 'gzip or none, such as gzip, got "zstd"'],
  ["OTEL_EXPORTER_OTLP_TIMEOUT", "10s", 'an integer from 1 to 3600000, such as 10000, got "10s"'],
  [
    "OTEL_TRACES_SAMPLER",
    "sometimes",
    'always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off or parentbased_traceidratio, such as parentbased_traceidratio, got "sometimes"'
  ],
  ...["1%", "-0.1", "1.1", "NaN", " 0.5"].map(
    (value) => ["OTEL_TRACES_SAMPLER_ARG", value, `a number from 0 to 1, such as 0.01, got "${value}"`] as const
  ),
  [
    "OTEL_RESOURCE_ATTRIBUTES",
    "region",
    'attributes such as deployment.environment.name=production,region=eu, percent-encoded, got "region"'
  ]
]

describe("the variables of OpenTelemetry", () => {
  it.effect.each(wrong)("stop the start with %s=%s", ([variable, value, expected]) =>
    Effect.gen(function* () {
      assert.strictEqual(
        Failure.explain(yield* Effect.flip(settingsOf({ [variable]: value }))),
        `The configuration is wrong. ${variable}: expected ${expected}`
      )
    })
  )

  it.effect("export nothing without an endpoint", () =>
    Effect.gen(function* () {
      const { logs, metrics, traces } = yield* settingsOf({ OTEL_TRACES_EXPORTER: "otlp" })
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
        assert.deepStrictEqual([compression, protocol, Duration.toSeconds(timeout)], ["none", "http/protobuf", 10])
      }
      assert.deepStrictEqual([settings.sampler, settings.ratio], ["parentbased_always_on", 1])
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
      assert.deepStrictEqual([traces.protocol, Duration.toMillis(traces.timeout)], ["http/json", 500])
      assert.isTrue(Option.isNone(settings.metrics))
      const logs = Option.getOrThrow(settings.logs)
      assert.deepStrictEqual(Redacted.value(logs.headers), { authorization: "Bearer all", "x-tenant": "1" })
    })
  )

  it.effect("export nothing where OTEL_SDK_DISABLED says so", () =>
    Effect.gen(function* () {
      const settings = yield* settingsOf({
        OTEL_SDK_DISABLED: "true",
        OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318"
      })
      assert.isTrue(Option.isNone(settings.traces))
    })
  )
})
