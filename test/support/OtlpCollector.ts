/**
 * A double of an OpenTelemetry collector. It reads exports with the official definitions of the protocol, as the
 * OpenTelemetry project compiles them, and responds as a test says.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { createRequire } from "node:module"
import { gunzipSync } from "node:zlib"
import { Context, Effect, Layer, Predicate, Schema } from "effect"
import * as Listening from "./Listening.ts"

/** A message of the official definitions. */
interface Message {
  readonly decode: (bytes: Uint8Array) => unknown
  readonly encode: (message: unknown) => { readonly finish: () => Uint8Array }
  readonly fromObject: (value: unknown) => unknown
  readonly toObject: (message: unknown, options: object) => unknown
}

const isMessage = (found: unknown): found is Message =>
  Predicate.isFunction(found) && Predicate.hasProperty(found, "decode") && Predicate.hasProperty(found, "toObject")

const definitions: unknown = createRequire(import.meta.url)("@opentelemetry/otlp-transformer/build/src/generated/root")

const messageOf = (path: string): Message => {
  let found = definitions
  for (const name of `opentelemetry.proto.collector.${path}`.split("."))
    found = Predicate.hasProperty(found, name) ? found[name] : undefined
  if (!isMessage(found)) throw new Error(`The definitions have no ${path}`)
  return found
}

const messages = {
  "/v1/traces": messageOf("trace.v1.ExportTraceServiceRequest"),
  "/v1/metrics": messageOf("metrics.v1.ExportMetricsServiceRequest"),
  "/v1/logs": messageOf("logs.v1.ExportLogsServiceRequest")
}
const isPath = (path: string): path is keyof typeof messages => path in messages

const Value = Schema.Record(Schema.String, Schema.Unknown)
const Attributes = Schema.Array(Schema.Struct({ key: Schema.String, value: Value }))
const Resource = Schema.Struct({ attributes: Attributes })
const ids = { traceId: Schema.String, spanId: Schema.String }

const SpanFields = {
  ...ids,
  parentSpanId: Schema.String,
  name: Schema.String,
  kind: Schema.String,
  startTimeUnixNano: Schema.String,
  endTimeUnixNano: Schema.String,
  status: Schema.Struct({ code: Schema.String }),
  attributes: Attributes,
  links: Schema.Array(Schema.Struct(ids))
}
const LineFields = { ...ids, severityText: Schema.String, body: Value, attributes: Attributes }

/** The records of an export, each list with its resource. */
const Traces = Schema.Struct({
  resourceSpans: Schema.Array(
    Schema.Struct({
      resource: Resource,
      scopeSpans: Schema.Array(Schema.Struct({ spans: Schema.Array(Schema.Struct(SpanFields)) }))
    })
  )
})
const Logs = Schema.Struct({
  resourceLogs: Schema.Array(
    Schema.Struct({
      resource: Resource,
      scopeLogs: Schema.Array(Schema.Struct({ logRecords: Schema.Array(Schema.Struct(LineFields)) }))
    })
  )
})
const Sum = Schema.Struct({
  dataPoints: Schema.Array(Schema.Struct({ asDouble: Schema.optionalKey(Schema.Finite) })),
  aggregationTemporality: Schema.Literal("AGGREGATION_TEMPORALITY_CUMULATIVE")
})
const Metric = Schema.Struct({
  name: Schema.String,
  unit: Schema.optionalKey(Schema.String),
  sum: Schema.optionalKey(Sum)
})
const Metrics = Schema.Struct({
  resourceMetrics: Schema.Array(
    Schema.Struct({ scopeMetrics: Schema.Array(Schema.Struct({ metrics: Schema.Array(Metric) })) })
  )
})

// oxlint-disable-next-line effecttsgo/schema-sync -- in a handler of a server, which is no effect
const decodeTraces = Schema.decodeUnknownSync(Traces)
// oxlint-disable-next-line effecttsgo/schema-sync -- in a handler of a server, which is no effect
const decodeLogs = Schema.decodeUnknownSync(Logs)
// oxlint-disable-next-line effecttsgo/schema-sync -- in a handler of a server, which is no effect
const decodeMetrics = Schema.decodeUnknownSync(Metrics)

const valueOf = (value: typeof Value.Type) => {
  const [[type, held] = ["", undefined]] = Object.entries(value)
  return type === "intValue" ? Number(held) : held
}

const attributesOf = (attributes: typeof Attributes.Type): Readonly<Record<string, unknown>> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]))

const inHex = (base64: string) => Buffer.from(base64, "base64").toString("hex")

const idsOf = ({ spanId, traceId }: { readonly traceId: string; readonly spanId: string }) => ({
  traceId: inHex(traceId),
  spanId: inHex(spanId)
})

