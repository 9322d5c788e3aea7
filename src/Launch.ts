/** The service as its configuration describes it, and what it says when it is up. */
import { NodeServices } from "@effect/platform-node"
import { Console, Duration, Effect, Layer, Logger, Option, References } from "effect"
import { HttpServer } from "effect/http"
import { config, type Role, type Settings } from "./Config.ts"
import * as Databases from "./Database/Databases.ts"
import { organizations } from "./Demo/DemoData.ts"
import { accounts } from "./Demo/DemoProcessor.ts"
import { HealthChecks } from "./Health/HealthChecks.ts"
import * as Worker from "./InvoiceDeletions/Worker.ts"
import { PspClient } from "./Psp/PspClient.ts"
import * as Server from "./Server.ts"
import * as Services from "./Services.ts"

const formats = {
  pretty: Logger.consolePretty(),
  json: Logger.consoleJson,
  logfmt: Logger.consoleLogFmt
} as const

const observing = ({ logFormat, logLevel }: Settings) =>
  Layer.mergeAll(
    Logger.layer([formats[logFormat]]),
    Layer.succeed(References.MinimumLogLevel, logLevel),
    // Nobody collects the spans, and making them would cost more than all else that is done for a page.
    Layer.succeed(References.TracerEnabled, false)
  )

const demoNotice = (address: string) => `
  This is the embedded database with demo data. Its API keys:
${organizations.map(({ slug, key }) => `    ${key}  (org_${slug})`).join("\n")}

  Try it:
    curl -s ${address}/api/v3/charges/search -H 'Authorization: Bearer ${organizations[0].key}' -H 'Content-Type: application/json' -d '{"limit":2}'

  Documentation: ${address}/api/v3/docs and ${address}/api/v1/docs
`

const reachable = (address: string) => address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")

const announcement = ({ databaseUrl }: Settings) =>
  Effect.gen(function* () {
    const server = yield* HttpServer.HttpServer
    const { stop } = yield* HealthChecks
    const address = HttpServer.formatAddress(server.address)
    yield* Effect.log(`Listening on ${address}`)
    if (Option.isNone(databaseUrl)) yield* Console.log(demoNotice(reachable(address)))
    yield* Effect.addFinalizer(() => stop)
  })

/** The processor: Stripe with a key, the demo processor on the embedded database, else none. */
const processor = ({ databaseUrl, stripeApiUrl, stripeSecretKey }: Settings) =>
  Option.match(stripeSecretKey, {
    onSome: (secretKey) => PspClient.layerStripe({ secretKey, apiUrl: stripeApiUrl }),
    onNone: () => (Option.isNone(databaseUrl) ? PspClient.layerMemory(accounts) : PspClient.layerNotConfigured)
  })

const lease = Duration.millis(1500)

/** Everything, from the configuration to the open socket. */
export const layer = Layer.unwrap(
  Effect.map(config, (settings) => {
    const has = (role: Role) => settings.roles.includes(role)
    const services = Layer.mergeAll(HealthChecks.layer, Services.layerIntake(settings.deletionDelay)).pipe(
      Layer.provideMerge(Services.layer),
      Layer.provide([Databases.layer(settings), processor(settings)])
    )
    const routes = Layer.mergeAll(
      Server.operationsRoutes,
      has("data-api") ? Server.dataApiRoutes : Layer.empty,
      has("intake") ? Server.intakeRoutes(settings.deletionDelay) : Layer.empty
    )
    const worker = has("worker")
      ? Worker.layer({ batch: 64, concurrency: Math.max(1, Math.floor(settings.poolSize / 2)), lease })
      : Layer.empty
    return Layer.mergeAll(Layer.effectDiscard(announcement(settings)), worker).pipe(
      Layer.provideMerge(Server.serve(routes)),
      Layer.provide(Server.listen(settings)),
      Layer.provideMerge(services),
      Layer.provide(observing(settings)),
      Layer.provide(NodeServices.layer)
    )
  })
)
