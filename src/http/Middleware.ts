/** The middleware around every request, by the paths that are served. */
import { Cause, Clock, Context, Effect, Exit, Layer, Option, References, type Tracer } from "effect"
import { HttpMiddleware, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Accounting } from "../database/Store.ts"
import { compress } from "./Compression.ts"
import * as RequestFacts from "../observability/RequestFacts.ts"
import * as Tracing from "../observability/Tracing.ts"
import { documentPaths } from "./PublicPages.ts"
import { requestIdOf, wasRefused } from "./Refusal.ts"

type Endpoint = Readonly<Record<"path" | "method", string>>

/** The part of an `HttpApi` that has its paths. */
interface Api {
  readonly groups: Readonly<Record<string, { readonly endpoints: Readonly<Record<string, Endpoint>> }>>
}

/** The methods of each path. A path with GET has HEAD too. */
type Paths = ReadonlyMap<string, ReadonlyArray<string>>

const reading = ["GET", "HEAD"]

/** `/`, and the paths of APIs by their prefix, each with its documents beside its endpoints. */
export const pathsOf = (apis: Readonly<Record<string, Api>>): Paths => {
  const paths = new Map([["/", reading]])
  for (const [prefix, { groups }] of Object.entries(apis)) {
    for (const path of documentPaths) paths.set(`${prefix}${path}`, reading)
    for (const { endpoints } of Object.values(groups))
      for (const { method, path } of Object.values(endpoints))
        paths.set(`${prefix}${path}`, method === "GET" ? reading : [method])
  }
  return paths
}

const errorResponse = (status: number, detail: string, headers?: Readonly<Record<string, string>>) =>
  HttpServerResponse.jsonUnsafe({ detail }, { status, headers })

const notFound = errorResponse(404, "Not Found")

const lengthOf = ({ body }: HttpServerResponse.HttpServerResponse) =>
  body._tag === "Empty" ? 0 : (body.contentLength ?? 0)

const isRouteNotFound = (error: unknown) =>
  HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound"

/** Responds 404 where this process has no such route, and 500 to a bug, which is logged and not shown. */
export const unexpectedErrors = HttpMiddleware.make((httpEffect) =>
  Effect.catchCause(httpEffect, (cause) => {
    if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause)
    if (isRouteNotFound(Cause.squash(cause))) return Effect.succeed(notFound)
    return Effect.as(Effect.logError("A request failed", cause), errorResponse(500, "Internal Server Error"))
  })
)

/** The response to an unknown path, or to a method that a path does not have. */
const refused = (methods: ReadonlyArray<string> | undefined) =>
  methods === undefined ? notFound : errorResponse(405, "Method Not Allowed", { allow: methods.join(", ") })

/** Compresses the response of a route if the client accepts it. Responses that may have records are not cached. */
const completed =
  ({ headers, method }: HttpServerRequest.HttpServerRequest, id: string) =>
  (response: HttpServerResponse.HttpServerResponse) =>
    HttpServerResponse.setHeaders(
      compress(headers["accept-encoding"])(response),
      method === "POST"
        ? { "cache-control": "no-store", "x-content-type-options": "nosniff", "x-request-id": id }
        : { "x-request-id": id }
    )

/** Handles a request whose handlers and statements can note facts, and whose log lines have its id. */
const withFacts = <A, E, R>(handled: Effect.Effect<A, E, R>, facts: RequestFacts.Account, id: string) =>
  Effect.updateContext(handled, (outer: Context.Context<R>) =>
    outer.pipe(
      Context.add(RequestFacts.Note, facts.note),
      Context.add(Accounting, (statement) => {
        if ("refused" in statement) facts.refusal = statement.refused === "Busy" ? "load" : "outage"
        else facts.addStatement(statement.took, statement.waited)
      }),
      Context.add(References.CurrentLogAnnotations, {
        ...Context.get(outer, References.CurrentLogAnnotations),
        request_id: id
      })
    )
  )

/** A middleware that needs the request and adds no error. */
interface Around {
  <E, R>(
    httpEffect: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest>
  ): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest>
}

