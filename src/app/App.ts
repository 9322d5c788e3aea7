/** The layers of the service: for servers of others, in memory for tests, and the process that a start makes of them. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Duration, Effect, Exit, Layer, Option, Redacted, References, Result, Runtime } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { readSettings, type Settings } from "../operations/Settings.ts"
import { connectionOptions, format } from "../database/ConnectionUrl.ts"
import { TaskDatabase } from "../database/Database.ts"
import * as Databases from "../database/Databases.ts"
import { demoKeys, organizations } from "../demo/DemoData.ts"
import { accounts } from "../demo/DemoProcessor.ts"
import { loadDemoData } from "../demo/Load.ts"
import * as Failure from "../process/Failure.ts"
import { HealthChecks } from "../operations/HealthChecks.ts"
import * as Probes from "../operations/Probes.ts"
import { Listener } from "../http/Listener.ts"
import * as Lane from "../lane/Lane.ts"
import * as PublicPages from "../http/PublicPages.ts"
import { SignaturesRequired } from "../intake/Signatures.ts"
import { Sweep } from "../deletions/Sweep.ts"
import * as Worker from "../deletions/Worker.ts"
import * as AuthorizationServer from "../keys/AuthorizationServer.ts"
import { PspClient } from "../psp/PspClient.ts"
import * as Server from "./Server.ts"
import { IntakeSecrets } from "../intake/IntakeSecrets.ts"
import * as MemoryScheduler from "../deletions/MemoryScheduler.ts"
import { Scheduler } from "../deletions/Scheduler.ts"
import { SenderTasks } from "../deletions/SenderTasks.ts"
import { OrgResolver } from "../keys/OrgResolver.ts"
import { ClinicAccounts, PspReads } from "../psp/PspReads.ts"
import { ChangeClock } from "../changes/ChangeClock.ts"
import { LongPolls } from "../changes/LongPolls.ts"
import { Repositories } from "../records/Repository.ts"
import { LogWriter } from "../observability/LogWriter.ts"
import * as Otlp from "../observability/Otlp.ts"
import * as OperationsListener from "../operations/OperationsListener.ts"
import { OperatorStore } from "../operations/OperatorStore.ts"
import * as Logging from "../observability/Logging.ts"
import * as Recent from "../observability/Recent.ts"
import * as RequestFacts from "../observability/RequestFacts.ts"
import * as ProcessRuntime from "../observability/ProcessRuntime.ts"
import * as Series from "../observability/Series.ts"

/** The services of the data API, over the databases and a processor. */
export const services = Layer.mergeAll(
  Layer.provideMerge(Repositories.layer, LongPolls.layer),
  ChangeClock.layer,
  OrgResolver.layer,
  SenderTasks.layer,
  PspReads.layer.pipe(Layer.provide(ClinicAccounts.layer))
)

/** The services of the intake, over the task database. */
export const intakeServices = (delay: Duration.Duration) => Layer.merge(Scheduler.layer(delay), IntakeSecrets.layer)

/**
 * The services of the data API in memory, without any record, key or task, and without a processor: merge your own fakes
 * over it.
 */
export const servicesMemory = Layer.mergeAll(
  Repositories.layerMemory(),
  OrgResolver.layerMemory({}),
  SenderTasks.layerMemory(),
  PspReads.layerMemory()
)

/** The services of the intake in memory, without any task or secret. Without a delay, a task is due at once. */
export const intakeServicesMemory = (delay: Duration.Duration) =>
  Layer.merge(MemoryScheduler.layer(delay), IntakeSecrets.layerMemory())

const watchChanges = Layer.effectDiscard(Effect.flatMap(ChangeClock, (clock) => Effect.forkScoped(clock.watch)))

/** The worker over the task database, by the size of its pool. */
const workerOf = (retention?: Duration.Duration) => {
  const worker = Effect.map(TaskDatabase, ({ connections }) => Worker.layer(Worker.slotsFor(connections)))
  const sweep = Layer.effectDiscard(Effect.flatMap(Sweep, ({ run }) => Effect.forkScoped(run)))
  return Layer.mergeAll(Layer.unwrap(worker), sweep, Worker.layerRetention(retention)).pipe(Layer.provide(Sweep.layer))
}

/**
 * The data API for a server of your own, beside its other routes: over the databases and a processor. Its metrics are in
 * the registry of your server, `Metric.MetricRegistry`: `PrometheusMetrics.layerHttp()` of `effect/observability` serves
 * them. It reads no variable: provide `layerRequestLimit` to limit the requests of each organization.
 */
export const dataApi = Layer.mergeAll(Server.dataApiRoutes, Server.middlewareOfApis, watchChanges).pipe(
  Layer.provide(services)
)

