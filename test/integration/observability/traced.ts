/** The service in this process over a database with the demo data, a double of Stripe, and a double of a collector. */
import { createHash } from "node:crypto"
import { assert } from "@effect/vitest"
import { Duration, Effect, Layer, Option, Redacted, References } from "effect"
import { OtlpExporter } from "effect/observability"
import * as App from "../../../src/app/App.ts"
import * as Worker from "../../../src/deletions/Worker.ts"
import { layerShared } from "../../../src/database/Database.ts"
import { accounts } from "../../../src/demo/DemoProcessor.ts"
import { HealthChecks } from "../../../src/operations/HealthChecks.ts"
import * as Otlp from "../../../src/observability/Otlp.ts"
import { PspClient } from "../../../src/psp/PspClient.ts"
import * as Server from "../../../src/app/Server.ts"
import { eventually } from "../../support/eventually.ts"
import { InProcess } from "../../support/inProcess.ts"
import { OtlpCollector, type Span } from "./OtlpCollector.ts"
import { StripeDouble } from "../../support/StripeDouble.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** Secrets that no collector may see. */
export const secrets = { stripe: "sk_test_0123456789abcdefghijkl", collector: "the-key-of-the-collector" }

/** Exports to the collector. */
const exporting = Layer.unwrap(
  Effect.map(OtlpCollector, ({ url }) =>
    Layer.merge(
      Otlp.layer({
        otlpEndpoint: Option.some(new URL(url)),
        otlpHeaders: Redacted.make({ "x-api-key": secrets.collector }),
        otlpServiceName: "practice-data",
        traceRatio: 1
      }),
      Layer.succeed(References.TracerEnabled, false)
    )
  )
)

// Whether it is distributed is known from the start.
const databases = Layer.unwrap(
  Effect.flatMap(TestDatabase, ({ sql }) => Effect.as(sql.distribution.refresh, layerShared(sql)))
)

const processor = Layer.unwrap(
  Effect.map(StripeDouble, ({ url }) =>
    PspClient.layerStripe({ secretKey: Redacted.make(secrets.stripe), apiUrl: Option.some(url) })
  )
)

const delay = Duration.zero

const services = Layer.mergeAll(App.services, App.intakeServices(delay), HealthChecks.layerMemory).pipe(
  Layer.provide([databases, processor])
)

const routes = Layer.merge(Server.dataApiRoutes, Server.intakeRoutes(delay))
const served = Layer.mergeAll(routes, Server.operationsRoutes, Server.middleware)

const server = Layer.unwrap(
  Effect.map(Effect.context<Layer.Services<typeof services>>(), (context) =>
    InProcess.layerOf(served.pipe(Layer.provide(services), Layer.provide(Layer.succeedContext(context))))
  )
)

const stripe = StripeDouble.layer({ key: secrets.stripe, accounts, platform: "acct_platform" })

/** All of it. Tasks are due at once. */
export const traced = Layer.merge(server, services).pipe(
  Layer.provideMerge(exporting),
  Layer.provideMerge([TestDatabase.layerDemo, stripe, OtlpCollector.layer])
)

/** The spans that came in, once there is one that a test waits for. */
export const spansWith = Effect.fnUntraced(function* (what: string, isThere: (span: Span) => boolean) {
  const { spans } = yield* OtlpCollector
  // The service exports each few seconds.
  const { flush } = yield* OtlpExporter.Flusher
  yield* eventually(what, Effect.andThen(flush, spans), (found) => found.some(isThere))
  return yield* spans
})

/** A span with those below it, by their names. */
export interface Tree {
  readonly [name: string]: ReadonlyArray<Tree>
}

/** The tree of a trace: each span by its name, with those below it in the order of their beginnings. */
export const treeOf = (spans: ReadonlyArray<Span>, { name, spanId, traceId }: Span): Tree => ({
  [name]: spans
    .filter((span) => span.parentSpanId === spanId && span.traceId === traceId)
    .toSorted((one, other) => Number(BigInt(one.startTimeUnixNano) - BigInt(other.startTimeUnixNano)))
    .map((span) => treeOf(spans, span))
})

let made = 0

/** A trace of a caller's own, and the header that names it. */
export const callerOf = (flags: "00" | "01") => {
  const traceId = createHash("md5").update(`trace ${++made}`).digest("hex")
  const spanId = traceId.slice(16).split("").toReversed().join("")
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-${flags}` } }
}

/** The first use of a key on a day is recorded, sooner or later. */
const isOfUse = ({ attributes }: Span) => attributes["db.query.text"] === "select touch_api_key($1)"

const readOf = ({ attributes, parentSpanId }: Span) => {
  const text = String(attributes["db.query.text"])
  return /^(with k as|select t\.record) /.test(text) ? `${parentSpanId} ${text}` : undefined
}

/** True of the second run of a read: it is retried if it has no answer for 0.1 s on a shared connection. */
const isRepeated = (span: Span, index: number, all: ReadonlyArray<Span>) => {
  const read = readOf(span)
  return read !== undefined && all.findIndex((other) => readOf(other) === read) < index
}

/** The spans of the trace of a caller, whose first span here has ended. */
export const traceOf = Effect.fnUntraced(function* (callerId: string) {
  const isRoot = ({ kind, traceId }: Span) => kind === "SERVER" && traceId === callerId
  const spans = yield* spansWith("the trace", isRoot)
  const root = spans.find(isRoot)
  assert.isDefined(root)
  const all = spans
    .filter((span) => span.traceId === root.traceId && !isOfUse(span))
    .filter((span, index, every) => !isRepeated(span, index, every))
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

const deletions = { invoices: [{ invoice_id: "invoice_oakridge_0001", clinic_id: null, client_id: null }] }

export const delivery = (name: string) => ({
  path: "/api/v1/invoice-deletions",
  json: deletions,
  headers: { "idempotency-key": name, "x-organization-id": "org_oakridge" }
})
