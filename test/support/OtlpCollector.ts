/**
 * A double of an OpenTelemetry collector: a server on a socket of this machine. It reads what it gets with the official
 * definitions of the protocol, as the OpenTelemetry project compiles them, and answers as a test says.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { createRequire } from "node:module"
import type { Socket } from "node:net"
import { gunzipSync } from "node:zlib"
import { Context, Effect, Layer, Predicate, Schema } from "effect"

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
  for (const name of path.split(".")) found = Predicate.hasProperty(found, name) ? found[name] : undefined
  if (!isMessage(found)) throw new Error(`The definitions have no ${path}`)
  return found
}

const service = "opentelemetry.proto.collector"
const messages = {
  "/v1/traces": messageOf(`${service}.trace.v1.ExportTraceServiceRequest`),
  "/v1/metrics": messageOf(`${service}.metrics.v1.ExportMetricsServiceRequest`),
  "/v1/logs": messageOf(`${service}.logs.v1.ExportLogsServiceRequest`)
}

const Value = Schema.Struct({
  stringValue: Schema.optionalKey(Schema.String),
  boolValue: Schema.optionalKey(Schema.Boolean),
  intValue: Schema.optionalKey(Schema.String),
  doubleValue: Schema.optionalKey(Schema.Finite),
  arrayValue: Schema.optionalKey(Schema.Unknown),
  kvlistValue: Schema.optionalKey(Schema.Unknown),
  bytesValue: Schema.optionalKey(Schema.String)
})
const Attributes = Schema.Array(Schema.Struct({ key: Schema.String, value: Value }))
const Resource = Schema.Struct({ attributes: Attributes })

const Traces = Schema.Struct({
  resourceSpans: Schema.Array(
    Schema.Struct({
      resource: Resource,
      scopeSpans: Schema.Array(
        Schema.Struct({
          spans: Schema.Array(
            Schema.Struct({
              traceId: Schema.String,
              spanId: Schema.String,
              parentSpanId: Schema.String,
              name: Schema.String,
              kind: Schema.String,
              startTimeUnixNano: Schema.String,
              endTimeUnixNano: Schema.String,
              attributes: Attributes,
              events: Schema.Array(Schema.Struct({ name: Schema.String, attributes: Attributes })),
              links: Schema.Array(Schema.Struct({ traceId: Schema.String, spanId: Schema.String })),
              status: Schema.Struct({ code: Schema.String, message: Schema.String })
            })
          )
        })
      )
    })
  )
})

const Logs = Schema.Struct({
  resourceLogs: Schema.Array(
    Schema.Struct({
      resource: Resource,
      scopeLogs: Schema.Array(
        Schema.Struct({
          logRecords: Schema.Array(
            Schema.Struct({
              severityText: Schema.String,
              body: Value,
              attributes: Attributes,
              traceId: Schema.String,
              spanId: Schema.String
            })
          )
        })
      )
    })
  )
})

const Metric = Schema.Struct({
  name: Schema.String,
  sum: Schema.optionalKey(
    Schema.Struct({
      dataPoints: Schema.Array(Schema.Struct({ asDouble: Schema.optionalKey(Schema.Finite) })),
      isMonotonic: Schema.optionalKey(Schema.Boolean),
      aggregationTemporality: Schema.Literal("AGGREGATION_TEMPORALITY_CUMULATIVE")
    })
  )
})

const Metrics = Schema.Struct({
  resourceMetrics: Schema.Array(
    Schema.Struct({
      resource: Resource,
      scopeMetrics: Schema.Array(Schema.Struct({ metrics: Schema.Array(Metric) }))
    })
  )
})

// oxlint-disable-next-line effecttsgo/schema-sync -- in a handler of a server, which is no effect
const decodeTraces = Schema.decodeUnknownSync(Traces)
// oxlint-disable-next-line effecttsgo/schema-sync -- in a handler of a server, which is no effect
const decodeLogs = Schema.decodeUnknownSync(Logs)
// oxlint-disable-next-line effecttsgo/schema-sync -- in a handler of a server, which is no effect
const decodeMetrics = Schema.decodeUnknownSync(Metrics)

type AttributeValue = string | number | boolean | undefined

const attributesOf = (attributes: typeof Attributes.Type): Readonly<Record<string, AttributeValue>> =>
  Object.fromEntries(
    attributes.map(({ key, value: { boolValue, doubleValue, intValue, stringValue } }) => [
      key,
      stringValue ?? boolValue ?? doubleValue ?? (intValue === undefined ? undefined : Number(intValue))
    ])
  )

/** A span that came in. */
export interface Span {
  readonly traceId: string
  readonly spanId: string
  /** Empty for the first span of a trace. */
  readonly parentSpanId: string
  readonly name: string
  readonly kind: string
  /** Nanoseconds. */
  readonly start: bigint
  readonly end: bigint
  readonly attributes: Readonly<Record<string, AttributeValue>>
  readonly events: ReadonlyArray<string>
  readonly links: ReadonlyArray<{ readonly traceId: string; readonly spanId: string }>
  readonly status: string
  readonly resource: Readonly<Record<string, AttributeValue>>
}

/** A log line that came in. */
export interface Line {
  readonly level: string
  readonly text: string | undefined
  readonly attributes: Readonly<Record<string, AttributeValue>>
  readonly traceId: string
  readonly spanId: string
  readonly resource: Readonly<Record<string, AttributeValue>>
}

