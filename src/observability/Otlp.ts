/** Exports traces, metrics and logs to a collector, with the exporters of effect. */
import { randomUUID } from "node:crypto"
import { hostname } from "node:os"
import { Duration, Effect, Exit, Layer, Logger, Option, Redacted, Scope, Tracer } from "effect"
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
import * as OtlpClient from "./OtlpClient.ts"
import { type Export, type OtlpSettings, type Signal, signals } from "./OtlpConfig.ts"
import * as Series from "./Series.ts"
import * as Tracing from "./Tracing.ts"

/** The most characters of an exported text. */
const longest = 4096

const bound = (value: OtlpResource.AnyValue): void => {
  if (typeof value.stringValue === "string") value.stringValue = safe(value.stringValue, longest)
  value.arrayValue?.values.forEach(bound)
  value.kvlistValue?.values.forEach((pair) => bound(pair.value))
}

const boundAll = (attributes: ReadonlyArray<OtlpResource.KeyValue>) => {
  for (const { key, value } of attributes) {
    // A statement without the indentation of our source.
    if (key === "db.query.text") value.stringValue = value.stringValue?.replace(/\s+/g, " ").trim() ?? null
    bound(value)
  }
}

// Effect's exporter marks every span that did not fail as ok, which is for people to say.
const [unset, ok] = [0, 1] as const

/** A serialization whose texts are bounded and without secrets. */
const serialization = (protocol: Export["protocol"]) =>
  Layer.effect(
    OtlpSerialization.OtlpSerialization,
    Effect.map(OtlpSerialization.OtlpSerialization, ({ logs, metrics, traces }) => ({
      metrics,
      traces: ({ resourceSpans }) => {
        for (const span of resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))) {
          boundAll(span.attributes)
          for (const { attributes } of span.events) boundAll(attributes)
          if (span.status.code === ok) Object.assign(span, { status: { code: unset } })
        }
        return traces({ resourceSpans })
      },
      logs: (data) => {
        for (const { scopeLogs } of data.resourceLogs) {
          for (const line of scopeLogs.flatMap(({ logRecords = [] }) => logRecords)) {
            if (line.body !== undefined) bound(line.body)
            boundAll(line.attributes)
          }
        }
        return logs(data)
      }
    }))
  ).pipe(Layer.provide(protocol === "http/json" ? OtlpSerialization.layerJson : OtlpSerialization.layerProtobuf))

/** The most that a stop waits for the last exports, all of them together. */
const shutdownTimeout = Duration.seconds(2)

export interface Options {
  /** True for one of several processes of a host, which share its variables. */
  readonly isOneOfSeveral?: boolean
}

/** The resource of all exports. An operator's variables come first. */
const resourceOf = ({ attributes, serviceName }: OtlpSettings, isOneOfSeveral: boolean) => {
  const { "service.instance.id": instance, "service.name": name, "service.version": release, ...others } = attributes
  return {
    serviceName: Option.getOrElse(serviceName, () => name ?? "practice-data"),
    serviceVersion: release ?? version,
    attributes: {
      "host.name": hostname(),
      "process.pid": process.pid,
      ...others,
      // Several processes are several instances, whatever they are called together.
      "service.instance.id":
        instance === undefined ? randomUUID() : `${instance}${isOneOfSeveral ? `-${process.pid}` : ""}`
    }
  }
}

/** Exports until the scope closes. */
export const layer = (settings: OtlpSettings, { isOneOfSeveral = false }: Options = {}) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { counter } = yield* Series.current
      const exported = signals.filter((signal) => Option.isSome(settings[signal]))
      const failures = new Map(
        exported.map((signal) => [signal, counter("practice_data_telemetry_export_failures_total", { signal })])
      )
      const health = OtlpClient.makeHealth((signal) => failures.get(signal)?.add())
      const resource = resourceOf(settings, isOneOfSeveral)
      const flusher = yield* Layer.build(OtlpExporter.layerFlusher)
      // So that a stop waits for all signals at once.
      const together = yield* Effect.acquireRelease(Scope.make("parallel"), (scope) => Scope.close(scope, Exit.void))

      type Needed = HttpClient.HttpClient | OtlpExporter.Flusher | OtlpSerialization.OtlpSerialization | Scope.Scope
      const exporting = Effect.fnUntraced(function* <A>(
        signal: Signal,
        atOnce: number,
        make: (options: {
          readonly url: string
          readonly headers: Readonly<Record<string, string>>
          readonly compression: "gzip" | "none"
          readonly resource: typeof resource
          readonly shutdownTimeout: Duration.Duration
        }) => Effect.Effect<A, never, Needed>
      ) {
        const found = settings[signal]
        if (Option.isNone(found)) return Option.none<A>()
        const { compression, headers, protocol, timeout, url } = found.value
        const client = yield* OtlpClient.make({ signal, url, timeout, atOnce: Math.max(1, Math.floor(atOnce)), health })
        const { href } = Redacted.value(url)
        const exporter = make({ url: href, headers: Redacted.value(headers), compression, resource, shutdownTimeout })
        return Option.some(
          yield* exporter.pipe(
            Effect.provideContext(yield* Layer.build(serialization(protocol))),
            Effect.provideService(HttpClient.HttpClient, client),
            Effect.provideContext(flusher),
            Scope.provide(yield* Scope.fork(together))
          )
        )
      })

      const { logBatch, logDelay, logQueue, metricInterval, ratio, sampler, spanBatch, spanDelay, spanQueue } = settings
      const logger = yield* exporting("logs", logQueue / logBatch, (options) =>
        OtlpLogger.make({ ...options, exportInterval: logDelay, maxBatchSize: logBatch })
      )
      yield* exporting("metrics", 1, (options) =>
        OtlpMetrics.make({ ...options, exportInterval: metricInterval, temporality: settings.temporality })
      )
      const tracer = yield* exporting("traces", spanQueue / spanBatch, (options) =>
        OtlpTracer.make({ ...options, exportInterval: spanDelay, maxBatchSize: spanBatch })
      )
      const tracing = (found: Tracer.Tracer) => {
        const described = Tracing.describing(found)
        return Layer.mergeAll(
          Layer.succeed(Tracing.Traces, { tracer: described, sampler: Tracing.makeSampler(sampler, ratio) }),
          Layer.succeed(Tracer.Tracer, described),
          // A statement says how long it waited for its connection to open.
          Layer.succeed(SpanPropagationEnabled, true)
        )
      }
      return Layer.mergeAll(
        Option.match(logger, {
          onNone: () => Layer.empty,
          onSome: (found) => Logger.layer([found], { mergeWithExisting: true })
        }),
        Option.match(tracer, { onNone: () => Layer.empty, onSome: tracing })
      )
    })
  ).pipe(Layer.provide(NoRedirects.layer))
