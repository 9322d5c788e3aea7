/** What is served: the routes of each role with their documentation, and the middleware around them. */
import {
  Context,
  type Duration,
  Effect,
  FileSystem,
  Function,
  Layer,
  Path,
  References,
  type Scope,
  Stdio,
  Terminal,
  type Types
} from "effect"
import {
  Etag,
  HttpMiddleware,
  HttpPlatform,
  HttpRouter,
  HttpServer,
  type HttpServerRequest,
  HttpServerResponse
} from "effect/http"
import { HttpApiBuilder, OpenApi } from "effect/http-api"
import { ChildProcessSpawner } from "effect/process"
import { DataApi } from "../api/DataApi.ts"
import { IntakeApi, VersionOneApi } from "../api/IntakeApi.ts"
import { OperationsApi } from "../api/OperationsApi.ts"
import { Accounting } from "../database/Store.ts"
import * as PublicPages from "../http/PublicPages.ts"
import * as JsonBodyServer from "../http/JsonBodyServer.ts"
import * as Middleware from "../http/Middleware.ts"
import { pathsOf } from "../http/Paths.ts"
import * as Surroundings from "../http/Surroundings.ts"
import * as DeletionHandlers from "../deletions/Handlers.ts"
import * as Signature from "../deletions/Signature.ts"
import { Note } from "../observability/RequestFacts.ts"
import * as RequestMetrics from "../observability/RequestMetrics.ts"
import * as Series from "../observability/Series.ts"
import * as AuthorizationServer from "../keys/AuthorizationServer.ts"
import * as PspHandlers from "../psp/Handlers.ts"
import * as RecordHandlers from "../records/Handlers.ts"
import { ChangeClock } from "../records/ChangeClock.ts"
import { handlers as healthHandlers, HealthChecks } from "../operations/HealthChecks.ts"
import { IntakeSecrets } from "../deletions/IntakeSecrets.ts"
import { Listener } from "../http/Listener.ts"
import { LogWriter } from "../observability/LogWriter.ts"
import { OrgResolver } from "../keys/OrgResolver.ts"
import { ProcessRuntime } from "../observability/ProcessRuntime.ts"
import { PspReads } from "../psp/PspReads.ts"
import { Recent } from "../observability/Recent.ts"
import { Repositories } from "../records/Repository.ts"
import { Scheduler } from "../deletions/Scheduler.ts"
import { TaskReads } from "../deletions/TaskReads.ts"

const mebibyte = 1024 * 1024

const prefixed = (prefix: string) =>
  Layer.effect(
    HttpRouter.HttpRouter,
    Effect.map(HttpRouter.HttpRouter, (router) => router.prefixed(prefix))
  )

/** Handlers that run traced or not, as their requests do. Where they are built, the tracer is off. */
const asRequested = <A, E, R>(handlers: Layer.Layer<A, E, R>) =>
  Surroundings.reduced(handlers, Context.omit(References.TracerEnabled))

const dataApiPrefix = "/api/v3"
const operationsPrefix = "/api/v1"

/** The handlers of the data API with their middleware, over its services. */
export const dataApiHandlers = Layer.mergeAll(RecordHandlers.layer, PspHandlers.layer, DeletionHandlers.tasks).pipe(
  Layer.provideMerge([AuthorizationServer.layer, JsonBodyServer.layer({ maxBytes: mebibyte })])
)

/** The data API, its OpenAPI document and its documentation page. */
export const dataApiRoutes = asRequested(
  Layer.mergeAll(
    HttpApiBuilder.layer(DataApi, { openapiPath: "/openapi.json" }),
    PublicPages.documentation(DataApi)
  ).pipe(Layer.provide(dataApiHandlers), Layer.provide(prefixed(dataApiPrefix)))
)

/**
 * The handlers of the intake with their middleware, over its services.
 *
 * @param delay from receiving a delivery to running it
 */
export const intakeHandlers = (delay: Duration.Duration) =>
  DeletionHandlers.intake(delay).pipe(
    Layer.provideMerge([
      Signature.layer,
      JsonBodyServer.layer({ maxBytes: 4 * mebibyte, isRaw: true, busy: DeletionHandlers.busy(delay) })
    ])
  )