/** A request that came in. */
export interface Seen {
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  /** Its body, decompressed. */
  readonly body: Buffer
  /** Whether its body is what the definitions make of it when they have read it, byte by byte or field by field. */
  readonly isWhole: boolean
}

/** How the collector answers. */
export type Behaviour = (response: ServerResponse) => void

export const takes: Behaviour = (response) => response.writeHead(200, { "content-type": "application/json" }).end("{}")

const isPath = (path: string): path is keyof typeof messages => path in messages

const inHex = (base64: string) => Buffer.from(base64, "base64").toString("hex")

const isId = (name: string) => ["traceId", "spanId", "parentSpanId"].includes(name)

// In JSON, ids are hexadecimal, unlike other bytes.
const parsed = (text: string): unknown =>
  JSON.parse(text, (name, value: unknown) =>
    isId(name) && Predicate.isString(value) ? Buffer.from(value, "hex").toString("base64") : value
  )

const options = { longs: String, enums: String, bytes: String, arrays: true }

const make = Effect.gen(function* () {
  const sockets = new Set<Socket>()
  const seen: Array<Seen> = []
  const spans: Array<Span> = []
  const lines: Array<Line> = []
  const metrics = new Map<string, number>()
  const faults: Array<unknown> = []
  let behaviour: Behaviour = takes
  let requests = 0

  const take = (request: IncomingMessage, given: Buffer) => {
    const { headers, url: path = "/" } = request
    const body = headers["content-encoding"] === "gzip" ? gunzipSync(given) : given
    if (!isPath(path)) throw new Error(`Nothing is at ${path}`)
    const type = messages[path]
    const isJson = headers["content-type"] === "application/json"
    const message = isJson ? type.fromObject(parsed(body.toString())) : type.decode(body)
    const isWhole = isJson || type.encode(message).finish().length === body.length
    seen.push({ path, headers, body, isWhole })
    const found = type.toObject(message, { ...options, defaults: path !== "/v1/metrics" })
    switch (path) {
      case "/v1/traces":
        for (const { resource, scopeSpans } of decodeTraces(found).resourceSpans) {
          for (const span of scopeSpans.flatMap((scope) => scope.spans)) {
            spans.push({
              traceId: inHex(span.traceId),
              spanId: inHex(span.spanId),
              parentSpanId: inHex(span.parentSpanId),
              name: span.name,
              kind: span.kind,
              start: BigInt(span.startTimeUnixNano),
              end: BigInt(span.endTimeUnixNano),
              attributes: attributesOf(span.attributes),
              events: span.events.map(({ name }) => name),
              links: span.links.map((link) => ({ traceId: inHex(link.traceId), spanId: inHex(link.spanId) })),
              status: span.status.code,
              resource: attributesOf(resource.attributes)
            })
          }
        }
        break
      case "/v1/logs":
        for (const { resource, scopeLogs } of decodeLogs(found).resourceLogs) {
          for (const line of scopeLogs.flatMap((scope) => scope.logRecords)) {
            lines.push({
              level: line.severityText,
              text: line.body.stringValue,
              attributes: attributesOf(line.attributes),
              traceId: inHex(line.traceId),
              spanId: inHex(line.spanId),
              resource: attributesOf(resource.attributes)
            })
          }
        }
        break
      case "/v1/metrics":
        for (const { scopeMetrics } of decodeMetrics(found).resourceMetrics) {
          for (const { name, sum } of scopeMetrics.flatMap((scope) => scope.metrics)) {
            metrics.set(name, sum?.dataPoints.reduce((total, { asDouble = 0 }) => total + asDouble, 0) ?? Number.NaN)
          }
        }
    }
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
  }).on("connection", (socket) => {
    sockets.add(socket)
    socket.on("error", () => socket.destroy())
    socket.once("close", () => sockets.delete(socket))
  })

  const url = yield* Effect.acquireRelease(
    Effect.callback<string>((resume) => {
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = address === null || typeof address === "string" ? 0 : address.port
        resume(Effect.succeed(`http://127.0.0.1:${port}`))
      })
    }),
    () =>
      Effect.callback<void>((resume) => {
        server.close(() => resume(Effect.void))
        for (const socket of sockets) socket.destroy()
      })
  )

  return {
    /** Where it listens. */
    url,
    /** Answers so from now on. Whoever is not answered has waited in vain. */
    answer: (next: Behaviour) =>
      Effect.sync(() => {
        behaviour = next
        if (next === takes) for (const socket of sockets) socket.destroy()
      }),
    /** What it took. */
    seen: Effect.sync(() => [...seen]),
    spans: Effect.sync(() => [...spans]),
    lines: Effect.sync(() => [...lines]),
    /** The metrics of the last export, with the total of each counter. */
    metrics: Effect.sync(() => new Map(metrics)),
    /** What it could not read. */
    faults: Effect.sync(() => [...faults]),
    /** How many requests came in, taken or not. */
    requests: Effect.sync(() => requests)
  }
})

export class OtlpCollector extends Context.Service<OtlpCollector, Effect.Success<typeof make>>()(
  "practice-data/test/support/OtlpCollector"
) {
  static readonly layer = Layer.effect(OtlpCollector, make)
}
