/** Exports traces, metrics and logs to a collector, with the exporters of effect. The service never waits for it. */
import { randomUUID } from "node:crypto"
import { hostname } from "node:os"
import {
  Clock,
  Duration,
  Effect,
  Layer,
  Option,
  Predicate,
  Redacted,
  Schedule,
  Semaphore,
  Stream,
  Tracer
} from "effect"
import { HttpClient, HttpClientError, HttpClientRequest } from "effect/http"
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
import * as Time from "../process/Time.ts"
import { safe } from "./Logging.ts"
import { unitOf } from "./Metrics.ts"
import type { OtlpSettings, Signal } from "./OtlpConfig.ts"
import * as Series from "./Series.ts"
import * as Tracing from "./Tracing.ts"

/** A value of a log line whose texts are bounded and without secrets. */
const bounded = (value: OtlpResource.AnyValue): OtlpResource.AnyValue => {
  if (Predicate.isString(value.stringValue)) return { stringValue: safe(value.stringValue, Tracing.longest) }
  return value.arrayValue === undefined ? value : { arrayValue: { values: value.arrayValue.values.map(bounded) } }
}

/** Statuses of spans in the protocol. */
const [unset, ok] = [0, 1] as const

const layerSerialization = Layer.effect(
  OtlpSerialization.OtlpSerialization,
  Effect.map(OtlpSerialization.OtlpSerialization, ({ logs, metrics, traces }) => ({
    // Effect marks every span that did not fail as ok, which the conventions leave to people.
    traces: (data) => {
      for (const { spans } of data.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans)) {
        for (const { status } of spans) if (status.code === ok) Object.assign(status, { code: unset })
      }
      return traces(data)
    },
    metrics: (data) => {
      for (const { metrics: all } of data.resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics)) {
        for (const metric of all) metric.unit = unitOf(metric.name)
      }
      return metrics(data)
    },
    logs: (data) => {
      for (const { logRecords = [] } of data.resourceLogs.flatMap(({ scopeLogs }) => scopeLogs)) {
        for (const line of logRecords) {
          line.body = bounded(line.body ?? {})
          for (const attribute of line.attributes) attribute.value = bounded(attribute.value)
        }
      }
      return logs(data)
    }
  }))
)

const codeOf = (error: unknown): string | undefined => {
  if (Predicate.hasProperty(error, "code") && Predicate.isString(error.code)) return error.code
  return Predicate.hasProperty(error, "cause") ? codeOf(error.cause) : undefined
}

const reasonOf = ({ reason }: HttpClientError.HttpClientError) =>
  reason._tag === "StatusCodeError" ? `status ${reason.response.status}` : (codeOf(reason) ?? "The connection failed")

/** The most exports of a signal under way. */
const atOnce = 4

/** A piece has at most 64 KiB. A collector says a few words. */
const mostPieces = 4

/** The protocol allows no retry after these statuses, unlike `retryTransient`. */
const isFinal = (error: unknown) =>
  HttpClientError.isHttpClientError(error) && [408, 500].includes(error.response?.status ?? 0)

const backoff = Schedule.exponential("500 millis").pipe(
  Schedule.jittered,
  Schedule.while(({ input }) => !isFinal(input))
)

/**
 * The HTTP client of effect's exporters for a collector. They send each batch, wait for as long as it takes, and retry by
 * themselves. Here each export has a timeout for all its tries, the number under way is limited, and a response is read up
 * to a bound.
 */