/** Looks up the key of a request before it is handled. */
interface Identify {
  <A, E, R>(
    handle: (hasKey: boolean) => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R | HttpServerRequest.HttpServerRequest>
}

/**
 * Gives each request an id, which is the `x-request-id` of the response and the `request_id` of log lines, and facts,
 * which observers get with the response. Paths match exactly; the router alone would accept several spellings of one.
 *
 * @param keyed the endpoints below the prefix have keys
 * @param crossOrigin for pages of other origins
 */
export const around = (
  paths: Paths,
  keyed: { readonly prefix: string; readonly identify: Identify },
  crossOrigin?: Around
) =>
  HttpMiddleware.make((httpEffect) => {
    const handled = unexpectedErrors(httpEffect)
    return Effect.contextWith((context: Context.Context<HttpServerRequest.HttpServerRequest>) => {
      const request = Context.get(context, HttpServerRequest.HttpServerRequest)
      const { headers, method, remoteAddress, url } = request
      const clock = Context.get(context, Clock.Clock)
      const observers = Context.get(context, RequestFacts.RequestObservers)
      const id = requestIdOf(headers["x-request-id"])
      const path = RequestFacts.pathOf(url)
      const methods = paths.get(path)
      const facts = new RequestFacts.Account({
        id,
        method,
        path,
        endpoint: methods === undefined ? "other" : path,
        userAgent: headers["user-agent"],
        address: Option.getOrUndefined(remoteAddress)
      })
      const started = RequestFacts.now(clock)
      const sampling = RequestFacts.sample(context, request, facts)
      let span: Tracer.Span | undefined
      const answer = (hasKey: boolean) => {
        span = hasKey ? sampling?.withKey : sampling?.withoutKey
        facts.trace = span
        return methods?.includes(method) === true
          ? Effect.map(withFacts(Tracing.within(span, handled), facts, id), completed(request, id))
          : Effect.succeed(HttpServerResponse.setHeader(refused(methods), "x-request-id", id))
      }
      const respond = (hasKey: boolean) => {
        if (crossOrigin === undefined || !path.startsWith("/api/")) return answer(hasKey)
        if (method !== "OPTIONS") return crossOrigin(answer(hasKey))
        // A preflight has no key.
        const isPreflight = methods !== undefined && headers["access-control-request-method"] !== undefined
        return isPreflight
          ? Effect.map(crossOrigin(answer(false)), HttpServerResponse.setHeader("x-request-id", id))
          : answer(false)
      }
      const response =
        sampling?.withKey !== sampling?.withoutKey && facts.endpoint.startsWith(keyed.prefix)
          ? keyed.identify(respond)
          : respond(false)
      // The observers are synchronous, and called without an effect of their own.
      return Effect.onExitPrimitive(response, (exit): Effect.Effect<void> | undefined => {
        facts.duration = RequestFacts.now(clock) - started
        facts.status = Exit.isSuccess(exit) ? exit.value.status : 499
        facts.bytes = Exit.isSuccess(exit) && method !== "HEAD" ? lengthOf(exit.value) : 0
        // A statement was refused, and run again.
        if (facts.status < 400) facts.refusal = undefined
        if (Exit.isSuccess(exit) || !wasRefused(request.source)) for (const observer of observers) observer(facts)
        if (span !== undefined) RequestFacts.endSpan(context, span, facts)
        return undefined
      })
    })
  })

/** The same around the requests below these prefixes, and nothing around any other. */
export const below = (prefixes: ReadonlyArray<string>, middleware: Around): Around =>
  HttpMiddleware.make((httpEffect) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ url }) =>
      prefixes.some((prefix) => url.startsWith(`${prefix}/`)) ? middleware(httpEffect) : httpEffect
    )
  )

/**
 * Handlers that are built in a part of the context around them. Handlers of an HttpApi run in the context in which they
 * are built, merged into that of each request: the part that is left out is not copied for each request.
 */
export const pruneContext = <A, E, R>(
  handlers: Layer.Layer<A, E, R>,
  prune: (context: Context.Context<R>) => Context.Context<R>
): Layer.Layer<A, E, R> =>
  Layer.fromBuild((memoMap, scope) => Effect.updateContext(Layer.buildWithMemoMap(handlers, memoMap, scope), prune))
