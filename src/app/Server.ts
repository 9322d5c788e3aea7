/** The routes of each role with their documentation, and the middleware around them. */
import { Context, type Duration, Effect, Layer, Option, References } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { DataApi } from "../api/DataApi.ts"
import { OperationsApi } from "../api/HealthApi.ts"
import { IntakeApi, VersionOneApi } from "../api/IntakeApi.ts"
import * as PublicPages from "../http/PublicPages.ts"
import * as JsonBodyServer from "../http/JsonBodyServer.ts"
import * as Middleware from "../http/Middleware.ts"
import { demoKeys } from "./demo/DemoData.ts"
import * as SenderTasks from "../deletions/SenderTasks.ts"
import * as IntakeHandlers from "../intake/Handlers.ts"
import * as Signatures from "../intake/Signatures.ts"
import { accessLog as makeAccessLog, counting, RequestObservers } from "../observability/RequestFacts.ts"
import { Recent } from "../operations/Recent.ts"
import * as Metrics from "../observability/Metrics.ts"
import * as AuthorizationServer from "../keys/AuthorizationServer.ts"
import * as PspReads from "../psp/PspReads.ts"
import * as RecordHandlers from "../records/Handlers.ts"
import { handlers as healthHandlers } from "../operations/HealthChecks.ts"
import { OperatorsPage } from "../operations/OperationsListener.ts"
import type { Settings } from "../operations/Settings.ts"

/** Routes below a prefix, which are traced if their request is. Where they are built, the tracer is off. */
const below = <A, E, R, B, E2, R2>(prefix: string, routes: Layer.Layer<A, E, R>, handlers: Layer.Layer<B, E2, R2>) => {
  const router = Effect.map(HttpRouter.HttpRouter, (all) => all.prefixed(prefix))
  const provided = Layer.provide(routes, [handlers, Layer.effect(HttpRouter.HttpRouter, router)])
  return Middleware.pruneContext(provided, Context.omit(References.TracerEnabled))
}

const dataApiPrefix = "/api/v3"
const operationsPrefix = "/api/v1"

/** The handlers of the data API with their middleware, over its services. */
export const dataApiHandlers = Layer.mergeAll(RecordHandlers.layer, PspReads.handlers, SenderTasks.tasks).pipe(
  Layer.provideMerge([AuthorizationServer.layer, JsonBodyServer.layer])
)

/** The data API, its OpenAPI document and its documentation page. */
export const dataApiRoutes = below(
  dataApiPrefix,
  Layer.merge(HttpApiBuilder.layer(DataApi), PublicPages.documentation(DataApi, "quick-start-data-api.md", "bearer")),
  dataApiHandlers
)

/** The handlers of the intake with their middleware, over its services. A delivery is run after the delay. */
export const intakeHandlers = (delay: Duration.Duration) =>
  IntakeHandlers.intake(delay).pipe(Layer.provideMerge([Signatures.signedDelivery, JsonBodyServer.layerRaw]))

/** The intake, its OpenAPI document and its documentation page. */
export const intakeRoutes = (delay: Duration.Duration) =>
  below(
    operationsPrefix,
    Layer.merge(HttpApiBuilder.layer(IntakeApi), PublicPages.documentation(VersionOneApi, "quick-start-intake.md")),
    intakeHandlers(delay)
  )

/** Health and readiness, below `/api/v1`. */
export const operationsRoutes = below(operationsPrefix, HttpApiBuilder.layer(OperationsApi), healthHandlers)

/** The page at `/`. On a database of your own, the address of the operators is nobody else's business. */
export const landing = ({ databaseUrl, roles }: Settings) =>
  Layer.unwrap(
    Effect.map(Effect.serviceOption(OperatorsPage), (page) =>
      PublicPages.landing(
        { dataApi: roles.includes("data-api"), intake: roles.includes("intake") },
        Option.isNone(databaseUrl) ? Option.getOrUndefined(page)?.url : undefined
      )
    )
  )

/** The keys that all pages show: those of the demo data. */
export const shownKeys = ({ databaseUrl }: Settings) =>
  Layer.succeed(PublicPages.DemoKeys, Option.isNone(databaseUrl) ? demoKeys : [])

/** The path of deliveries. */
export const intakePath = `${operationsPrefix}/invoice-deletions`

const paths = Middleware.servedPaths({ [dataApiPrefix]: DataApi, [operationsPrefix]: VersionOneApi })

/** The paths that a process serves, with the data API or without it. */
export const endpointsOf = ({ dataApi }: { readonly dataApi: boolean }) =>
  Array.from(paths.keys()).filter((path) => dataApi || !path.startsWith(`${dataApiPrefix}/`))

/** An observer that counts the requests of roles. */
const countingFor = (roles: ReadonlyArray<string>) =>
  Effect.map(Metrics.series, (series) => {
    const endpoints = endpointsOf({ dataApi: roles.includes("data-api") })
    return counting(series, { endpoints, intake: roles.includes("intake") ? intakePath : undefined })
  })

const around = Effect.map(AuthorizationServer.earlyLookUp, (lookUp) =>
  Middleware.around(paths, { prefix: `${dataApiPrefix}/`, lookUp })
)

/** The middleware of a server that has nothing but the APIs: limits, headers and errors. */
export const middleware = HttpRouter.middleware(around, { global: true })

/** The same, only around requests to the APIs, which are counted: for a server that has other routes too. */
export const middlewareOfApis = HttpRouter.middleware(
  Effect.gen(function* () {
    const each = yield* around
    const count = yield* countingFor(["data-api", "intake"])
    const prefixes = [`${dataApiPrefix}/`, `${operationsPrefix}/`]
    return (handled: Middleware.Handled) => {
      const counted = Effect.updateService(each(handled), RequestObservers, (observers) => [...observers, count])
      return Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ url }) =>
        prefixes.some((prefix) => url.startsWith(prefix)) ? counted : handled
      )
    }
  }),
  { global: true }
)

/** Observers of the requests of a process: the access log, the metrics, and the figures of the last hour. */
export const layerObservers = ({ accessLog, logFormat: format, logLevel: level, roles }: Settings) =>
  Layer.effect(
    RequestObservers,
    Effect.gen(function* () {
      const isLogged = Option.getOrElse(accessLog, () => format !== "pretty")
      const logs = isLogged ? [yield* makeAccessLog({ format, level })] : []
      return [...logs, yield* countingFor(roles), (yield* Recent).observe]
    })
  )
