/** The service in this process over a database with the demo data, and the spans that it makes. */
import { createHash } from "node:crypto"
import { assert } from "@effect/vitest"
import { Duration, Effect, Layer, Option, Redacted, References, Tracer } from "effect"
import * as App from "../../../src/app/App.ts"
import { HealthChecks } from "../../../src/operations/HealthChecks.ts"
import * as Tracing from "../../../src/observability/Tracing.ts"
import { PspClient } from "../../../src/psp/PspClient.ts"
import * as Server from "../../../src/app/Server.ts"
import { eventually } from "../../support/eventually.ts"
import { InProcess } from "../../support/inProcess.ts"
import { Recorded } from "../../support/Recorded.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** A secret that is in no span. */
export const secret = "sk_test_0123456789abcdefghijkl"

/** As a process makes traces that exports them all. */
const tracing = Layer.unwrap(
  Effect.map(Recorded, ({ tracer }) =>
    Tracing.layer(1).pipe(
      Layer.provide(Layer.succeed(Tracer.Tracer, tracer)),
      Layer.merge(Layer.succeed(References.TracerEnabled, false))
    )
  )
)

const unreachable = PspClient.layerStripe({
  secretKey: Redacted.make(secret),
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
  Layer.provideMerge(tracing),
  Layer.provideMerge([TestDatabase.layerDemo, Recorded.layer])
)

/** The id of the span that a span is below, if there is one. */
export const parentOf = ({ parent }: Tracer.NativeSpan) =>
  Option.getOrUndefined(Option.map(parent, ({ spanId }) => spanId))

/** The spans that have ended, once there is one that a test waits for. */
export const spansWith = Effect.fnUntraced(function* (what: string, isThere: (span: Tracer.NativeSpan) => boolean) {
  const { spans } = yield* Recorded
  const ended = () => spans.filter(({ status }) => status._tag === "Ended")
  yield* eventually(what, () => ended().some(isThere))
  return ended()
})

/** A span with those below it, by their names. */
interface Tree {
  readonly [name: string]: ReadonlyArray<Tree>
}

/** The tree of a trace: each span by its name, with those below it in the order of their beginnings. */
const treeOf = (spans: ReadonlyArray<Tracer.NativeSpan>, { name, spanId }: Tracer.NativeSpan): Tree => ({
  [name]: spans.filter((span) => parentOf(span) === spanId).map((span) => treeOf(spans, span))
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
  const isRoot = ({ kind, traceId }: Tracer.NativeSpan) => kind === "server" && traceId === callerId
  const spans = yield* spansWith("the trace", isRoot)
  const root = spans.find(isRoot)
  assert.isDefined(root)
  const all = spans.filter(
    (span) => span.traceId === callerId && span.attributes.get("db.query.text") !== "select touch_api_key($1)"
  )
  return { all, root, tree: treeOf(all, root) }
})

export const delivery = (name: string) => ({
  path: "/api/v1/invoice-deletions",
  json: { invoices: [{ invoice_id: "invoice_oakridge_0001", clinic_id: null, client_id: null }] },
  headers: { "idempotency-key": name, "x-organization-id": "org_oakridge" }
})
