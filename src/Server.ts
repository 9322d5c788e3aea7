/**
 * What is served: the routes of each role, their documentation pages, and what is answered when no endpoint answers.
 */
import { Cause, type Duration, Effect, Function, Layer } from "effect"
import { HttpRouter, HttpServerError, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder, HttpApiScalar, OpenApi } from "effect/http-api"
import { DataApi } from "./api/DataApi.ts"
import { IntakeApi, VersionOneApi } from "./api/IntakeApi.ts"
import { OperationsApi } from "./api/OperationsApi.ts"
import * as HealthHandlers from "./health/Handlers.ts"
import { compress } from "./http/Compression.ts"
import * as JsonBodyServer from "./http/JsonBodyServer.ts"
import { requestId } from "./http/RequestId.ts"
import * as IntakeHandlers from "./deletions/Handlers.ts"
import * as Signature from "./deletions/Signature.ts"
import * as AuthorizationServer from "./keys/AuthorizationServer.ts"
import * as PspHandlers from "./psp/Handlers.ts"
import * as RecordHandlers from "./records/Handlers.ts"

const mebibyte = 1024 * 1024

const under = (prefix: string) =>
  Layer.effect(
    HttpRouter.HttpRouter,
    Effect.map(HttpRouter.HttpRouter, (router) => router.prefixed(prefix))
  )

const dataApiPrefix = "/api/v3"
const operationsPrefix = "/api/v1"

/** The handlers of the data API with their middleware, over its services. */
export const dataApiHandlers = Layer.merge(RecordHandlers.layer, PspHandlers.layer).pipe(
  Layer.provideMerge([AuthorizationServer.layer, JsonBodyServer.layer({ maxBytes: mebibyte })])
)

/** The data API, its OpenAPI document and its documentation page. */
export const dataApiRoutes = Layer.mergeAll(
  HttpApiBuilder.layer(DataApi, { openapiPath: "/openapi.json" }),
  HttpApiScalar.layer(DataApi, { path: "/docs" })
).pipe(Layer.provide(dataApiHandlers), Layer.provide(under(dataApiPrefix)))

/**
 * The handlers of the intake with their middleware, over its services.
 *
 * @param delay from receiving a delivery to running it
 */
export const intakeHandlers = (delay: Duration.Duration) =>
  IntakeHandlers.layer(delay).pipe(
    Layer.provideMerge([
      Signature.layer,
      JsonBodyServer.layer({ maxBytes: 4 * mebibyte, isRaw: true, busy: IntakeHandlers.busy(delay) })
    ])
  )

/** The intake, its OpenAPI document and its documentation page. */
export const intakeRoutes = (delay: Duration.Duration) =>
  Layer.mergeAll(
    HttpApiBuilder.layer(IntakeApi),
    HttpRouter.add(
      "GET",
      "/openapi.json",
      Effect.sync(() => HttpServerResponse.jsonUnsafe(OpenApi.fromApi(VersionOneApi)))
    ),
    HttpApiScalar.layer(VersionOneApi, { path: "/docs" })
  ).pipe(Layer.provide(intakeHandlers(delay)), Layer.provide(under(operationsPrefix)))

/** Health and readiness. */
export const operationsRoutes = HttpApiBuilder.layer(OperationsApi).pipe(
  Layer.provide(HealthHandlers.layer),
  Layer.provide(under(operationsPrefix))
)

const detail = (status: number, text: string, headers: Record<string, string> = {}) =>
  HttpServerResponse.jsonUnsafe({ detail: text }, { status, headers })

interface Described {
  readonly groups: Readonly<
    Record<string, { readonly endpoints: Readonly<Record<string, { readonly path: string; readonly method: string }>> }>
  >
}

/** What a path answers to. */
interface Known {
  readonly methods: ReadonlyArray<string>
  readonly allow: string
  /** Headers of every answer. */
  readonly headers: Readonly<Record<string, string>>
}

const reading: Known = { methods: ["GET", "HEAD"], allow: "GET, HEAD", headers: {} }

// What may hold records of an organization is for the one who asked alone, and is the JSON that it says it is.
const posting: Known = {
  methods: ["POST"],
  allow: "POST",
  headers: { "cache-control": "no-store", "x-content-type-options": "nosniff" }
}

/** Each path of an API with what it answers to. */
const pathsOf = (api: Described, prefix: string): ReadonlyArray<readonly [path: string, known: Known]> =>
  Object.values(api.groups).flatMap((group) =>
    Object.values(group.endpoints).map(
      ({ path, method }) => [`${prefix}${path}`, method === "GET" ? reading : posting] as const
    )
  )

const paths = new Map([
  ...[dataApiPrefix, operationsPrefix].flatMap((prefix) => [
    [`${prefix}/openapi.json`, reading] as const,
    [`${prefix}/docs`, reading] as const
  ]),
  ...pathsOf(DataApi, dataApiPrefix),
  ...pathsOf(IntakeApi, operationsPrefix),
  ...pathsOf(OperationsApi, operationsPrefix)
])

const notFound = detail(404, "Not Found")

const isNotRouted = (error: unknown) =>
  HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound"

/**
 * Around every request: gives it an id, compresses the answer where that is asked for, and answers in the documented form when no endpoint does: 404, 405, and 500
 * for a bug, which is logged and not shown. A path is one spelling: the router alone would take several.
 */
export const envelope = HttpRouter.middleware(
  (answered) =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const id = requestId(request.headers["x-request-id"])
      const [path = ""] = request.url.split("?", 1)
      const known = paths.get(path)
      if (known === undefined) return HttpServerResponse.setHeader(notFound, "x-request-id", id)
      if (!known.methods.includes(request.method)) {
        return detail(405, "Method Not Allowed", { allow: known.allow, "x-request-id": id })
      }
      const response = yield* Effect.catchCause(answered, (cause) => {
        if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause)
        if (isNotRouted(Cause.squash(cause))) return Effect.succeed(notFound)
        return Effect.as(Effect.logError("A request failed", cause), detail(500, "Internal Server Error"))
      }).pipe(Effect.annotateLogs("request_id", id))
      const compressed = compress(response, request.headers["accept-encoding"])
      return HttpServerResponse.setHeaders(compressed, { ...known.headers, "x-request-id": id })
    }),
  { global: true }
)

/** The routes of the data API as they are served. */
export const routes = Layer.mergeAll(dataApiRoutes, envelope)

/** Serves routes. */
export const serve = <A, E, R>(served: Layer.Layer<A, E, R>) =>
  HttpRouter.serve(Layer.merge(served, envelope), {
    disableLogger: true,
    disableListenLog: true,
    // With a middleware, the fiber of a request ends with nothing rather than with the response, which it would else
    // keep in memory for as long as the server remembers the fiber.
    middleware: Function.identity
  })