export const makeClient = Effect.fnUntraced(function* (
  signal: Signal,
  { timeout, url }: { readonly timeout: number; readonly url: Redacted.Redacted<URL> }
) {
  const client = yield* HttpClient.HttpClient
  const { counter } = yield* Series.current
  const failures = counter("practice_data_telemetry_export_failures_total", { signal })
  const permits = Semaphore.makeUnsafe(atOnce)
  let isFailing = false

  /** Logs when exports begin to fail, and when they work again. */
  const ended = (cause?: string) =>
    Effect.suspend(() => {
      if (cause !== undefined) failures.add()
      if (isFailing === (cause !== undefined)) return Effect.void
      isFailing = !isFailing
      const line = isFailing
        ? Effect.logWarning("The OpenTelemetry collector is failing: dropping its data")
        : Effect.logInfo("The OpenTelemetry collector responds again")
      return Effect.annotateLogs(line, { signal, cause })
    })

  // Without the headers and parameters of a request, which may be secrets. The exporters do not retry this kind.
  const failure = (description: string) =>
    new HttpClientError.HttpClientError({
      reason: new HttpClientError.EncodeError({
        request: HttpClientRequest.post(Redacted.value(url).origin),
        description
      })
    })

  return HttpClient.make((request) => {
    // The error of the last try says more than that the time is over.
    let reason = "No response in time"
    return client.pipe(
      HttpClient.tap(({ stream }) => Effect.ignore(Stream.runDrain(Stream.take(stream, mostPieces)))),
      HttpClient.filterStatusOk,
      HttpClient.tapError((error) => Effect.sync(() => void (reason = reasonOf(error)))),
      HttpClient.retryTransient({ retryOn: "errors-only", schedule: backoff }),
      ({ execute }) => Effect.timeout(execute(request), timeout),
      Effect.mapError(() => reason),
      permits.withPermitsIfAvailable(1),
      Effect.flatMap(Option.match({ onNone: () => Effect.fail("Too many exports under way"), onSome: Effect.succeed })),
      Effect.tap(() => ended()),
      Effect.tapError(ended),
      Effect.mapError(failure)
    )
  })
})

/**
 * The clock of effect's exporters. Times that they export are wall times, in nanoseconds. They pause after a failure, by
 * milliseconds: these are monotonic.
 */
const layerClock = Layer.effect(
  Clock.Clock,
  Effect.map(Clock.Clock, (clock) =>
    Object.assign(Time.steady(clock), {
      currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
      currentTimeNanos: clock.currentTimeNanos
    })
  )
)

/** The most that a stop waits for the last exports, all of them together. */
const shutdownTimeout = Duration.seconds(2)

/** The spans or log lines of an export. */
const maxBatchSize = 512

/** The resource of all exports. An operator's variables come first. */
const resourceOf = ({ attributes, serviceName }: OtlpSettings) => {
  const { "service.instance.id": instance = randomUUID() } = attributes
  return {
    attributes: {
      "service.name": "practice-data",
      "service.version": version,
      "host.name": hostname(),
      "process.pid": process.pid,
      ...attributes,
      ...(Option.isSome(serviceName) && { "service.name": serviceName.value }),
      "service.instance.id": instance
    }
  }
}

type ExporterOptions = Parameters<typeof OtlpTracer.make>[0]

/** Effect's tracer, with our sampling, and without the messages of errors. */
const layerTracer = (options: ExporterOptions, { ratio, sampler }: OtlpSettings) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const tracer = yield* OtlpTracer.make(options)
      const describe = Tracing.describe(yield* Clock.Clock)
      return Layer.mergeAll(
        Layer.succeed(Tracing.Traces, { tracer, describe, sampler: Tracing.makeSampler(sampler, ratio) }),
        Layer.effect(Tracer.Tracer, Tracing.describing(tracer)),
        // A statement says how long it waited for its connection to open.
        Layer.succeed(SpanPropagationEnabled, true)
      )
    })
  ).pipe(Layer.provide(OtlpExporter.layerFlusher))

/** Exports by an HTTP client until the scope closes. */
export const layerNoDeps = (settings: OtlpSettings) => {
  const resource = resourceOf(settings)
  const { logDelay, metricInterval, spanDelay, temporality } = settings

  const exporting = <A>(
    signal: Signal,
    make: (
      options: ExporterOptions
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
          Layer.provide([
            Layer.effect(HttpClient.HttpClient, makeClient(signal, { timeout, url })),
            layerSerialization,
            layerClock
          ]),
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

export const layer = (settings: OtlpSettings) => Layer.provide(layerNoDeps(settings), NoRedirects.layer)
