/** The layers of the service: for servers of others, and the process that a start makes of them. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, type Duration, Effect, Exit, Layer, Option, References, Runtime } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { ChangeClock } from "../changes/ChangeClock.ts"
import { LongPolls } from "../changes/Feed.ts"
import { TaskDatabase } from "../database/Database.ts"
import * as Databases from "../database/Databases.ts"
import * as Retention from "../deletions/Retention.ts"
import { Scheduler } from "../deletions/Scheduler.ts"
import { SenderTasks } from "../deletions/SenderTasks.ts"
import { Sweep } from "../deletions/Sweep.ts"
import * as Worker from "../deletions/Worker.ts"
import { accounts } from "./demo/DemoData.ts"
import { loadDemoData } from "./demo/Load.ts"
import { Listener } from "../http/Listener.ts"
import { IntakeSecrets, SignaturesRequired } from "../intake/Signatures.ts"
import * as AuthorizationServer from "../keys/AuthorizationServer.ts"
import { OrgResolver } from "../keys/OrgResolver.ts"
import * as Lane from "../lane/Lane.ts"
import * as Logging from "../observability/Logging.ts"
import * as Otlp from "../observability/Otlp.ts"
import * as Recent from "../operations/Recent.ts"
import { announce } from "./Announcement.ts"
import { HealthChecks } from "../operations/HealthChecks.ts"
import * as OperationsListener from "../operations/OperationsListener.ts"
import * as Probes from "../operations/Probes.ts"
import { readSettings, type Settings } from "../operations/Settings.ts"
import * as Failure from "../process/Failure.ts"
import { PspClient } from "../psp/PspClient.ts"
import { ClinicAccounts, PspReads } from "../psp/PspReads.ts"
import { Repositories } from "../records/Repository.ts"
import * as Server from "./Server.ts"

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

const watchChanges = Layer.effectDiscard(Effect.flatMap(ChangeClock, ({ watch }) => Effect.forkScoped(watch)))

const sweep = Layer.effectDiscard(Effect.flatMap(Sweep, ({ run }) => Effect.forkScoped(run)))

/** The worker over the task database, by the size of its pool. */
const worker = Layer.unwrap(Effect.map(TaskDatabase, ({ connections }) => Worker.layer(Worker.slotsFor(connections))))

/**
 * The data API for a server of your own, beside its other routes: over `services`, in which services of your own may take
 * the place of ours. Its metrics are in the registry of your server, `Metric.MetricRegistry`: `PrometheusMetrics.layerHttp()`
 * of `effect/observability` serves them. It reads no variable: provide `layerRequestLimit` to limit the requests of each
 * organization.
 */
export const dataApi = Layer.mergeAll(Server.dataApiRoutes, Server.middlewareOfApis, watchChanges)

/**
 * The intake of invoice deletions for a server of your own, and the worker that runs them: over `intakeServices`, and over the
 * pool of the task database, of which it leaves two connections to deliveries. It has metrics as the data API has them, and
 * reads no variable: provide `SignaturesRequired` to refuse unsigned deliveries.
 *
 * @param delay from receiving a delivery to running it
 */
