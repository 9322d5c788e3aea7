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
import type { Export, OtlpSettings, Signal } from "./OtlpConfig.ts"
import * as Series from "./Series.ts"
import * as Tracing from "./Tracing.ts"

/** A value of a log line whose texts are bounded and without secrets. */
const bounded = (value: OtlpResource.AnyValue): OtlpResource.AnyValue => {
  if (Predicate.isString(value.stringValue)) return { stringValue: safe(value.stringValue, Tracing.longest) }
  return value.arrayValue === undefined ? value : { arrayValue: { values: value.arrayValue.values.map(bounded) } }
}

/** Statuses of spans in the protocol. */
const [unset, ok] = [0, 1] as const

const serialization = (protocol: Export["protocol"]) =>
  Layer.effect(
    OtlpSerialization.OtlpSerialization,
    Effect.map(OtlpSerialization.OtlpSerialization, ({ logs, metrics, traces }) => ({
      // Effect marks every span that did not fail as ok, which is for people to say.
      traces: ({ resourceSpans }) =>
        traces({
          resourceSpans: resourceSpans.map(({ scopeSpans, ...source }) => ({
            ...source,
            scopeSpans: scopeSpans.map(({ spans, ...scope }) => ({
              ...scope,
              spans: spans.map((span) => (span.status.code === ok ? { ...span, status: { code: unset } } : span))
            }))
          }))
        }),
      metrics: ({ resourceMetrics }) =>
        metrics({
          resourceMetrics: resourceMetrics.map(({ scopeMetrics, ...source }) => ({
            ...source,
            scopeMetrics: scopeMetrics.map(({ metrics: all, ...scope }) => ({
              ...scope,
              metrics: all.map((metric) => ({ ...metric, unit: unitOf(metric.name) }))
            }))
          }))
        }),
      logs: ({ resourceLogs }) =>
        logs({
          resourceLogs: resourceLogs.map(({ scopeLogs, ...source }) => ({
            ...source,
            scopeLogs: scopeLogs.map(({ logRecords = [], ...scope }) => ({
              ...scope,
              logRecords: logRecords.map(({ attributes, body = {}, ...line }) => ({
                ...line,
                body: bounded(body),
                attributes: attributes.map(({ key, value }) => ({ key, value: bounded(value) }))
              }))
            }))
          }))
        })
    }))
  ).pipe(Layer.provide(protocol === "http/json" ? OtlpSerialization.layerJson : OtlpSerialization.layerProtobuf))

/** The most that a stop waits for the last exports, all of them together. */
const shutdownTimeout = Duration.seconds(2)

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

/** Exports until the scope closes. Several processes of a host share its variables. */
export const layer = (settings: OtlpSettings, { isOneOfSeveral = false } = {}) =>
  Layer.unwrap(
    Effect.map(Series.current, ({ counter }) => {
      const health = OtlpClient.makeHealth()
      const resource = resourceOf(settings, isOneOfSeveral)
      const { logBatch, logDelay, logQueue, metricInterval, spanBatch, spanDelay, spanQueue, temporality } = settings

      const exporting = <A>(
        signal: Signal,
        most: number,
        make: (
          options: Parameters<typeof OtlpLogger.layer>[0]
        ) => Layer.Layer<A, never, HttpClient.HttpClient | OtlpSerialization.OtlpSerialization>
      ) =>
        Option.match(settings[signal], {
          onNone: () => Layer.empty,
          onSome: ({ compression, headers, protocol, timeout, url }) => {
            const { add: tryFailed } = counter("practice_data_telemetry_export_failures_total", { signal })
            const atOnce = Math.max(1, Math.floor(most))
            const client = OtlpClient.make({ signal, url, timeout, atOnce, health, tryFailed })
            const options = { headers: Redacted.value(headers), compression, resource, shutdownTimeout }
            return make({ ...options, url: Redacted.value(url).href }).pipe(
              Layer.provide([serialization(protocol), Layer.effect(HttpClient.HttpClient, client)])
            )
          }
        })

      // Closed at once: a stop waits for all of them together.
      return Layer.mergeAll(
        exporting("logs", logQueue / logBatch, (options) =>
          OtlpLogger.layer({ ...options, exportInterval: logDelay, maxBatchSize: logBatch })
        ),
        exporting("metrics", 1, (options) =>
          OtlpMetrics.layer({ ...options, exportInterval: metricInterval, temporality })
        ),
        exporting("traces", spanQueue / spanBatch, (options) =>
          layerTracer({ ...options, exportInterval: spanDelay, maxBatchSize: spanBatch }, settings)
        )
      )
    })
  ).pipe(Layer.provide(NoRedirects.layer))
