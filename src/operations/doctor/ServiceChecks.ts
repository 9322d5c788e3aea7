/** Checks of the configuration, of the payment processor by one cheap read of an account, and of the service or its port. */
import { existsSync, readFileSync } from "node:fs"
import { Config, Effect, Option, Redacted, Result } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { Health } from "../../api/IntakeApi.ts"
import { textsOf } from "../../database/Columns.ts"
import * as ConnectionUrl from "../../database/ConnectionUrl.ts"
import type { Database } from "../../database/Database.ts"
import * as OtlpConfig from "../../observability/OtlpConfig.ts"
import * as Failure from "../../process/Failure.ts"
import { version } from "../../process/Package.ts"
import { assertIsFree } from "../../process/Port.ts"
import * as Variable from "../../process/Variable.ts"
import { type PspError, stripe } from "../../psp/PspClient.ts"
import { isLoopback, type Settings, variables } from "../Settings.ts"
import { type Fact, fail, facts, ok, warn } from "../Check.ts"

/** The text of a value: of a secret that is the URL of a Postgres, without its password and parameters. */
const shown = (value: unknown, text: string) => {
  const inner = Option.isOption(value) ? Option.getOrUndefined(value) : value
  if (!Redacted.isRedacted(inner)) return text
  return Result.match(ConnectionUrl.connectionOptions(text), {
    onFailure: () => "(set)",
    onSuccess: ConnectionUrl.format
  })
}

/** The fact about a variable, unless it is unset. */
const inspect = Effect.fnUntraced(function* (setting: Config.Config<unknown>) {
  const name = yield* Variable.firstName(setting)
  const text = yield* Config.withDefault(Config.String(name), "")
  const value = yield* Effect.result(setting)
  if (Result.isSuccess(value)) return text === "" ? [] : [ok(`${name}=${shown(value.success, text)}`)]
  return [fail(Failure.explain(value.failure), `Set ${name} to a valid value, or unset it.`)]
})

/** The variables that are set, without secrets, and the mistakes in them. */
export const environment = Effect.gen(function* () {
  const settings: ReadonlyArray<Config.Config<unknown>> = [...Object.values(variables), ...OtlpConfig.variables]
  const inspected = yield* Effect.forEach(settings, inspect)
  const set = inspected.flat()
  return [...set, ok(`${inspected.length - set.length} more have defaults.`)]
})

export const user = () =>
  facts(process.getuid?.() === 0 && warn("This process runs as root.", "Run it as a dedicated user."))

const limitsOfProcess = () => (existsSync("/proc/self/limits") ? readFileSync("/proc/self/limits", "utf8") : "")

/** The files of a process beside its connections: those to databases and to the processor among them. */
const spareFiles = 200

/** A limit of open files that MAX_CONNECTIONS exceeds. `limits`: those of the process, as Linux shows them. */
export const openFiles = ({ maxConnections }: Settings, limits = limitsOfProcess()): ReadonlyArray<Fact> => {
  const most = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? Infinity)
  const needed = maxConnections + spareFiles
  return facts(
    most < needed &&
      warn(
        `MAX_CONNECTIONS=${maxConnections} needs ${needed} open files, and this process may have ${most}.`,
        "Raise the limit (ulimit -n, LimitNOFILE), or lower MAX_CONNECTIONS."
      )
  )
}

/** The endpoints that are open, and to whom. */
export const publicAddress = ({ databaseUrl, host, requireSignatures, roles }: Settings): ReadonlyArray<Fact> => {
  const keys = Option.isNone(databaseUrl) ? "the public demo API keys" : "an API key"
  const deletions = requireSignatures
    ? "signed deletions"
    : "deletions, unsigned unless the organization has a signing secret"
  const open = [
    ...(roles.includes("data-api") ? [`reads with ${keys}`] : []),
    ...(roles.includes("intake") ? [deletions] : []),
    "health"
  ]
  const reach = isLoopback(host) ? "this machine only" : `every machine that can reach ${host}`
  return [ok(`Open to ${reach}: ${open.join("; ")}`)]
}

/** An operators' listener that other machines reach. */
export const operatorsListener = ({ operationsHost, operationsPort }: Settings): ReadonlyArray<Fact> =>
  facts(
    !isLoopback(operationsHost) &&
      Option.isSome(operationsPort) &&
      warn(
        `OPERATIONS_HOST=${operationsHost} lets other machines read /metrics and /health.`,
        "Let only monitors reach this port."
      )
  )

const notConfigured = warn("It is not configured: reads of clinics' accounts return 503.", "Set STRIPE_SECRET_KEY.")

/** The state of the processor by the error of a read, without any text of the processor. */
const factOf = (error: PspError): Fact =>
  error._tag === "PspFailed" && (error.blame === "psp" || error.blame === "unclear")
    ? fail(
        `The processor is unusable (${error.reason}).`,
        "Check STRIPE_SECRET_KEY, STRIPE_API_URL and the network path to the processor."
      )
    : warn(
        `The processor accepts the key, but refuses to read the account of a clinic (${"reason" in error ? error.reason : error._tag}).`,
        "Retry later. If the problem persists, ask the clinic to reconnect its account."
      )

/** @param sql the database that has the accounts, if it can be reached */
export const processor = Effect.fnUntraced(function* (settings: Settings, sql: Database | undefined) {
  const { databaseUrl, stripeApiUrl, stripeSecretKey } = settings
  if (Option.isNone(stripeSecretKey)) {
    return [Option.isNone(databaseUrl) ? ok("It is the demo processor of the embedded database.") : notConfigured]
  }
  const secretKey = stripeSecretKey.value
  const kind = Redacted.value(secretKey).startsWith("sk_test_") ? "a test key" : "a key"
  const configured = ok(`It is configured with ${kind}.`)
  if (sql === undefined) return [configured]
  const [account] = yield* textsOf(
    sql`select processor_account as text from clinics where processor_account is not null limit 1`
  )
  if (account === undefined) return [configured, ok("No clinic has a connected account to test.")]
  const client = yield* stripe({ secretKey, apiUrl: stripeApiUrl })
  const tried = yield* Effect.match(client.list("payouts", account, { limit: 1 }), {
    onFailure: factOf,
    onSuccess: () => ok("The processor responds.")
  })
  return [configured, tried]
})

/** An address to listen on, as this machine reaches it. */
export const reachable = (address: string) =>
  address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")

/** The health of the service on its port; or whether it could listen there. */
export const service = Effect.fnUntraced(function* (settings: Settings) {
  if (settings.port === 0) return [ok("PORT=0: it uses any free port.")]
  const address = reachable(`http://${ConnectionUrl.formatHost(settings)}`)
  const running = yield* HttpClient.get(`${address}/api/v1/health`).pipe(
    Effect.flatMap(HttpClientResponse.filterStatusOk),
    Effect.flatMap(HttpClientResponse.schemaBodyJson(Health)),
    Effect.timeout("2 seconds"),
    Effect.option
  )
  if (Option.isNone(running)) {
    return yield* Effect.match(assertIsFree(settings), {
      onSuccess: () => [ok(`It is not running here, and port ${settings.port} is free.`)],
      onFailure: (error) => [fail(`It does not respond at ${address}, and cannot start there.`, Failure.explain(error))]
    })
  }
  const { checks, version: own } = running.value
  return facts(
    ok(`It is running at ${address}, version ${own}; this is ${version}.`),
    ...Object.entries(checks).map(
      ([name, { output, status }]) =>
        status === "warn" &&
        warn(`Its health endpoint warns about ${name}: ${output}.`, "See the other findings and its log.")
    )
  )
})
