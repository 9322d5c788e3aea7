/** The layer graph, written once, for real and in memory; what a start builds of it; and what it prints then. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Duration, Effect, Exit, Layer, Option, References, Runtime } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { config, type Role, type Settings } from "./Config.ts"
import * as AfterMigration from "../database/AfterMigration.ts"
import * as ConnectionNotices from "../database/ConnectionNotices.ts"
import type { CredentialDatabase, RecordDatabase, TaskDatabase } from "../database/Database.ts"
import * as Databases from "../database/Databases.ts"
import { EmbeddedDatabaseError } from "../database/Embedded.ts"
import { demoKeys, organizations } from "../demo/DemoData.ts"
import { accounts } from "../demo/DemoProcessor.ts"
import { loadDemoData } from "../demo/Load.ts"
import * as Failure from "../process/Failure.ts"
import { HealthChecks } from "../operations/HealthChecks.ts"
import { grace, Listener } from "../http/Listener.ts"
import * as PublicPages from "../http/PublicPages.ts"
import { SignaturesRequired } from "../deletions/Signature.ts"
import * as Worker from "../deletions/Worker.ts"
import * as RequestLimit from "../keys/RequestLimit.ts"
import { PspClient } from "../psp/PspClient.ts"
import * as Server from "./Server.ts"
import { IntakeSecrets } from "../deletions/IntakeSecrets.ts"
import { Scheduler } from "../deletions/Scheduler.ts"
import { TaskReads } from "../deletions/TaskReads.ts"
import { OrgResolver } from "../keys/OrgResolver.ts"
import { ClinicAccounts } from "../psp/ClinicAccounts.ts"
import { PspReads } from "../psp/PspReads.ts"
import { ChangeClock, Connections } from "../records/ChangeClock.ts"
import { Repositories } from "../records/Repository.ts"
import * as Otlp from "../observability/Otlp.ts"
import { isLoopback } from "../operations/Access.ts"
import * as OperationsListener from "../operations/OperationsListener.ts"
import { OperatorStore } from "../operations/OperatorStore.ts"
import * as Memory from "../process/Memory.ts"
import * as Processes from "../process/Processes.ts"
import { Children } from "../process/Children.ts"
import * as AccessLog from "../observability/AccessLog.ts"
import * as Logging from "../observability/Logging.ts"
import { LogWriter } from "../observability/LogWriter.ts"
import * as Recent from "../observability/Recent.ts"
import { RequestObservers } from "../observability/RequestFacts.ts"
import * as RequestMetrics from "../observability/RequestMetrics.ts"
import { ProcessRuntime } from "../observability/ProcessRuntime.ts"
import * as Series from "../observability/Series.ts"
import { Figures } from "../operations/Figures.ts"
import * as Probes from "../operations/Probes.ts"

/** What the data API needs, over the databases and a processor. */
export const services = Layer.mergeAll(
  Layer.provideMerge(Repositories.layer, ChangeClock.layer),
  OrgResolver.layer,
  TaskReads.layer,
  PspReads.layer.pipe(Layer.provide(ClinicAccounts.layer))
)

/** What the intake needs, over the task database. */
export const intakeServices = (delay: Duration.Duration) => Layer.merge(Scheduler.layer(delay), IntakeSecrets.layer)

/** What the data API needs, in memory and without any record, key or task: merge the fakes of your own over it. */
export const servicesMemory = Layer.mergeAll(
  Repositories.layerMemory(),
  OrgResolver.layerMemory({}),
  TaskReads.layerMemory(),
  // Fresh, so that a layer of PspReads that is merged over this one is built over its own fakes.
  Layer.fresh(PspReads.layer).pipe(Layer.provide([ClinicAccounts.layerMemory(), PspClient.layerNotConfigured]))
)

/** What the intake needs, in memory: no task and no secret. Without a delay, a task is due at once. */
export const intakeServicesMemory = (delay: Duration.Duration) =>
  Layer.merge(Scheduler.layerMemory(delay), IntakeSecrets.layerMemory())

