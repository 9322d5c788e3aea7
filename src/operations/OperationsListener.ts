/**
 * The operators' listener: a server of its own beside the service's, for metrics, health and the operators' page. It is
 * there before the service is ready, since an operator wants to see why it is not, and until it has stopped.
 */
import { Context, Duration, Effect, Function, Layer, type Option, type Redacted, Schema } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { Listener } from "../http/Listener.ts"
import { unexpectedErrors } from "../http/Middleware.ts"
import { guard } from "./Access.ts"
import * as HealthRoute from "./HealthRoute.ts"
import * as MetricsRoute from "./MetricsRoute.ts"
import * as Pages from "./Pages.ts"
import { Token } from "./Token.ts"
import { Watch } from "./Watch.ts"

/** Where to listen, and what operators show to change something. */
export interface Options {
  readonly host: string
  /** 0 takes a free one. */
  readonly port: number
  readonly token: Option.Option<Redacted.Redacted>
}

/** The operators' listener cannot listen. */
export class CannotListen extends Schema.TaggedError<CannotListen>()("CannotListen", { message: Schema.String }) {}

/** A few operators and monitors need little. */
const limits = {
  maxConnections: 50,
  headersTimeout: Duration.seconds(5),
  bodyTimeout: Duration.seconds(5),
  idleTimeout: Duration.seconds(30)
} as const

/** What is served, over its services. */
export const routes = (host: string) =>
  Layer.mergeAll(
    Pages.layer,
    HealthRoute.layer,
    MetricsRoute.layer,
    HttpRouter.middleware(Function.flow(unexpectedErrors, guard(host)), { global: true })
  )

const reasonOf = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause))

/** Where the operators' page is. */
export class OperatorsPage extends Context.Service<OperatorsPage, { readonly url: string }>()(
  "practice-data/operations/OperationsListener/OperatorsPage"
) {}

/** Listens. */
export const layer = (options: Options) => {
  const listening = Layer.effect(
    OperatorsPage,
    Effect.map(HttpServer.HttpServer, ({ address }) => ({ url: `${HttpServer.formatAddress(address)}/ops` }))
  )
  const served = HttpRouter.serve(routes(options.host), {
    disableLogger: true,
    disableListenLog: true,
    // As in Server.serve.
    middleware: Function.identity
  })
  // Fresh: a router is shared by all that are built together, and the service has one of its own.
  return Layer.fresh(Layer.provide(listening, served)).pipe(
    Layer.provide([Listener.layer({ ...limits, ...options }), Watch.layer, Token.layer(options.token)]),
    Layer.catchTag("ServeError", ({ cause }) =>
      Layer.effect(
        OperatorsPage,
        Effect.fail(
          new CannotListen({
            message: `The operators' listener cannot listen: ${reasonOf(cause)}. Choose another address with OPERATIONS_HOST and OPERATIONS_PORT.`
          })
        )
      )
    )
  )
}
