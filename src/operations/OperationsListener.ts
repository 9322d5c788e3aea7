/**
 * The operators' listener: metrics and the operators' page on a server of their own. It opens before the service is ready,
 * to show why it is not, and closes last. Its page is for this machine alone: an SSH tunnel, `kubectl port-forward` and a
 * proxy that authenticates reach it too. Monitors read metrics from anywhere that reaches the port.
 */
import { Context, Duration, Effect, flow, Layer, Option, Schema } from "effect"
import { HttpMiddleware, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { PrometheusMetrics } from "effect/observability"
import type { TaskDatabase } from "../database/Database.ts"
import { secured } from "../http/Html.ts"
import { Listener } from "../http/Listener.ts"
import { unexpectedErrors } from "../http/Middleware.ts"
import type { Recent } from "./Recent.ts"
import { explainListen } from "../process/Failure.ts"
import { HealthChecks } from "./HealthChecks.ts"
import * as Page from "./Page.ts"
import { isLoopback } from "./Settings.ts"

type Request = HttpServerRequest.HttpServerRequest

const isForMonitors = ({ url }: Request) => /^\/metrics(\?|$)/.test(url)

/** True if `Host` names this machine. Another name that resolves to it would make a foreign page one of ours. */
const namesLoopback = ({ headers }: Request) => {
  const name = /^(?:\[([\da-f:.]+)\]|([^:]*))(?::\d+)?$/i.exec(headers["host"] ?? "")
  return isLoopback((name?.[1] ?? name?.[2] ?? "").toLowerCase())
}

const isLocal = (request: Request) =>
  namesLoopback(request) &&
  Option.match(request.remoteAddress, {
    onNone: () => true,
    onSome: (address) => isLoopback(address.replace(/^::ffff:/, ""))
  })

const refused = HttpServerResponse.text(
  "The operators' page is for this machine alone, by the hosts localhost, 127.0.0.1 and ::1. Use an SSH tunnel or kubectl port-forward, or a proxy on this machine that authenticates its clients and sends one of these as Host.\n",
  { status: 403 }
)

/** Refuses requests without access, and protects responses. */
const guard = HttpMiddleware.make((httpEffect) =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const response = isForMonitors(request) || isLocal(request) ? yield* httpEffect : refused
    return secured(HttpServerResponse.setHeaders(response, { "cache-control": "no-store", ...response.headers }))
  })
)

/** The services of requests are those of the layer: also the registry of metrics. */
const services = Layer.effectContext(Effect.context<HealthChecks | Recent | TaskDatabase>())

/** The routes, over their services. */
export const routes = Layer.mergeAll(
  HttpRouter.addAll([
    HttpRouter.route("GET", "/", Effect.succeed(HttpServerResponse.redirect("/ops", { status: 303 }))),
    Page.route
  ]),
  PrometheusMetrics.layerHttp(),
  HttpRouter.middleware(flow(unexpectedErrors, guard), { global: true })
).pipe(HttpRouter.provideRequest(services))

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

/** Listens on an address. */
export const layer = (options: {
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
}) => {
  const listening = Layer.effect(
    OperatorsPage,
    Effect.map(Listener, ({ url }) => ({ url: `${url}/ops` }))
  )
  const listener = Listener.layer(HttpRouter.toHttpEffect(routes), { ...limits, ...options })
  // Fresh: a router is shared by all that are built together, and the service has one of its own.
  return Layer.fresh(Layer.provide(listening, listener)).pipe(
    Layer.catchTag("ServeError", ({ cause }) => {
      const message = explainListen("The operators' listener", cause, "OPERATIONS_")
      return Layer.effect(OperatorsPage, Effect.fail(new CannotListen({ message })))
    })
  )
}