/** The intake, its OpenAPI document and its documentation page. */
export const intakeRoutes = (delay: Duration.Duration) =>
  asRequested(
    Layer.mergeAll(
      HttpApiBuilder.layer(IntakeApi),
      HttpRouter.add(
        "GET",
        "/openapi.json",
        Effect.sync(() => HttpServerResponse.jsonUnsafe(OpenApi.fromApi(VersionOneApi)))
      ),
      PublicPages.documentation(VersionOneApi)
    ).pipe(Layer.provide(intakeHandlers(delay)), Layer.provide(prefixed(operationsPrefix)))
  )

/** Health and readiness. */
export const operationsRoutes = HttpApiBuilder.layer(OperationsApi).pipe(
  Layer.provide(healthHandlers),
  Layer.provide(prefixed(operationsPrefix))
)

/** The path of the intake. */
export const intakePath = `${operationsPrefix}/invoice-deletions`

const paths = pathsOf({ [dataApiPrefix]: DataApi, [operationsPrefix]: VersionOneApi })

/** The paths that a process serves, with the data API or without it. */
export const endpointsOf = ({ dataApi }: { readonly dataApi: boolean }) =>
  Array.from(paths.keys()).filter((path) => dataApi || !path.startsWith(`${dataApiPrefix}/`))

/** What a route responds with, whose errors are handled further out. */
type Handled = Effect.Effect<HttpServerResponse.HttpServerResponse, Types.unhandled>

/** Accounts for the statements of a request among its facts. */
const accounted = <A, E, R>(handled: Effect.Effect<A, E, R>) =>
  Effect.updateContext(handled, (context: Context.Context<R>) => {
    const note = Context.get(context, Note)
    return Context.add(context, Accounting, (statement) =>
      note(
        "refused" in statement
          ? { refusal: statement.refused === "Busy" ? "load" : "outage" }
          : { database: statement.took, waited: statement.waited }
      )
    )
  })

const around = Effect.gen(function* () {
  const gate = yield* AuthorizationServer.gate
  const identify = yield* AuthorizationServer.identify
  const gated = Middleware.below([dataApiPrefix], gate)
  const everywhere = Middleware.around(paths, { prefix: `${dataApiPrefix}/`, identify })
  return HttpMiddleware.make((httpEffect) => everywhere(accounted(gated(httpEffect))))
})

/** What happens around every request. */
export const middleware = HttpRouter.middleware(
  Effect.map(around, (each) => (handled: Handled) => each(handled)),
  { global: true }
)

/** The same around the requests to the APIs alone, which are counted, for a server that has other routes beside them. */
export const middlewareOfApis = HttpRouter.middleware(
  Effect.gen(function* () {
    const each = yield* around
    const count = RequestMetrics.make(yield* Series.current, {
      endpoints: endpointsOf({ dataApi: true }),
      intake: intakePath,
      byOrganization: false
    })
    const ofApis = Middleware.below([dataApiPrefix, operationsPrefix], (handled) =>
      Middleware.alsoObservedBy(count)(each(handled))
    )
    return (handled: Handled) => ofApis(handled)
  }),
  { global: true }
)

/** The routes of the data API as they are served. */
export const routes = Layer.merge(dataApiRoutes, middleware)

/** The routes of a process, and what happens around each request, as one effect. */
export const appOf = <A, E, R>(served: Layer.Layer<A, E, R>) => HttpRouter.toHttpEffect(Layer.merge(served, middleware))

// Services that handlers were built with. What is not named here is copied for each request: it costs, and does no harm.
const withoutServices = Context.omit(
  ChangeClock,
  ChildProcessSpawner.ChildProcessSpawner,
  Etag.Generator,
  FileSystem.FileSystem,
  HealthChecks,
  HttpPlatform.HttpPlatform,
  IntakeSecrets,
  Listener,
  LogWriter,
  OrgResolver,
  Path.Path,
  ProcessRuntime,
  PspReads,
  Recent,
  Repositories,
  Scheduler,
  Stdio.Stdio,
  TaskReads,
  Terminal.Terminal
)

/** What the fiber of a request carries. Each adds about ten services of its own, and is not to copy the rest for them. */
const ofRequest = (context: Context.Context<HttpServer.HttpServer>) =>
  Context.makeUnsafe<HttpServer.HttpServer>(withoutServices(context).mapUnsafe, { maxDepth: 16 })

/** Serves what `appOf` returns. */
export const serve = <E>(
  app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, HttpServerRequest.HttpServerRequest | Scope.Scope>
) =>
  // With a middleware, the fiber of a request ends with nothing. Otherwise it would keep the response in memory for as
  // long as the server remembers the fiber.
  Surroundings.reduced(HttpServer.serve(app, Function.identity), ofRequest)
