/** Exports traces, metrics and logs to a collector, with the exporters of effect. The service never waits for it. */
import { randomUUID } from "node:crypto"
import { hostname } from "node:os"
import { ConfigProvider, Duration, Effect, Layer, Option, Predicate, Redacted } from "effect"
import { HttpClient, HttpClientError, HttpClientRequest } from "effect/http"
import { Otlp, OtlpExporter, type OtlpResource, OtlpSerialization } from "effect/observability"
import * as NoRedirects from "../process/HttpClient.ts"
import { version } from "../process/Package.ts"
import { safe } from "./Logging.ts"
import * as Tracing from "./Tracing.ts"

export interface OtlpSettings {
  readonly otlpEndpoint: Option.Option<URL>
  readonly otlpHeaders: Redacted.Redacted<{ readonly [name: string]: string }>
  readonly otlpServiceName: string
  /** The share of traces that are made, unless their caller decides. */
  readonly traceRatio: number
}

/** A value of a log line whose texts are bounded and without secrets. */
const bounded = (value: OtlpResource.AnyValue): OtlpResource.AnyValue => {
  if (Predicate.isString(value.stringValue)) return { stringValue: safe(value.stringValue, Tracing.longest) }
  return value.arrayValue === undefined ? value : { arrayValue: { values: value.arrayValue.values.map(bounded) } }
}

const layerSerialization = Layer.effect(
  OtlpSerialization.OtlpSerialization,
  Effect.map(OtlpSerialization.OtlpSerialization, ({ logs, ...others }) => ({
    ...others,
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
).pipe(Layer.provide(OtlpSerialization.layerJson))

/** The time of a try. Effect's exporters wait for as long as it takes, and keep what gathers meanwhile. */
const timeout = Duration.seconds(5)

const layerClient = Layer.effect(
  HttpClient.HttpClient,
  Effect.map(
    HttpClient.HttpClient,
    HttpClient.transform((response, { url }) => {
      // Without the headers of the request, which may be secrets.
      const reason = new HttpClientError.TransportError({ request: HttpClientRequest.post(url) })
      const failed = Effect.fail(new HttpClientError.HttpClientError({ reason }))
      return Effect.timeoutOrElse(response, { duration: timeout, orElse: () => failed })
    })
  )
)

/** Exports by an HTTP client until the scope closes; nothing without an endpoint. */
export const layerNoDeps = ({ otlpEndpoint, otlpHeaders, otlpServiceName, traceRatio }: OtlpSettings) =>
  Option.match(otlpEndpoint, {
    onNone: () => OtlpExporter.layerFlusher,
    onSome: (endpoint) => {
      const exports = Otlp.layer({
        baseUrl: endpoint.href,
        headers: Redacted.value(otlpHeaders),
        resource: {
          serviceName: otlpServiceName,
          serviceVersion: version,
          attributes: {
            "host.name": hostname(),
            "process.pid": process.pid,
            "service.instance.id": randomUUID()
          }
        },
        metricsExportInterval: "1 minute",
        // A stop waits for all of them together.
        shutdownTimeout: "2 seconds"
      })
      return Tracing.layer(traceRatio).pipe(
        Layer.provideMerge(exports),
        // It would read variables of its own, and die of an invalid one.
        Layer.provide([layerSerialization, layerClient, ConfigProvider.layer(ConfigProvider.fromUnknown({}))])
      )
    }
  })

export const layer = (settings: OtlpSettings) => Layer.provide(layerNoDeps(settings), NoRedirects.layer)