const watch = Layer.effectDiscard(Effect.flatMap(ChangeClock, (clock) => Effect.forkScoped(clock.watch)))

/**
 * The data API for a server of your own, beside its other routes: over the databases and a processor. What is measured of
 * it is in the registry of your server, `Metric.MetricRegistry`: `PrometheusMetrics.layerHttp()` of
 * `effect/observability` serves it.
 */
export const dataApi = Layer.mergeAll(Server.dataApiRoutes, Server.middlewareOfApis, watch).pipe(
  Layer.provide(services)
)

/**
 * The intake of invoice deletions for a server of your own, and the worker that runs them: over the databases. It is
 * measured like the data API.
 *
 * @param delay from receiving a delivery to running it
 */
export const intake = (delay: Duration.Duration) =>
  Layer.mergeAll(
    Server.intakeRoutes(delay),
    Server.middlewareOfApis,
    Worker.layer(Worker.optionsFor(10)),
    Worker.layerRetention()
  ).pipe(Layer.provide(intakeServices(delay)))

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

/** The databases that the configuration names; the embedded one has the demo data. */
export const databases = Layer.unwrap(
  Effect.map(config, (settings) => Databases.layer(settings, { fill: loadDemoData }))
)

/** Who looks at each request. */
const observers = ({ accessLog, logFormat, logLevel, metricsByOrganization, roles }: Settings) =>
  Layer.effect(
    RequestObservers,
    Effect.gen(function* () {
      const isLogged = Option.getOrElse(accessLog, () => logFormat !== "pretty")
      const counting = RequestMetrics.make(yield* Series.current, {
        endpoints: Server.endpointsOf({ dataApi: roles.includes("data-api") }),
        intake: roles.includes("intake") ? Server.intakePath : undefined,
        byOrganization: metricsByOrganization
      })
      const { observe } = yield* Recent.Recent
      return [...(isLogged ? [yield* AccessLog.make({ format: logFormat, level: logLevel })] : []), counting, observe]
    })
  )

const observing = (settings: Settings) =>
  Otlp.layer(settings.otlp, { isOneOfSeveral: Processes.isChild }).pipe(
    Layer.provideMerge(Logging.layer({ format: settings.logFormat, level: settings.logLevel })),
    // Requests and runs that are sampled turn it on. Spans cost a tenth of a page's CPU time.
    Layer.merge(Layer.succeed(References.TracerEnabled, false))
  )

const demoNotice = (address: string, operatorsPage: string | undefined) => `
  This is the embedded database with demo data. Its API keys:
${organizations.map(({ slug, key }) => `    ${key}  (org_${slug})`).join("\n")}

  Try it:
    curl -s ${address}/api/v3/charges/search -H 'Authorization: Bearer ${organizations[0].key}' -H 'Content-Type: application/json' -d '{"limit":2}'

  Documentation: ${address}/api/v3/docs and ${address}/api/v1/docs${
    operatorsPage === undefined ? "" : `\n  Operators' page: ${operatorsPage}`
  }
`

const reachable = (address: string) => address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")

const operatorsPage = Effect.map(
  Effect.serviceOption(OperationsListener.OperatorsPage),
  Option.map(({ url }) => reachable(url))
)

/** Says where the operators' page is, if there is one. */
const sayOperatorsPage = Effect.flatMap(
  operatorsPage,
  Option.match({ onNone: () => Effect.void, onSome: (url) => Effect.log(`Operators' page: ${url}`) })
)

/** Says what is open on the public address, and to whom. */
const sayOpen = ({ databaseUrl, host, requireSignatures, roles }: Settings) => {
  const keys = Option.isNone(databaseUrl) ? "the public demo API keys" : "an API key"
  const deletions = requireSignatures
    ? "deletions that are signed"
    : "deletions, unsigned unless the organization has a signing secret"
  const open = [
    ...(roles.includes("data-api") ? [`reads with ${keys}`] : []),
    ...(roles.includes("intake") ? [deletions] : [])
  ]
  const reach = isLoopback(host) ? "this machine alone" : `every machine that reaches ${host}`
  const said = Effect.log(`Open to ${reach}: ${[...open, "health"].join("; ")}`)
  return process.getuid?.() === 0
    ? Effect.andThen(said, Effect.logWarning("This process runs as root. Run it as a user of its own"))
    : said
}

