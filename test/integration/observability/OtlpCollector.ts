/** A double of an OpenTelemetry collector, which reads exports as JSON of the protocol. */
import { createServer, type IncomingMessage } from "node:http"
import { Context, Effect, Layer, Schema } from "effect"
import * as Listening from "../../support/Listening.ts"

const paths = ["/v1/traces", "/v1/metrics", "/v1/logs"]

const kinds: ReadonlyArray<string> = ["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"]
const codes: ReadonlyArray<string> = ["UNSET", "OK", "ERROR"]

const attributes = Schema.Record(Schema.String, Schema.Unknown)
const ids = { traceId: Schema.String, spanId: Schema.String }

const Span = Schema.Struct({
  ...ids,
  parentSpanId: Schema.optionalKey(Schema.String),
  name: Schema.String,
  kind: Schema.Int,
  startTimeUnixNano: Schema.String,
  endTimeUnixNano: Schema.String,
  status: Schema.Struct({ code: Schema.Int }),
  attributes,
  links: Schema.Array(Schema.Struct(ids))
})
const Line = Schema.Struct({
  traceId: Schema.optionalKey(Schema.String),
  spanId: Schema.optionalKey(Schema.String),
  severityText: Schema.String,
  body: Schema.String,
  attributes
})

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

/** A message with attributes and bodies as plain values. */
const plain = (text: string): unknown =>
  JSON.parse(text, (name, value) => {
    if (name === "body") return String(heldBy(value))
    if (name !== "attributes") return value
    return Object.fromEntries(Array.from(value, ({ key, value: held }) => [key, heldBy(held)]))
  })

const spansOf = ({ resourceSpans = [] }: typeof Export.Type) =>
  resourceSpans.flatMap((of) =>
    of.scopeSpans
      .flatMap(({ spans }) => spans)
      .map((span) => ({
        ...span,
        kind: kinds[span.kind],
        status: codes[span.status.code],
        resource: of.resource.attributes
      }))
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

  const take = ({ headers, url: path = "/" }: IncomingMessage, body: Buffer) => {
    if (!paths.includes(path)) throw new Error(`Nothing is at ${path}`)
    seen.push({ path, headers, body })
    const found = decode(plain(body.toString()))
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
