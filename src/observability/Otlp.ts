/** Exports traces, metrics and logs to a collector, with the exporters of effect. */
import { randomUUID } from "node:crypto"
import { hostname } from "node:os"
import { Duration, Effect, Exit, Layer, Logger, Option, Redacted, Scope, Tracer } from "effect"
import { HttpClient } from "effect/http"
import { OtlpExporter, OtlpLogger, OtlpMetrics, OtlpSerialization, OtlpTracer } from "effect/observability"
import { SpanPropagationEnabled } from "effect/sql/Statement"
import * as NoRedirects from "../process/HttpClient.ts"
import { version } from "../process/Package.ts"
import * as Exported from "./Exported.ts"
import * as OtlpClient from "./OtlpClient.ts"
import { type Export, type OtlpSettings, type Signal, signals } from "./OtlpConfig.ts"
import * as Series from "./Series.ts"
import * as Tracing from "./Tracing.ts"

/** How long a stop may take for the last exports, all of them together. */
export const shutdownTimeout = Duration.seconds(2)

/** How many batches fill a queue. */
const atOnce = (queue: number, batch: number) => Math.max(1, Math.floor(queue / batch))

/** Metrics are few, and one export of them is under way at a time. */
const metricExportsAtOnce = 1

export interface Options {
  /** Whether this is one of several processes of a host, which share its variables. */
  readonly isOneOfSeveral?: boolean
}

/** What all that this process exports says of it. What an operator says of it in variables comes first. */
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

const serialization = (protocol: Export["protocol"]) =>
  Exported.layer.pipe(
    Layer.provide(protocol === "http/json" ? OtlpSerialization.layerJson : OtlpSerialization.layerProtobuf)
  )

/** Exports what is set up, until the scope closes. */
export const layer = (settings: OtlpSettings, { isOneOfSeveral = false }: Options = {}) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const series = yield* Series.current
      const exported = signals.filter((signal) => Option.isSome(settings[signal]))
      const failures = new Map(
        exported.map((signal) => [signal, series.counter("practice_data_telemetry_export_failures_total", { signal })])
      )
      const health = OtlpClient.makeHealth((signal) => failures.get(signal)?.add())
      const resource = resourceOf(settings, isOneOfSeveral)
      const flusher = yield* Layer.build(OtlpExporter.layerFlusher)
      // So that a stop waits for all signals at once.
      const together = yield* Effect.acquireRelease(Scope.make("parallel"), (scope) => Scope.close(scope, Exit.void))

      type Needed = HttpClient.HttpClient | OtlpExporter.Flusher | OtlpSerialization.OtlpSerialization | Scope.Scope
      const exporting = Effect.fnUntraced(function* <A>(
        signal: Signal,
        exportsAtOnce: number,
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
        const client = yield* OtlpClient.make({ signal, url, timeout, atOnce: exportsAtOnce, health })
        return Option.some(
          yield* make({
            url: Redacted.value(url).href,
            headers: Redacted.value(headers),
            compression,
            resource,
            shutdownTimeout
          }).pipe(
            Effect.provideContext(yield* Layer.build(serialization(protocol))),
            Effect.provideService(HttpClient.HttpClient, client),
            Effect.provideContext(flusher),
            Scope.provide(yield* Scope.fork(together))
          )
        )
      })

      const {
        logBatch,
        logDelay,
        logQueue,
        metricInterval,
        ratio,
        sampler,
        spanBatch,
        spanDelay,
        spanQueue,
        temporality
      } = settings
      const logger = yield* exporting("logs", atOnce(logQueue, logBatch), (options) =>
        OtlpLogger.make({ ...options, exportInterval: logDelay, maxBatchSize: logBatch })
      )
      yield* exporting("metrics", metricExportsAtOnce, (options) =>
        OtlpMetrics.make({ ...options, exportInterval: metricInterval, temporality })
      )
      const tracer = yield* exporting("traces", atOnce(spanQueue, spanBatch), (options) =>
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