/**
 * The intake of invoice deletions for a server of your own, and the worker that runs them: over the pool of the task
 * database, of which it leaves two connections to deliveries. It has metrics as the data API has them, and reads no
 * variable: provide `SignaturesRequired` to refuse unsigned deliveries.
 *
 * @param delay from receiving a delivery to running it
 */
export const intake = (delay: Duration.Duration) =>
  Layer.mergeAll(Server.intakeRoutes(delay), Server.middlewareOfApis, workerOf()).pipe(
    Layer.provide(intakeServices(delay))
  )

/**
 * Serves routes on a server of your own. Its socket opens once the routes are ready: effect's server never responds to
 * requests that arrive before.
 */
export const serve = <A, E, R, E2, R2>(
  routes: Layer.Layer<A, E, R>,
  server: Layer.Layer<HttpServer.HttpServer, E2, R2>
) =>
  Layer.unwrap(
    Effect.map(HttpRouter.toHttpEffect(routes), (app) =>
      HttpServer.serve(app).pipe(HttpServer.withLogAddress, Layer.provide(server))
    )
  )

const databasesOf = (settings: Settings) => Databases.layer(settings, { fill: loadDemoData })

/** The databases that the configuration names; the embedded one has the demo data. */
export const databases = Layer.unwrap(Effect.map(readSettings, databasesOf))

const requestObservers = ({ accessLog, logFormat, logLevel, metricsByOrganization, roles }: Settings) =>
  Layer.effect(
    RequestFacts.RequestObservers,
    Effect.gen(function* () {
      const isLogged = Option.getOrElse(accessLog, () => logFormat !== "pretty")
      const counting = RequestFacts.counting(yield* Series.current, {
        endpoints: Server.endpointsOf({ dataApi: roles.includes("data-api") }),
        intake: roles.includes("intake") ? Server.intakePath : undefined,
        byOrganization: metricsByOrganization
      })
      const { observe } = yield* Recent.Recent
      return [
        ...(isLogged ? [yield* RequestFacts.accessLog({ format: logFormat, level: logLevel })] : []),
        counting,
        observe
      ]
    })
  )

const observing = (settings: Settings) =>
  Otlp.layer(settings).pipe(
    Layer.provideMerge(Logging.layer({ format: settings.logFormat, level: settings.logLevel })),
    // Requests and runs that are sampled turn it on. Spans cost a tenth of a page's CPU time.
    Layer.merge(Layer.succeed(References.TracerEnabled, false))
  )

/** The processor: Stripe with a key, the demo processor on the embedded database, else none. */
const processor = ({ databaseUrl, stripeApiUrl, stripeSecretKey }: Settings) =>
  Option.match(stripeSecretKey, {
    onSome: (secretKey) => PspClient.layerStripe({ secretKey, apiUrl: stripeApiUrl }),
    onNone: () => (Option.isNone(databaseUrl) ? PspClient.layerMemory(accounts) : PspClient.layerNotConfigured)
  })

/** The operators' listener. The embedded database always has one. */
const operators = ({ databaseUrl, operationsHost: host, operationsPort }: Settings) => {
  const port = Option.getOrElse(operationsPort, () => (Option.isNone(databaseUrl) ? 0 : undefined))
  return port === undefined
    ? Layer.empty
    : OperationsListener.layer({ host, port }).pipe(Layer.provide(OperatorStore.layer))
}

/** The layers of each role: a process has only those of its roles. A layer of several roles is built once. */
const layersOf = (settings: Settings) => {
  const { deletionDelay, rateLimit, requireSignatures, taskRetention } = settings
  const limit = Option.match(rateLimit, { onNone: () => Layer.empty, onSome: AuthorizationServer.layerLimit })
  const reads = Layer.merge(Layer.provide(services, processor(settings)), limit)
  const scheduler = Scheduler.layer(deletionDelay)
  const signatures = Layer.succeed(SignaturesRequired, requireSignatures)
  const deliveries = Layer.mergeAll(scheduler, IntakeSecrets.layer, signatures)
  const changes = Layer.provide(watchChanges, ChangeClock.layer)
  return {
    "data-api": {
      services: reads,
      routes: Layer.provide(Server.dataApiRoutes, reads),
      background: changes
    },
    // It may not keep the order of the records.
    intake: {
      services: deliveries,
      routes: Layer.provide(Server.intakeRoutes(deletionDelay), deliveries),
      background: Layer.empty
    },
    worker: {
      services: Layer.mergeAll(scheduler, ChangeClock.layer, Sweep.layer),
      routes: Layer.empty,
      background: Layer.merge(changes, Layer.provide(workerOf(taskRetention), scheduler))
    }
  }
}

/** An address to listen on, as this machine reaches it. */
const reachable = (address: string) => address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")

const demoNotice = (address: string) => `
  Using the embedded database with demo data. API keys:
${organizations.map(({ slug, key }) => `    ${key}  (org_${slug})`).join("\n")}

  Try it:
    curl -s ${address}/api/v3/charges/search -H 'Authorization: Bearer ${organizations[0].key}' -H 'Content-Type: application/json' -d '{"limit":2}'

  Documentation: ${address}/api/v3/docs and ${address}/api/v1/docs

`