export const intake = (delay: Duration.Duration) =>
  Layer.mergeAll(
    Server.intakeRoutes(delay),
    Server.middlewareOfApis,
    worker,
    Layer.provide(sweep, Sweep.layer),
    Retention.layer()
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

const databasesFrom = (settings: Settings) => Databases.layer(settings, { fill: loadDemoData })

/** The databases that the configuration names; the embedded one has the demo data. */
export const databases = Layer.unwrap(Effect.map(readSettings, databasesFrom))

/** The processor: Stripe with a key, the demo processor on the embedded database, else none. */
const processor = ({ databaseUrl, stripeApiUrl, stripeSecretKey }: Settings) =>
  Option.match(stripeSecretKey, {
    onSome: (secretKey) => PspClient.layerStripe({ secretKey, apiUrl: stripeApiUrl }),
    onNone: () => (Option.isNone(databaseUrl) ? PspClient.layerMemory(accounts) : PspClient.layerNotConfigured)
  })

/** The operators' listener. The embedded database always has one. */
const operators = ({ databaseUrl, operationsHost: host, operationsPort }: Settings) => {
  const port = Option.getOrElse(operationsPort, () => (Option.isNone(databaseUrl) ? 0 : undefined))
  return port === undefined ? Layer.empty : OperationsListener.layer({ host, port })
}

/** The layers of each role. A process has those of its roles; a layer of several roles is built once. */
const roleLayers = (settings: Settings) => {
  const { deletionDelay, rateLimit, requireSignatures, taskRetention } = settings
  const limit = Option.match(rateLimit, { onNone: () => Layer.empty, onSome: AuthorizationServer.layerLimit })
  const scheduler = Scheduler.layer(deletionDelay)
  const signatures = Layer.succeed(SignaturesRequired, requireSignatures)
  return {
    "data-api": {
      services: Layer.merge(Layer.provide(services, processor(settings)), limit),
      routes: Server.dataApiRoutes,
      background: watchChanges
    },
    // Its login may not run the clock of the changes.
    intake: {
      services: Layer.mergeAll(scheduler, IntakeSecrets.layer, signatures),
      routes: Server.intakeRoutes(deletionDelay),
      background: Layer.empty
    },
    worker: {
      services: Layer.mergeAll(scheduler, ChangeClock.layer, Sweep.layer),
      routes: Layer.empty,
      background: Layer.mergeAll(watchChanges, sweep, worker, Retention.layer(taskRetention))
    }
  }
}

/** Begins a stop: the service is not ready, no reader waits for changes, and new requests are served for a while. */
const draining = ({ drain }: Settings) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const [health, listening] = [yield* HealthChecks, yield* Listener]
      const polls = Option.toArray(yield* Effect.serviceOption(LongPolls))
      const stops = [health.stop, ...polls.map(({ stop }) => stop), listening.drain(drain)]
      yield* Effect.addFinalizer(() => Effect.all(stops, { discard: true }))
    })
  )

/** The service with its roles: its layers in the order in which they stop. They start in the opposite order. */
const service = (settings: Settings) => {
  const { logFormat, logLevel, roles } = settings
  const layers = roleLayers(settings)
  const ofRoles = roles.map((role) => layers[role])
  const background = Layer.mergeAll(Layer.empty, ...ofRoles.map((role) => role.background))
  const routes = ofRoles.map((role) => role.routes)
  const pages = Layer.mergeAll(Server.operationsRoutes, Server.landing(settings), ...routes)
  const app = HttpRouter.toHttpEffect(Layer.merge(Layer.provide(pages, Server.shownKeys(settings)), Server.middleware))
  // While it drains, the worker begins no task.
  const started = Layer.merge(draining(settings), Databases.afterMigration(settings, background)).pipe(
    Layer.provideMerge(Listener.layer(app, { ...settings, isMeasured: true })),
    Layer.provide(settings.lane && roles.includes("data-api") ? Lane.layer : Layer.empty),
    Layer.provide(Server.layerObservers(settings)),
    Layer.provideMerge(Layer.merge(operators(settings), Probes.layer)),
    Layer.provide(Recent.Recent.layer),
    Layer.provideMerge(HealthChecks.layer(roles)),
    Layer.provideMerge(Layer.mergeAll(Layer.empty, ...ofRoles.map((role) => role.services))),
    Layer.provide(Layer.provide(databasesFrom(settings), NodeServices.layer))
  )
  return Layer.effectDiscard(announce(settings)).pipe(
    Layer.provide(started),
    Layer.provide(Otlp.layer(settings)),
    Layer.provide(Logging.layer({ format: logFormat, level: logLevel })),
    // Requests and runs that are sampled turn it on. Spans cost a tenth of a page's CPU time.
    Layer.provide(Layer.succeed(References.TracerEnabled, false))
  )
}

/** The whole service, from the configuration to the open socket: what `run` launches. */
export const layer = Layer.unwrap(Effect.map(readSettings, service))

/** Runs the service until a stop signal, and ends the process. */
export const run = () => {
  Failure.endAtSecondSignal()
  Layer.launch(layer).pipe(
    Effect.tapError(Failure.report),
    Effect.tapDefect(Failure.reportDefect),
    NodeRuntime.runMain({
      disableErrorReporting: true,
      // A stop signal is how the service is meant to end.
      teardown: (exit, onExit) =>
        Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? onExit(0) : Runtime.defaultTeardown(exit, onExit)
    })
  )
}
