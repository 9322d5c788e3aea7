/** What happens around every request: middleware of the HTTP server, each for one thing. */
import { Cause, Effect } from "effect"
import { HttpMiddleware, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { compress } from "./Compression.ts"
import type { Paths } from "./Paths.ts"
import { requestIdOf } from "./RequestId.ts"

const errorResponse = (status: number, detail: string, headers?: Readonly<Record<string, string>>) =>
  HttpServerResponse.jsonUnsafe({ detail }, { status, headers })

const notFound = errorResponse(404, "Not Found")

/** Gives the request an id: the response has it as `x-request-id`, log lines as `request_id`. */
export const requestId = HttpMiddleware.make((httpEffect) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => {
    const id = requestIdOf(headers["x-request-id"])
    return Effect.map(
      Effect.annotateLogs(httpEffect, "request_id", id),
      HttpServerResponse.setHeader("x-request-id", id)
    )
  })
)

/**
 * Responds 404 to a path that is not among these, and 405 to another method than the path has. Paths match exactly; the
 * router alone would accept several spellings of one.
 */
export const onlyPaths = (paths: Paths) =>
  HttpMiddleware.make((httpEffect) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ method, url }) => {
      const methods = paths.get(url.split("?", 1)[0] ?? "")
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