/** A misspelled variable shows here: without DATABASE_URL, the service runs the demo. */
const databaseName = ({ dataDir, databaseUrl }: Settings) =>
  Option.match(databaseUrl, {
    onNone: () => `the embedded database in ${dataDir}`,
    // The configuration has checked it.
    onSome: (url) => format({ ...Result.getOrThrow(connectionOptions(Redacted.value(url))), user: undefined })
  })

/** Logs the address of the service and its database, and where the operators' page is. */
const announce = Effect.fnUntraced(function* (settings: Settings) {
  const { url } = yield* Listener
  yield* Effect.log(`Listening on ${url}, over ${databaseName(settings)}`)
  if (Option.isNone(settings.databaseUrl)) {
    // The keys of the demo data are no secret, and the log has none.
    if (settings.logFormat === "pretty") (yield* LogWriter).write(demoNotice(reachable(url)), true)
    else yield* Effect.log(`Using the embedded database with demo data: see ${reachable(url)}/api/v3/docs`)
  }
  const page = yield* Effect.serviceOption(OperationsListener.OperatorsPage)
  if (Option.isSome(page)) yield* Effect.log(`Operators' page: ${reachable(page.value.url)}`)
})

/**
 * The service with all its roles. A layer starts after those that it is provided with, and stops before them. So a stop has
 * this order: the service is not ready, readers that wait for changes get their responses, and new requests are served for a
 * while, in which the worker begins no task; then the server, the operators' listener and the databases close.
 */
const service = (settings: Settings) => {
  const { databaseUrl, drain, roles } = settings
  const layers = layersOf(settings)
  const ofRoles = roles.map((role) => layers[role])
  const database = Layer.provide(databasesOf(settings), NodeServices.layer)
  const served = HealthChecks.layer(roles).pipe(
    Layer.provideMerge(Layer.mergeAll(Layer.empty, ...ofRoles.map((role) => role.services))),
    Layer.provideMerge(database)
  )
  const observers = Layer.provide(requestObservers(settings), Recent.Recent.layer)
  const watched = Layer.mergeAll(operators(settings), Probes.layer(roles), ProcessRuntime.layer(roles)).pipe(
    Layer.provide([served, Recent.Recent.layer])
  )
  const shown = { dataApi: roles.includes("data-api"), intake: roles.includes("intake") }
  // On a database of your own, the address of the operators is nobody else's business.
  const landing = Layer.unwrap(
    Effect.map(Effect.serviceOption(OperationsListener.OperatorsPage), (page) =>
      PublicPages.landing(shown, Option.isNone(databaseUrl) ? Option.getOrUndefined(page)?.url : undefined)
    )
  ).pipe(Layer.provide(watched))
  const routes = Layer.mergeAll(Server.operationsRoutes, landing, ...ofRoles.map((role) => role.routes)).pipe(
    Layer.provide(Layer.succeed(PublicPages.DemoKeys, Option.isNone(databaseUrl) ? demoKeys : []))
  )
  const lane =
    settings.lane && roles.includes("data-api") ? Layer.provide(Lane.layer, layers["data-api"].services) : Layer.empty
  const server = Listener.layer(Server.appOf(routes), { ...settings, isMeasured: true }).pipe(
    Layer.provide(lane),
    Layer.provide([observers, served, watched])
  )
  const draining = Effect.gen(function* () {
    const [health, listening] = [yield* HealthChecks, yield* Listener]
    const polls = Option.toArray(yield* Effect.serviceOption(LongPolls))
    const stops = [health.stop, ...polls.map(({ stop }) => stop), listening.drain(drain)]
    yield* Effect.addFinalizer(() => Effect.all(stops, { discard: true }))
  })
  const background = Layer.mergeAll(Layer.empty, ...ofRoles.map((role) => role.background))
  const beside = Layer.merge(Layer.effectDiscard(draining), Databases.afterMigration(settings, background)).pipe(
    Layer.provide([server, served])
  )
  return Layer.provide(Layer.effectDiscard(announce(settings)), [beside, server, watched, database])
}

/** The whole service, from the configuration to the open socket: what `run` launches. */
export const layer = Layer.unwrap(
  Effect.map(readSettings, (settings) => Layer.provide(service(settings), observing(settings)))
)

/** Runs the service until a stop signal, and ends the process. */
export const run = () => {
  Failure.endAtSecondSignal()
  Layer.launch(layer).pipe(
    Effect.tapError(Failure.report),
    NodeRuntime.runMain({
      disableErrorReporting: true,
      // A stop signal is how the service is meant to end.
      teardown: (exit, onExit) =>
        Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? onExit(0) : Runtime.defaultTeardown(exit, onExit)
    })
  )
}
