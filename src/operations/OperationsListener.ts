/**
 * The operators' listener: metrics, health and the operators' pages on a server of their own. It opens before the service
 * is ready, to show why it is not, and closes last.
 */
import { Context, Duration, Effect, flow, identity, Layer, Schema } from "effect"
import { HttpRouter, HttpServer, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { cacheable } from "../http/Html.ts"
import { Listener } from "../http/Listener.ts"
import { unexpectedErrors } from "../http/Middleware.ts"
import { explainListen } from "../process/Failure.ts"
import { guard } from "./Access.ts"
import { Figures, type Snapshot } from "./Figures.ts"
import { iso } from "./Format.ts"
import type { OperatorStore } from "./OperatorStore.ts"
import * as Credentials from "./pages/Credentials.ts"
import * as Deletions from "./pages/Deletions.ts"
import * as Overview from "./pages/Overview.ts"
import { style } from "./Style.ts"

/** `/health`: the process, and each dependency with its state. */
const healthReport = ({ checks, pid, ready, roles, startedAt, version }: Snapshot) => {
  const isWell = ready && Object.values(checks).every(({ status }) => status === "pass")
  return { status: isWell ? "pass" : "warn", version, pid, roles, started: iso(startedAt), ready, checks }
}

const exposition = (text: string) =>
  HttpServerResponse.text(text, { contentType: "text/plain; version=0.0.4; charset=utf-8" })

type Services = Figures | OperatorStore
type OfRequest = HttpServerRequest.HttpServerRequest | HttpServerRequest.ParsedSearchParams
type Handler = Effect.Effect<HttpServerResponse.HttpServerResponse, never, Services | OfRequest>

const handlers: ReadonlyArray<readonly [HttpRouter.PathInput, Handler]> = [
  ["/", Effect.succeed(HttpServerResponse.redirect("/ops", { status: 303 }))],
  Overview.overview,
  Deletions.list,
  Deletions.page,
  Credentials.keys,
  Credentials.secrets,
  Credentials.audit,
  ["/ops/style.css", cacheable(HttpServerResponse.text(style, { contentType: "text/css; charset=utf-8" }))],
  ["/health", Figures.use(({ latest }) => Effect.map(latest, flow(healthReport, HttpServerResponse.jsonUnsafe)))],
  ["/metrics", Figures.use(({ metrics }) => Effect.map(metrics, exposition))]
]

/** The routes, over their services. */
export const routes = Layer.mergeAll(
  HttpRouter.addAll(
    Effect.map(Effect.context<Services>(), (services) =>
      handlers.map(([path, handler]) => HttpRouter.route("GET", path, Effect.provideContext(handler, services)))
    )
  ),
  HttpRouter.middleware(flow(unexpectedErrors, guard), { global: true })
)

export class CannotListen extends Schema.TaggedError<CannotListen>()("CannotListen", { message: Schema.String }) {}

/** Enough for a few operators and monitors. */
const limits = {
  maxConnections: 50,
  headersTimeout: Duration.seconds(5),
  bodyTimeout: Duration.seconds(5),
  idleTimeout: Duration.seconds(30)
} as const

export class OperatorsPage extends Context.Service<OperatorsPage, { readonly url: string }>()(
  "practice-data/operations/OperationsListener/OperatorsPage"
) {}

export const cannotListen = ({ cause }: { readonly cause: unknown }) =>
  new CannotListen({ message: explainListen("The operators' listener", cause, "OPERATIONS_") })

/** Listens on an address. */
export const layer = (options: {
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
}) => {
  const listening = Layer.effect(
    OperatorsPage,
    Effect.map(HttpServer.HttpServer, ({ address }) => ({ url: `${HttpServer.formatAddress(address)}/ops` }))
  )
  const served = HttpRouter.serve(routes, {
    disableLogger: true,
    disableListenLog: true,
    // As in Server.serve.
    middleware: identity
  })
  // Fresh: a router is shared by all that are built together, and the service has one of its own.
  return Layer.fresh(Layer.provide(listening, served)).pipe(
    Layer.provide(Listener.layer({ ...limits, ...options })),
    Layer.catchTag("ServeError", (error) => Layer.effect(OperatorsPage, Effect.fail(cannotListen(error))))
  )
}
