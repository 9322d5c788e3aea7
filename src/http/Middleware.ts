/** The middleware around every request, by the paths that are served. */
import { Cause, Context, Effect, Exit, Layer, Option, type Types } from "effect"
import { HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { bugResponse } from "../api/Errors.ts"
import * as Tracing from "../observability/Tracing.ts"
import { documentPaths } from "./PublicPages.ts"
import * as Exchange from "./Exchange.ts"

type Request = HttpServerRequest.HttpServerRequest

type Endpoint = Readonly<Record<"path" | "method", string>>

/** The part of an `HttpApi` that has its paths. */
interface Api {
  readonly groups: Readonly<Record<string, { readonly endpoints: Readonly<Record<string, Endpoint>> }>>
}

/** The methods of each path. A path with GET has HEAD too. */
type Paths = ReadonlyMap<string, ReadonlyArray<string>>

const reading = ["GET", "HEAD"]

/** `/`, and the paths of APIs by their prefix, each with its documents beside its endpoints. */
export const servedPaths = (apis: Readonly<Record<string, Api>>): Paths => {
  const paths = new Map([["/", reading]])
  for (const [prefix, { groups }] of Object.entries(apis)) {
    for (const path of documentPaths) paths.set(`${prefix}${path}`, reading)
    for (const { endpoints } of Object.values(groups))
      for (const { method, path } of Object.values(endpoints))
        paths.set(`${prefix}${path}`, method === "GET" ? reading : [method])
  }
  return paths
}

const statusResponse = (status: number, more?: Readonly<Record<string, string>>) => {
  const { body, headers } = Exchange.statusError(status)
  return HttpServerResponse.jsonUnsafe(body, { status, headers: { ...headers, ...more } })
}

const notFound = statusResponse(404)

/** Responds 404 where this process has no such route, and 500 to a bug, which is logged and not shown. */
export const unexpectedErrors = <E, R>(handled: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
  Effect.catchCause(handled, (cause) => {
    if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause)
    const error = Cause.squash(cause)
    if (HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound")
      return Effect.succeed(notFound)
    return Effect.as(Effect.logError("A request failed", cause), bugResponse)
  })

/** The response to an unknown path, or to a method that a path does not have. */
const refused = (methods: ReadonlyArray<string> | undefined) =>
  methods === undefined ? notFound : statusResponse(405, { allow: methods.join(", ") })

/** The response of a route, whose errors are handled further out. */
export type Handled<R = never> = Effect.Effect<HttpServerResponse.HttpServerResponse, Types.unhandled, R>

/** The endpoints below a prefix, whose API keys are looked up before a request is handled. */
interface Keyed {
  readonly prefix: string
  readonly lookUp: ((handled: Handled) => Handled<Request>) | undefined
}

/**
 * Gives each request an id, which is the `x-request-id` of the response and the `request_id` of log lines, and facts,
 * which observers get with the response. Paths match exactly; the router alone would accept several spellings of one.
 */
export const around =
  (paths: Paths, { lookUp, prefix }: Keyed) =>
  (route: Handled) =>
    Effect.contextWith((context: Context.Context<Request>) => {
      const { headers, method, remoteAddress, source, url } = Context.get(context, HttpServerRequest.HttpServerRequest)
      const [path = ""] = url.split("?", 1)
      const methods = paths.get(path)
      const endpoint = methods === undefined ? "other" : path
      const address = Option.getOrUndefined(remoteAddress)
      const exchange = Exchange.begin(context, { method, path, endpoint, address }, headers)
      const isKeyed = method === "POST" && endpoint.startsWith(prefix) && lookUp !== undefined
      const isServed = methods?.includes(method) === true
      const handled = isServed ? (isKeyed ? lookUp(route) : route) : Effect.succeed(refused(methods))
      return Tracing.within(exchange.trace, unexpectedErrors(handled)).pipe(
        Effect.updateContext((outer: Context.Context<Request>) => Exchange.provide(outer, exchange)),
        Effect.map((response) => Exchange.complete(response, exchange)),
        Effect.onExit((exit) =>
          Effect.sync(() => Exchange.conclude(context, exchange, Option.getOrUndefined(Exit.getSuccess(exit)), source))
        )
      )
    })

/**
 * Builds handlers in a part of the context. Handlers of an HttpApi run in the context in which they were built, merged into
 * that of each request: what is left out is not copied for each request.
 */
export const pruneContext = <A, E, R>(
  handlers: Layer.Layer<A, E, R>,
  prune: (context: Context.Context<R>) => Context.Context<R>
): Layer.Layer<A, E, R> =>
  Layer.fromBuild((memoMap, scope) => Effect.updateContext(Layer.buildWithMemoMap(handlers, memoMap, scope), prune))
