/**
 * A double of an OpenTelemetry collector. It reads exports with the official definitions of the protocol, as the
 * OpenTelemetry project compiles them.
 */
import { createServer, type IncomingMessage } from "node:http"
import { createRequire } from "node:module"
import { gunzipSync } from "node:zlib"
import { Context, Effect, Layer, Predicate, Schema } from "effect"
import * as Listening from "../../support/Listening.ts"

/** A message of the official definitions. */
interface Message {
  readonly decode: (bytes: Uint8Array) => unknown
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

const attributes = Schema.Record(Schema.String, Schema.Unknown)
const ids = { traceId: Schema.String, spanId: Schema.String }

const Span = Schema.Struct({
  ...ids,
  /** Empty for the first span of a trace. */
  parentSpanId: Schema.String,
  name: Schema.String,
  kind: Schema.String,
  startTimeUnixNano: Schema.String,
  endTimeUnixNano: Schema.String,
  status: Schema.Struct({ code: Schema.String }),
  attributes,
  links: Schema.Array(Schema.Struct(ids))
})
const Line = Schema.Struct({ ...ids, severityText: Schema.String, body: Schema.String, attributes })

const listOf = <F extends Schema.Struct.Fields>(fields: F) => Schema.Array(Schema.Struct(fields))
const resource = Schema.Struct({ attributes })

/** The spans or lines of an export, each list with its resource. */
const Export = Schema.Struct({
  resourceSpans: Schema.optionalKey(listOf({ resource, scopeSpans: listOf({ spans: Schema.Array(Span) }) })),
  resourceLogs: Schema.optionalKey(listOf({ resource, scopeLogs: listOf({ logRecords: Schema.Array(Line) }) }))
})
// oxlint-disable-next-line effecttsgo/schema-sync -- in a handler of a server, which is no effect
const decode = Schema.decodeUnknownSync(Export)

/** The value that an object such as `{ intValue: "1" }` holds. */
const heldBy = (value: object) => {
  const [[type, held] = ["", undefined]] = Object.entries(value)
  return type === "intValue" ? Number(held) : held
}

/** A message with ids in hexadecimal, and with attributes and bodies as plain values. */
const plain = (message: unknown): unknown =>
  JSON.parse(JSON.stringify(message), (name, value) => {
    if (["traceId", "spanId", "parentSpanId"].includes(name)) return Buffer.from(value, "base64").toString("hex")
    if (name === "body") return String(heldBy(value))
    if (name !== "attributes") return value
    return Object.fromEntries(Array.from(value, ({ key, value: held }) => [key, heldBy(held)]))
  })

const spansOf = ({ resourceSpans = [] }: typeof Export.Type) =>
  resourceSpans.flatMap((of) =>
    of.scopeSpans
      .flatMap(({ spans }) => spans)
      .map((span) => ({ ...span, status: span.status.code, resource: of.resource.attributes }))
  )

/** A span that came in. */
export type Span = ReturnType<typeof spansOf>[number]

const linesOf = ({ resourceLogs = [] }: typeof Export.Type) =>
  resourceLogs.flatMap((of) =>
    of.scopeLogs.flatMap(({ logRecords }) => logRecords).map((line) => ({ ...line, resource: of.resource.attributes }))
  )

const make = Effect.gen(function* () {
  const seen: Array<{ readonly path: string; readonly headers: IncomingMessage["headers"]; readonly body: Buffer }> = []
  const spans: Array<Span> = []
  const lines: Array<ReturnType<typeof linesOf>[number]> = []
  const faults: Array<unknown> = []

  const take = ({ headers, url: path = "/" }: IncomingMessage, given: Buffer) => {
    const body = headers["content-encoding"] === "gzip" ? gunzipSync(given) : given
    if (!isPath(path)) throw new Error(`Nothing is at ${path}`)
    seen.push({ path, headers, body })
    const type = messages[path]
    const options = { longs: String, enums: String, bytes: String, arrays: true, defaults: true }
    const found = decode(plain(type.toObject(type.decode(body), options)))
    spans.push(...spansOf(found))
    lines.push(...linesOf(found))
  }

  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const pieces: Array<Buffer> = []
    request.on("data", (piece: Buffer) => pieces.push(piece))
    request.on("end", () => {
      try {
        take(request, Buffer.concat(pieces))
        response.writeHead(200).end()
      } catch (fault) {
        faults.push(fault)
        response.writeHead(400).end()
      }
    })
  })
  const { port } = yield* Listening.on(server)

  return {
    url: `http://127.0.0.1:${port}`,
    /** The requests that it took. */
    seen: Effect.sync(() => [...seen]),
    spans: Effect.sync(() => [...spans]),
    lines: Effect.sync(() => [...lines]),
    /** The reasons of what it could not read. */
    faults: Effect.sync(() => [...faults])
  }
})

export class OtlpCollector extends Context.Service<OtlpCollector, Effect.Success<typeof make>>()(
  "practice-data/test/integration/observability/OtlpCollector"
) {
  static readonly layer = Layer.effect(OtlpCollector, make)
}
