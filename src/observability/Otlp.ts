/** Exports traces, metrics and logs to a collector, with the exporters of effect. */
import { randomUUID } from "node:crypto"
import { hostname } from "node:os"
import { Duration, Effect, Layer, Option, Predicate, Redacted, Tracer } from "effect"
import { HttpClient } from "effect/http"
import {
  OtlpExporter,
  OtlpLogger,
  OtlpMetrics,
  type OtlpResource,
  OtlpSerialization,
  OtlpTracer
} from "effect/observability"
import { SpanPropagationEnabled } from "effect/sql/Statement"
import * as NoRedirects from "../process/HttpClient.ts"
import { version } from "../process/Package.ts"
import { safe } from "./Logging.ts"
import { unitOf } from "./Metrics.ts"
import * as OtlpClient from "./OtlpClient.ts"
import type { OtlpSettings, Signal } from "./OtlpConfig.ts"
import * as Tracing from "./Tracing.ts"

/** A value of a log line whose texts are bounded and without secrets. */
const bounded = (value: OtlpResource.AnyValue): OtlpResource.AnyValue => {
  if (Predicate.isString(value.stringValue)) return { stringValue: safe(value.stringValue, Tracing.longest) }
  return value.arrayValue === undefined ? value : { arrayValue: { values: value.arrayValue.values.map(bounded) } }
}

/** Statuses of spans in the protocol. */
const [unset, ok] = [0, 1] as const

const serialization = Effect.map(OtlpSerialization.OtlpSerialization, ({ logs, metrics, traces }) => ({
  // Effect marks every span that did not fail as ok, which the conventions leave to people.
  traces: ({ resourceSpans }: Parameters<typeof traces>[0]) =>
    traces({
      resourceSpans: resourceSpans.map(({ scopeSpans, ...source }) => ({
        ...source,
        scopeSpans: scopeSpans.map(({ spans, ...scope }) => ({
          ...scope,
          spans: spans.map((span) => (span.status.code === ok ? { ...span, status: { code: unset } } : span))
        }))
      }))
    }),
  metrics: (data: Parameters<typeof metrics>[0]) => {
    for (const { metrics: all } of data.resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics)) {
      for (const metric of all) metric.unit = unitOf(metric.name)
    }
    return metrics(data)
  },
  logs: (data: Parameters<typeof logs>[0]) => {
    for (const { logRecords = [] } of data.resourceLogs.flatMap(({ scopeLogs }) => scopeLogs)) {
      for (const line of logRecords) {
        line.body = bounded(line.body ?? {})
        for (const attribute of line.attributes) attribute.value = bounded(attribute.value)
      }
    }
    return logs(data)
  }
}))

/** The most that a stop waits for the last exports, all of them together. */
const shutdownTimeout = Duration.seconds(2)

/** The spans or log lines of an export. */
const maxBatchSize = 512

/** The resource of all exports. An operator's variables come first. */
const resourceOf = ({ attributes, serviceName }: OtlpSettings, isOneOfSeveral: boolean) => {
  const { "service.instance.id": instance = randomUUID() } = attributes
  return {
    attributes: {
      "service.name": "practice-data",
      "service.version": version,
      "host.name": hostname(),
      "process.pid": process.pid,
      ...attributes,
      ...(Option.isSome(serviceName) && { "service.name": serviceName.value }),
      // Several processes are several instances, whatever they are called together.
      "service.instance.id": isOneOfSeveral ? `${instance}-${process.pid}` : instance
    }
  }
}

/** Effect's tracer, with our sampling, and without the messages of errors. */
const layerTracer = (options: Parameters<typeof OtlpTracer.make>[0], { ratio, sampler }: OtlpSettings) =>
  Layer.unwrap(
    Effect.map(OtlpTracer.make(options), (found) => {
      const tracer = Tracing.describing(found)
      return Layer.mergeAll(
        Layer.succeed(Tracing.Traces, { tracer, sampler: Tracing.makeSampler(sampler, ratio) }),
        Layer.succeed(Tracer.Tracer, tracer),
        // A statement says how long it waited for its connection to open.
        Layer.succeed(SpanPropagationEnabled, true)
      )
    })
  ).pipe(Layer.provide(OtlpExporter.layerFlusher))

/** Exports by an HTTP client until the scope closes. Several processes of a host share its variables. */
export const layerNoDeps = (settings: OtlpSettings, { isOneOfSeveral = false } = {}) => {
  const resource = resourceOf(settings, isOneOfSeveral)
  const { logDelay, metricInterval, spanDelay, temporality } = settings

  const exporting = <A>(
    signal: Signal,
    make: (
      options: Parameters<typeof OtlpTracer.make>[0]
    ) => Layer.Layer<A, never, HttpClient.HttpClient | OtlpSerialization.OtlpSerialization>
  ) =>
    Option.match(settings[signal], {
      onNone: () => Layer.empty,
      onSome: ({ compression, headers, protocol, timeout, url }) =>
        make({
          url: Redacted.value(url).href,
          headers: Redacted.value(headers),
          compression,
          resource,
          shutdownTimeout
        }).pipe(
          Layer.provide(Layer.effect(HttpClient.HttpClient, OtlpClient.make(signal, { timeout, url }))),
          Layer.provide(Layer.effect(OtlpSerialization.OtlpSerialization, serialization)),
          Layer.provide(protocol === "http/json" ? OtlpSerialization.layerJson : OtlpSerialization.layerProtobuf)
        )
    })

  // Closed at once: a stop waits for all of them together.
  return Layer.mergeAll(
    exporting("logs", (options) => OtlpLogger.layer({ ...options, exportInterval: logDelay, maxBatchSize })),
    exporting("metrics", (options) => OtlpMetrics.layer({ ...options, exportInterval: metricInterval, temporality })),
    exporting("traces", (options) => layerTracer({ ...options, exportInterval: spanDelay, maxBatchSize }, settings))
  )
}

export const layer = (...options: Parameters<typeof layerNoDeps>) =>
  Layer.provide(layerNoDeps(...options), NoRedirects.layer)