const announcement = (settings: Settings) =>
  Effect.gen(function* () {
    const { databaseUrl, logFormat } = settings
    const server = yield* HttpServer.HttpServer
    const address = HttpServer.formatAddress(server.address)
    // The parent of several processes says so itself.
    if (Processes.isChild) return yield* Processes.announce(address)
    yield* Effect.log(`Listening on ${address}`)
    yield* sayOpen(settings)
    if (Option.isSome(databaseUrl)) return yield* sayOperatorsPage
    // The keys of the demo data are no secret, and the log has none.
    if (logFormat === "pretty") {
      const notice = demoNotice(reachable(address), Option.getOrUndefined(yield* operatorsPage))
      return (yield* LogWriter).write(`${notice}\n`, true)
    }
    yield* Effect.log(`This is the embedded database with demo data, see ${reachable(address)}/api/v3/docs`)
    yield* sayOperatorsPage
  })

/** What a stop begins with: the service is not ready, and still serves what comes. */
const draining = ({ drain }: Settings) =>
  Effect.gen(function* () {
    const health = yield* HealthChecks
    const listener = yield* Listener
    const changes = yield* ChangeClock
    yield* Effect.addFinalizer(() =>
      Effect.all([health.stop, changes.stopWaiting, listener.drain(drain)], { discard: true })
    )
  })

/** The processor: Stripe with a key, the demo processor on the embedded database, else none. */
const processor = ({ databaseUrl, stripeApiUrl, stripeSecretKey }: Settings) =>
  Option.match(stripeSecretKey, {
    onSome: (secretKey) => PspClient.layerStripe({ secretKey, apiUrl: stripeApiUrl }),
    onNone: () => (Option.isNone(databaseUrl) ? PspClient.layerMemory(accounts) : PspClient.layerNotConfigured)
  })

/** The port of the operators' listener: on the embedded database there is always one. */
const operationsPort = ({ databaseUrl, operationsPort: port }: Settings) =>
  Option.orElse(port, () => (Option.isNone(databaseUrl) ? Option.some(0) : Option.none()))

/** The operators' listener, over databases and what the processes say of themselves. */
const operators = (
  settings: Settings
): Layer.Layer<never, OperationsListener.CannotListen, Figures | CredentialDatabase | RecordDatabase | TaskDatabase> =>
  Option.match(operationsPort(settings), {
    onNone: () => Layer.empty,
    onSome: (port) =>
      OperationsListener.layer({
        host: settings.operationsHost,
        port,
        token: settings.operationsToken
      }).pipe(Layer.provide(OperatorStore.layer))
  })

