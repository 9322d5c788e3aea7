/** The service in this process over a database with the demo data, and what it exports to a collector. */
import { createHash } from "node:crypto"
import { assert } from "@effect/vitest"
import { Context, Duration, Effect, Layer, Option, Redacted, References, Schema } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { OtlpExporter } from "effect/observability"
import * as App from "../../../src/app/App.ts"
import * as Worker from "../../../src/deletions/Worker.ts"
import { HealthChecks } from "../../../src/operations/HealthChecks.ts"
import * as Otlp from "../../../src/observability/Otlp.ts"
import { PspClient } from "../../../src/psp/PspClient.ts"
import * as Server from "../../../src/app/Server.ts"
import { eventually } from "../../support/eventually.ts"
import { InProcess } from "../../support/inProcess.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** Secrets that no collector may see. */
export const secrets = { stripe: "sk_test_0123456789abcdefghijkl", collector: "the-key-of-the-collector" }

const attributes = Schema.Record(Schema.String, Schema.Unknown)
const ids = { traceId: Schema.String, spanId: Schema.String }
const listOf = <F extends Schema.Struct.Fields>(fields: F) => Schema.Array(Schema.Struct(fields))

const Span = Schema.Struct({
  ...ids,
  parentSpanId: Schema.optionalKey(Schema.String),
  name: Schema.String,
  kind: Schema.Int,
  startTimeUnixNano: Schema.String,
  endTimeUnixNano: Schema.String,
  status: Schema.Struct({ code: Schema.Int }),
  attributes
})
export type Span = typeof Span.Type

/** The kinds of spans, and the code of a failure, in the protocol. */
export const [server, client, consumer, failure] = [2, 3, 5, 2]

const Line = Schema.Struct({
  traceId: Schema.optionalKey(Schema.String),
  spanId: Schema.optionalKey(Schema.String),
  severityText: Schema.String,
  body: Schema.String,
  attributes
})

const Export = Schema.Struct({
  resourceSpans: Schema.optionalKey(listOf({ scopeSpans: listOf({ spans: Schema.Array(Span) }) })),
  resourceLogs: Schema.optionalKey(
    listOf({ resource: Schema.Struct({ attributes }), scopeLogs: listOf({ logRecords: Schema.Array(Line) }) })
  )
})
const decode = Schema.decodeUnknownEffect(Export)

/** The value of an object such as `{ intValue: "1" }`. */
const valueOf = (held: object) => {
  const [[type, value] = ["", undefined]] = Object.entries(held)
  return type === "intValue" ? Number(value) : value
}

/** A message with attributes and bodies as plain values. */
const plain = (text: string): unknown =>
  JSON.parse(text, (name, value) => {
    if (name === "body") return String(valueOf(value))
    if (name !== "attributes") return value
    return Object.fromEntries(Array.from(value, ({ key, value: held }) => [key, valueOf(held)]))
  })

/** The requests that a collector got. */
export class Collector extends Context.Service<
  Collector,
  Array<{ readonly text: string; readonly headers: Readonly<Record<string, string | undefined>> }>
>()("practice-data/test/integration/observability/Collector") {
  static readonly layer = Layer.sync(Collector, () => [])

  /** The client of the exporter. */
  static readonly client = Layer.effect(
    HttpClient.HttpClient,
    Effect.map(Collector, (seen) =>
      HttpClient.make((request) => {
        const text = request.body._tag === "Uint8Array" ? Buffer.from(request.body.body).toString() : ""
        seen.push({ text, headers: request.headers })
        return Effect.succeed(HttpClientResponse.fromWeb(request, new Response("{}")))
      })
    )
  )

  /** All exports so far. */
  static readonly exports = Effect.gen(function* () {
    yield* (yield* OtlpExporter.Flusher).flush
    return yield* Effect.forEach(yield* Collector, ({ text }) => Effect.orDie(decode(plain(text))))
  })

  static readonly spans = Effect.map(Collector.exports, (all) =>
    all.flatMap(({ resourceSpans = [] }) => resourceSpans.flatMap((of) => of.scopeSpans.flatMap(({ spans }) => spans)))
  )

  /** The log lines, each with the attributes of its resource. */
  static readonly lines = Effect.map(Collector.exports, (all) =>
    all.flatMap(({ resourceLogs = [] }) =>
      resourceLogs.flatMap(({ resource, scopeLogs }) =>
        scopeLogs.flatMap(({ logRecords }) => logRecords).map((line) => ({ ...line, resource: resource.attributes }))
      )
    )
  )
}

