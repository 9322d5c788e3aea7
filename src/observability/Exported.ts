/** What is exported, before it is written: its texts are bounded and without secrets, whoever wrote them. */
import { Effect, Layer } from "effect"
import { type OtlpResource, OtlpSerialization } from "effect/observability"
import { safe } from "./Logging.ts"

/** In characters. */
const longest = 4096

const bound = (value: OtlpResource.AnyValue): void => {
  if (typeof value.stringValue === "string") value.stringValue = safe(value.stringValue, longest)
  value.arrayValue?.values.forEach(bound)
  value.kvlistValue?.values.forEach((pair) => bound(pair.value))
}

const boundAll = (attributes: ReadonlyArray<OtlpResource.KeyValue>) => attributes.forEach(({ value }) => bound(value))

/** A statement without the indentation of our source. */
const inOneLine = (attributes: ReadonlyArray<OtlpResource.KeyValue>) => {
  for (const { key, value } of attributes) {
    if (key === "db.query.text") value.stringValue = value.stringValue?.replace(/\s+/g, " ").trim() ?? null
  }
}

// Effect's exporter says Ok of whatever did not fail. That is for a person to say; unset is what did not fail.
const [unset, ok] = [0, 1] as const

/** A serialization of such data. */
export const layer = Layer.effect(
  OtlpSerialization.OtlpSerialization,
  Effect.map(OtlpSerialization.OtlpSerialization, ({ logs, metrics, traces }) => ({
    metrics,
    traces: (data) => {
      const resourceSpans = data.resourceSpans.map((resource) => ({
        ...resource,
        scopeSpans: resource.scopeSpans.map((scope) => ({
          ...scope,
          spans: scope.spans.map((span) => {
            inOneLine(span.attributes)
            boundAll(span.attributes)
            for (const { attributes } of span.events) boundAll(attributes)
            return span.status.code === ok ? { ...span, status: { code: unset } } : span
          })
        }))
      }))
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
)
