/** What happens around every request: middleware of the HTTP server, each for one thing. */
import { Cause, Clock, Context, Effect, Exit, Option, References } from "effect"
import { HttpMiddleware, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { compress } from "./Compression.ts"
import * as RequestFacts from "../observability/RequestFacts.ts"
import * as ServerSpan from "../observability/ServerSpan.ts"
import type { Paths } from "./Paths.ts"
import { wasRefused } from "./Refusal.ts"
import { requestIdOf } from "./RequestId.ts"

const errorResponse = (status: number, detail: string, headers?: Readonly<Record<string, string>>) =>
  HttpServerResponse.jsonUnsafe({ detail }, { status, headers })

const notFound = errorResponse(404, "Not Found")

const lengthOf = ({ body }: HttpServerResponse.HttpServerResponse) =>
  body._tag === "Empty" ? 0 : (body.contentLength ?? 0)

/** The status of a request whose client left before the response was there. */
const clientLeft = 499

/**
 * Gives the request an id, which the response has as `x-request-id` and log lines as `request_id`, and facts, which
 * observers see once the response is there.
 */
export const observed = (paths: Paths) =>
  HttpMiddleware.make((httpEffect) =>
    Effect.contextWith((context: Context.Context<HttpServerRequest.HttpServerRequest>) => {
      const request = Context.get(context, HttpServerRequest.HttpServerRequest)
      const { headers, method, remoteAddress, url } = request
      const clock = Context.get(context, Clock.Clock)
      const observers = Context.get(context, RequestFacts.RequestObservers)
      const id = requestIdOf(headers["x-request-id"])
      const path = RequestFacts.pathOf(url)
      const facts = RequestFacts.make({
        id,
        method,
        path,
        endpoint: paths.has(path) ? path : "other",
        userAgent: headers["user-agent"],
        address: Option.getOrUndefined(remoteAddress),
        started: RequestFacts.now(clock)
      })
      const span = ServerSpan.start(context, request, facts)
      const annotations = { ...Context.get(context, References.CurrentLogAnnotations), request_id: id }
      const response = ServerSpan.within(span, httpEffect).pipe(
        Effect.provideService(RequestFacts.CurrentRequest, facts),
        Effect.provideService(References.CurrentLogAnnotations, annotations),
        Effect.map(HttpServerResponse.setHeader("x-request-id", id))
      )
      // The observers are synchronous, and called without an effect of their own.
      return Effect.onExitPrimitive(response, (exit): Effect.Effect<void> | undefined => {
        facts.duration = RequestFacts.now(clock) - facts.started
        facts.status = Exit.isSuccess(exit) ? exit.value.status : clientLeft
        facts.bytes = Exit.isSuccess(exit) && method !== "HEAD" ? lengthOf(exit.value) : 0
        // A part of it was refused, and it was answered all the same.
        if (facts.status < 400) facts.refusal = undefined
        if (Exit.isSuccess(exit) || !wasRefused(request.source)) for (const observer of observers) observer(facts)
        if (span !== undefined) ServerSpan.end(context, span, facts)
        return undefined
      })
    })
  )

/** Shows requests to one more observer. Goes around `observed`. */
export const alsoObservedBy = (observer: (facts: Readonly<RequestFacts.RequestFacts>) => void) =>
  HttpMiddleware.make((httpEffect) =>
    Effect.updateService(httpEffect, RequestFacts.RequestObservers, (observers) => [...observers, observer])
  )

/**
 * Responds 404 to a path that is not among these, and 405 to another method than the path has. Paths match exactly; the
 * router alone would accept several spellings of one.
 */
export const onlyPaths = (paths: Paths) =>
  HttpMiddleware.make((httpEffect) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ method, url }) => {
      const methods = paths.get(RequestFacts.pathOf(url))
      if (methods === undefined) return Effect.succeed(notFound)
      if (methods.includes(method)) return httpEffect
      return Effect.succeed(errorResponse(405, "Method Not Allowed", { allow: methods.join(", ") }))
    })
  )

const privateJson = HttpServerResponse.setHeaders({ "cache-control": "no-store", "x-content-type-options": "nosniff" })

/** Lets no one store the response to a POST, which may hold records, or take it for anything but JSON. */
export const privateResponses = HttpMiddleware.make((httpEffect) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ method }) =>
    method === "POST" ? Effect.map(httpEffect, privateJson) : httpEffect
  )
)

/** Compresses the response where the client accepts it and it pays. */
export const compression = HttpMiddleware.make((httpEffect) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) =>
    Effect.map(httpEffect, compress(headers["accept-encoding"]))
  )
)

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

/** A middleware that needs the request and adds no error. */
interface Around {
  <E, R>(
    httpEffect: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest>
  ): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest>
}

/** The same around the requests below these prefixes, and nothing around any other. */
export const below = (prefixes: ReadonlyArray<string>, around: Around): Around =>
  HttpMiddleware.make((httpEffect) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ url }) =>
      prefixes.some((prefix) => url.startsWith(`${prefix}/`)) ? around(httpEffect) : httpEffect
    )
  )