/** One process that does everything that its roles say. */
const single = (settings: Settings) => {
  const has = (role: Role) => settings.roles.includes(role)
  const connected = Databases.layer(settings, { fill: loadDemoData })
  const limit = Option.match(settings.rateLimit, { onNone: () => Layer.empty, onSome: RequestLimit.layer })
  const all = Layer.mergeAll(HealthChecks.layer, intakeServices(settings.deletionDelay), limit).pipe(
    Layer.provideMerge(services),
    Layer.provide([connected, processor(settings), Layer.succeed(Connections, settings.maxConnections)])
  )
  const routes = Layer.mergeAll(
    Server.operationsRoutes,
    PublicPages.landing({ dataApi: has("data-api"), intake: has("intake") }),
    has("data-api") ? Server.dataApiRoutes : Layer.empty,
    has("intake") ? Server.intakeRoutes(settings.deletionDelay) : Layer.empty
  ).pipe(
    Layer.provide([
      Layer.succeed(PublicPages.DemoKeys, Option.isNone(settings.databaseUrl) ? demoKeys : []),
      Layer.succeed(SignaturesRequired, settings.requireSignatures)
    ])
  )
  const worker = has("worker")
    ? Layer.merge(Worker.layer(Worker.optionsFor(settings.poolSize)), Worker.layerRetention(settings.taskRetention))
    : Layer.empty
  // The role of the intake may not keep the order of the records.
  const watching = has("data-api") || has("worker") ? watch : Layer.empty
  const afterMigration = AfterMigration.layer(Databases.namesOf(settings), Layer.merge(worker, watching)).pipe(
    Layer.provide(connected)
  )
  // The parent of several processes says the same.
  const notices = Processes.isChild ? Layer.empty : Layer.provide(ConnectionNotices.layer(settings), connected)
  // The operators' listener is there before the service listens, and until it has stopped.
  const figures = Layer.mergeAll(
    Processes.isChild
      ? Figures.layerOfChild(settings.roles)
      : Layer.provide(operators(settings), Figures.layer(settings.roles)),
    Probes.layer(settings.roles)
  ).pipe(Layer.provide(connected))
  // These stop together and before all else: while requests are drained, the worker begins no task.
  const running = Layer.mergeAll(Layer.effectDiscard(draining(settings)), afterMigration, notices)
  return Layer.effectDiscard(announcement(settings)).pipe(
    Layer.provideMerge(running),
    Layer.provideMerge(Layer.unwrap(Effect.map(Server.appOf(routes), Server.serve))),
    Layer.provide(
      Listener.layer({ ...settings, ...(Processes.isChild ? Processes.childListener : {}), isMeasured: true })
    ),
    Layer.provideMerge(figures),
    Layer.provideMerge(all),
    Layer.provide(observers(settings)),
    Layer.provide([Recent.Recent.layer, ProcessRuntime.layer(settings.roles)]),
    Layer.provide(NodeServices.layer)
  )
}

/** What operators look at takes few connections. The children migrate. */
const poolsOfParent = { poolSize: 2, migrate: Option.some(false) } as const

/** Several of them behind one port. */
const several = (settings: Settings) =>
  Option.isNone(settings.databaseUrl)
    ? Layer.effectDiscard(
        Effect.fail(
          new EmbeddedDatabaseError({
            message: `PROCESSES=${settings.processes} needs a Postgres of DATABASE_URL: the embedded database serves one process.`
          })
        )
      )
    : Layer.effectDiscard(
        Effect.all(
          [
            Processes.supervise({ ...settings, stopTimeout: Duration.sum(settings.drain, grace) }),
            sayOpen(settings),
            sayOperatorsPage
          ],
          { discard: true }
        )
      ).pipe(
        Layer.provideMerge(operators(settings)),
        Layer.provideMerge(ConnectionNotices.layer(settings)),
        Layer.provide(Databases.layer({ ...settings, ...poolsOfParent }, { fill: () => Effect.void })),
        Layer.provide(Figures.layerOfChildren),
        Layer.provide([Children.layer(settings.processes), ProcessRuntime.layer(["parent"]), NodeServices.layer])
      )

const served = (settings: Settings): Layer.Layer<never, Failure.Failure | Processes.ChildEnded, LogWriter> =>
  settings.processes > 1 && !Processes.isChild
    ? Layer.unwrap(Effect.as(Memory.assertFits(settings.processes), several(settings)))
    : Layer.effectDiscard(Layer.build(single(settings)))

/** Everything, from the configuration to the open socket. */
const layer = Layer.unwrap(Effect.map(config, (settings) => Layer.provide(served(settings), observing(settings))))

/** Runs the service until a stop signal, and ends the process. */
export const run = () => {
  Failure.endAtSecondSignal()
  Layer.launch(layer).pipe(
    Effect.tapErrorTag(
      ["CannotListen", "ConfigError", "EmbeddedDatabaseError", "MigrationError", "ServeError", "SqlError"],
      Failure.report
    ),
    NodeRuntime.runMain({
      disableErrorReporting: true,
      // A stop signal is how the service is meant to end.
      teardown: (exit, onExit) =>
        Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? onExit(0) : Runtime.defaultTeardown(exit, onExit)
    })
  )
}
