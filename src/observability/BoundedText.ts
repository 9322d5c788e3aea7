/** What is exported has bounded texts, whoever wrote them. */
import { Effect, Layer } from "effect"
import { type OtlpResource, OtlpSerialization } from "effect/observability"

/** In characters. The longest statement of this service is shorter than twice as much. */
const longest = 4096

const cut = (text: string) => (text.length > longest ? `${text.slice(0, longest)}…` : text)

const bound = (value: OtlpResource.AnyValue): void => {
  if (typeof value.stringValue === "string") value.stringValue = cut(value.stringValue)
  value.arrayValue?.values.forEach(bound)
  value.kvlistValue?.values.forEach((pair) => bound(pair.value))
}

const boundAll = (attributes: ReadonlyArray<OtlpResource.KeyValue> = []) =>
  attributes.forEach(({ value }) => bound(value))

/** A serialization that cuts long texts of spans and log lines. */
export const layer = Layer.effect(
  OtlpSerialization.OtlpSerialization,
  Effect.map(OtlpSerialization.OtlpSerialization, ({ logs, metrics, traces }) => ({
    metrics,
    traces: (data) => {
      for (const { scopeSpans } of data.resourceSpans) {
        for (const span of scopeSpans.flatMap(({ spans }) => spans)) {
          boundAll(span.attributes)
          for (const event of span.events) boundAll(event.attributes)
        }
      }
      return traces(data)
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
)