const spansOf = (found: unknown) =>
  decodeTraces(found).resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans
      .flatMap(({ spans }) => spans)
      .map((span) => ({
        ...idsOf(span),
        /** Empty for the first span of a trace. */
        parentSpanId: inHex(span.parentSpanId),
        name: span.name,
        kind: span.kind,
        /** Nanoseconds. */
        start: BigInt(span.startTimeUnixNano),
        end: BigInt(span.endTimeUnixNano),
        status: span.status.code,
        attributes: attributesOf(span.attributes),
        links: span.links.map(idsOf),
        resource: attributesOf(resource.attributes)
      }))
  )

/** A span that came in. */
export type Span = ReturnType<typeof spansOf>[number]

const linesOf = (found: unknown) =>
  decodeLogs(found).resourceLogs.flatMap(({ resource, scopeLogs }) =>
    scopeLogs
      .flatMap(({ logRecords }) => logRecords)
      .map((line) => ({
        ...idsOf(line),
        level: line.severityText,
        text: String(valueOf(line.body)),
        attributes: attributesOf(line.attributes),
        resource: attributesOf(resource.attributes)
      }))
  )

const metricsOf = (found: unknown) =>
  decodeMetrics(found)
    .resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics))
    .map(({ name, sum, unit }) => ({
      name,
      unit,
      total: sum?.dataPoints.reduce((total, { asDouble = 0 }) => total + asDouble, 0) ?? Number.NaN
    }))

/** A request that came in. `isWhole`: its body is what the definitions make of it when they have read it. */
export interface Seen {
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  readonly body: Buffer
  readonly isWhole: boolean
}

/** A response of the collector. */
export type Behaviour = (response: ServerResponse) => void

export const takes: Behaviour = (response) => response.writeHead(200, { "content-type": "application/json" }).end("{}")

// In JSON, ids are hexadecimal, unlike other bytes.
const parsed = (text: string): unknown =>
  JSON.parse(text, (name, value: unknown) =>
    ["traceId", "spanId", "parentSpanId"].includes(name) && Predicate.isString(value)
      ? Buffer.from(value, "hex").toString("base64")
      : value
  )

const make = Effect.gen(function* () {
  const seen: Array<Seen> = []
  const spans: Array<Span> = []
  const lines: Array<ReturnType<typeof linesOf>[number]> = []
  const metrics = new Map<string, ReturnType<typeof metricsOf>[number]>()
  const faults: Array<unknown> = []
  let behaviour: Behaviour = takes
  let requests = 0

  const take = ({ headers, url: path = "/" }: IncomingMessage, given: Buffer) => {
    const body = headers["content-encoding"] === "gzip" ? gunzipSync(given) : given
    if (!isPath(path)) throw new Error(`Nothing is at ${path}`)
    const type = messages[path]
    const isJson = headers["content-type"] === "application/json"
    const message = isJson ? type.fromObject(parsed(body.toString())) : type.decode(body)
    const isWhole = isJson || type.encode(message).finish().length === body.length
    seen.push({ path, headers, body, isWhole })
    const options = { longs: String, enums: String, bytes: String, arrays: true, defaults: path !== "/v1/metrics" }
    const found = type.toObject(message, options)
    if (path === "/v1/traces") spans.push(...spansOf(found))
    else if (path === "/v1/logs") lines.push(...linesOf(found))
    else for (const metric of metricsOf(found)) metrics.set(metric.name, metric)
  }

  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    requests += 1
    const pieces: Array<Buffer> = []
    request.on("data", (piece: Buffer) => pieces.push(piece))
    request.on("end", () => {
      try {
        if (behaviour === takes) take(request, Buffer.concat(pieces))
        behaviour(response)
      } catch (fault) {
        faults.push(fault)
        response.writeHead(400).end()
      }
    })
  })
  const { port, sockets } = yield* Listening.on(server)

  return {
    url: `http://127.0.0.1:${port}`,
    /** Responds so from now on. Requests without a response so far have none when it takes exports again. */
    answer: (next: Behaviour) =>
      Effect.sync(() => {
        behaviour = next
        if (next === takes) for (const socket of sockets) socket.destroy()
      }),
    /** The requests that it took. */
    seen: Effect.sync(() => [...seen]),
    spans: Effect.sync(() => [...spans]),
    lines: Effect.sync(() => [...lines]),
    /** The metrics of the last export, with the total of each counter. */
    metrics: Effect.sync(() => new Map(metrics)),
    /** The reasons of what it could not read. */
    faults: Effect.sync(() => [...faults]),
    /** The number of requests, taken or not. */
    requests: Effect.sync(() => requests)
  }
})

export class OtlpCollector extends Context.Service<OtlpCollector, Effect.Success<typeof make>>()(
  "practice-data/test/support/OtlpCollector"
) {
  static readonly layer = Layer.effect(OtlpCollector, make)
}