const exporting = Layer.merge(
  Otlp.layerNoDeps({
    otlpEndpoint: Option.some(new URL("http://collector")),
    otlpHeaders: Redacted.make({ "x-api-key": secrets.collector }),
    otlpServiceName: "practice-data",
    traceRatio: 1
  }),
  Layer.succeed(References.TracerEnabled, false)
).pipe(Layer.provide(Collector.client))

const unreachable = PspClient.layerStripe({
  secretKey: Redacted.make(secrets.stripe),
  apiUrl: Option.some(new URL("http://127.0.0.1:1"))
})

const delay = Duration.zero

const services = Layer.mergeAll(App.services, App.intakeServices(delay), HealthChecks.layerMemory).pipe(
  Layer.provide([TestDatabase.shared, unreachable])
)

const routes = Layer.merge(Server.dataApiRoutes, Server.intakeRoutes(delay))
const served = Layer.mergeAll(routes, Server.operationsRoutes, Server.middleware)

const inProcess = Layer.unwrap(
  Effect.map(Effect.context<Layer.Services<typeof services>>(), (context) =>
    InProcess.layerOf(served.pipe(Layer.provide(services), Layer.provide(Layer.succeedContext(context))))
  )
)

/** All of it. Tasks are due at once. */
export const traced = Layer.merge(inProcess, services).pipe(
  Layer.provideMerge(exporting),
  Layer.provideMerge([TestDatabase.layerDemo, Collector.layer])
)

/** The spans that came in, once there is one that a test waits for. */
export const spansWith = Effect.fnUntraced(function* (what: string, isThere: (span: Span) => boolean) {
  yield* eventually(what, Collector.spans, (found) => found.some(isThere))
  return yield* Collector.spans
})

/** A span with those below it, by their names. */
interface Tree {
  readonly [name: string]: ReadonlyArray<Tree>
}

/** The tree of a trace: each span by its name, with those below it in the order of their beginnings. */
const treeOf = (spans: ReadonlyArray<Span>, { name, spanId }: Span): Tree => ({
  [name]: spans
    .filter(({ parentSpanId }) => parentSpanId === spanId)
    .toSorted((one, other) => Number(BigInt(one.startTimeUnixNano) - BigInt(other.startTimeUnixNano)))
    .map((span) => treeOf(spans, span))
})

let made = 0

/** A sampled trace of a caller's own, and the header that names it. */
export const newCaller = () => {
  const traceId = createHash("md5").update(`trace ${++made}`).digest("hex")
  const spanId = traceId.slice(16).split("").toReversed().join("")
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-01` } }
}

/** The spans of the trace of a caller, whose first span here has ended. The first use of a key is recorded at any time. */
export const traceOf = Effect.fnUntraced(function* (callerId: string) {
  const isRoot = ({ kind, traceId }: Span) => kind === server && traceId === callerId
  const spans = yield* spansWith("the trace", isRoot)
  const root = spans.find(isRoot)
  assert.isDefined(root)
  const all = spans.filter(
    (span) => span.traceId === callerId && span.attributes["db.query.text"] !== "select touch_api_key($1)"
  )
  return { all, root, tree: treeOf(all, root) }
})

/** Works until no task is due. */
export const round = Effect.flatMap(TestDatabase, ({ sql }) => {
  const open = sql`select from deletion_tasks where state in ('scheduled', 'running') and due_at <= now()`
  return Effect.raceFirst(
    Worker.run(2),
    eventually("the end of the tasks", open, ({ length }) => length === 0)
  )
})

export const delivery = (name: string) => ({
  path: "/api/v1/invoice-deletions",
  json: { invoices: [{ invoice_id: "invoice_oakridge_0001", clinic_id: null, client_id: null }] },
  headers: { "idempotency-key": name, "x-organization-id": "org_oakridge" }
})
