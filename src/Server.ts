/**
 * The HTTP server: the routes, the documentation page, what is answered when no endpoint answers, and the listener.
 * The listener opens only when the services behind the routes are up.
 */
import { createServer } from "node:http"
import { randomUUID } from "node:crypto"
import { NodeHttpServer } from "@effect/platform-node"
import { Cause, Effect, Layer } from "effect"
import { HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder, HttpApiScalar } from "effect/http-api"
import { DataApi } from "./Api.ts"
import * as JsonBodyServer from "./Http/JsonBodyServer.ts"
import * as AuthorizationServer from "./Organization/AuthorizationServer.ts"
import * as RecordHandlers from "./Records/Handlers.ts"

const dataApiPrefix = "/api/v3"

const prefixed = (prefix: string) =>
  Layer.effect(
    HttpRouter.HttpRouter,
    Effect.map(HttpRouter.HttpRouter, (router) => router.prefixed(prefix))
  )

const maxDataApiBody = 1024 * 1024

const dataApi = Layer.mergeAll(
  HttpApiBuilder.layer(DataApi, { openapiPath: "/openapi.json" }),
  HttpApiScalar.layer(DataApi, { path: "/docs" })
).pipe(
  Layer.provide(RecordHandlers.layer),
  Layer.provide([AuthorizationServer.layer, JsonBodyServer.layer({ maxBytes: maxDataApiBody })]),
  Layer.provide(prefixed(dataApiPrefix))
)

const detail = (status: number, text: string, headers: Record<string, string> = {}) =>
  HttpServerResponse.text(JSON.stringify({ detail: text }), { status, headers, contentType: "application/json" })

const methods = new Map<string, string>([
  [`${dataApiPrefix}/openapi.json`, "GET"],
  [`${dataApiPrefix}/docs`, "GET"],
  ...Object.values(DataApi.groups).flatMap((group) =>
    Object.values(group.endpoints).map((endpoint) => [`${dataApiPrefix}${endpoint.path}`, endpoint.method] as const)
  )
])

const notRouted = (request: HttpServerRequest.HttpServerRequest) => {
  const [path = ""] = request.url.split("?", 1)
  const allowed = methods.get(path)
  return allowed === undefined ? detail(404, "Not Found") : detail(405, "Method Not Allowed", { allow: allowed })
}

const isNotRouted = (error: unknown) =>
  HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound"

const visibleAscii = /^[\x21-\x7e]{1,128}$/

/**
 * Around every request: gives it an id, and answers in the documented form when no endpoint does: 404, 405, and 500
 * for a bug, which is logged and not shown.
 */
const envelope = HttpRouter.middleware(
  (answered) =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const given = request.headers["x-request-id"]
      const id = given !== undefined && visibleAscii.test(given) ? given : randomUUID()
      const response = yield* Effect.catchCause(answered, (cause) => {
        if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause)
        if (isNotRouted(Cause.squash(cause))) return Effect.succeed(notRouted(request))
        return Effect.as(Effect.logError("A request failed", cause), detail(500, "Internal Server Error"))
      }).pipe(Effect.annotateLogs("request_id", id))
      return HttpServerResponse.setHeader(response, "x-request-id", id)
    }),
  { global: true }
)

/** All routes, over the services that answer them. */
export const routes = Layer.mergeAll(dataApi, envelope)

/** Listens on an address, once the services are up. */
export const layer = <Services, E, R>(
  address: { readonly host: string; readonly port: number },
  services: Layer.Layer<Services, E, R>
) =>
  HttpRouter.serve(routes, { disableLogger: true, disableListenLog: true }).pipe(
    Layer.provideMerge(NodeHttpServer.layer(createServer, { ...address, gracefulShutdownTimeout: "10 seconds" })),
    Layer.provide(services)
  )
