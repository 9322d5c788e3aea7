/** The doctor: finds what keeps an installation from working, and advises what to do. It changes nothing. */
import { Array, type Config, Duration, Effect, Option, Record, Redacted } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { type PspKind, pspGroups } from "../../api/Psp.ts"
import { decodeTexts } from "../../database/Columns.ts"
import { connect, type PoolOptions } from "../../database/Database.ts"
import { poolOptions } from "../../database/Databases.ts"
import { sqlMessage } from "../../database/SqlFailure.ts"
import * as Failure from "../../process/Failure.ts"
import { type PspError, stripe } from "../../psp/PspClient.ts"
import { neededBy } from "../Privileges.ts"
import { readSettings, type Role, type Settings, variables } from "../Settings.ts"
import * as Checks from "./DatabaseChecks.ts"
import { type Fact, fail, ok, warn } from "./DatabaseChecks.ts"

/** The variables that are wrong. */
const configuration = Effect.gen(function* () {
  const all: ReadonlyArray<Config.Config<unknown>> = Object.values(variables)
  const [, wrong] = yield* Effect.partition(all, (variable) => variable)
  const faults = wrong.map((error) => fail(Failure.explain(error), "Set the variable to a valid value, or unset it."))
  return faults.length > 0 ? faults : [ok("Every variable is valid.")]
})

const advice = "Check the URL (host, port, login, password, sslmode), and that the server is running. See its log."

/** The facts of a check. A failure or a timeout is a fact. */
const attempt = <R>(name: string, check: Effect.Effect<ReadonlyArray<Fact>, SqlError, R>, longest = 6) =>
  check.pipe(
    Effect.catch((error) => Effect.succeed([fail(`${name} could not be checked: ${sqlMessage(error)}`, advice)])),
    Effect.catchDefect(() =>
      Effect.succeed([fail(`${name} could not be checked.`, "This is a bug: please report it.")])
    ),
    Effect.timeoutOrElse({
      duration: Duration.seconds(longest),
      orElse: () => Effect.succeed([fail(`${name} could not be checked: no response in ${longest} s.`, advice)])
    })
  )

/** The pools of a process, by the variable of their database. */
const usedPools = (settings: Settings, url: Redacted.Redacted) => {
  const { changes, credentials, records, tasks } = poolOptions(settings, url, "4 seconds")
  const used = [
    tasks,
    ...(settings.roles.includes("data-api") ? [records, credentials] : []),
    // With a replica, changes have a pool of their own.
    ...(Option.isSome(settings.readDatabaseUrl) ? [changes] : [])
  ]
  const byVariable = Array.groupBy(used, (options) => {
    if (Redacted.value(options.url) === Redacted.value(url)) return "DATABASE_URL"
    return options === records ? "READ_DATABASE_URL" : "CREDENTIALS_DATABASE_URL"
  })
  return Object.entries(byVariable)
}

/** Examines a database by one connection. */
const database = Effect.fnUntraced(function* (
  { poolSize, roles }: Settings,
  variable: string,
  pools: Array.NonEmptyReadonlyArray<PoolOptions>
) {
  const sql = yield* connect({ ...pools[0], maxConnections: 1 })
  yield* sql`select 1`
  const needs = neededBy(roles).filter((need) => pools.some(({ pool }) => pool === need.database))
  const has = (...some: ReadonlyArray<Role>) => variable === "DATABASE_URL" && roles.some((role) => some.includes(role))
  const found = yield* Effect.all([
    attempt("The server", Checks.server(sql, pools.length * poolSize, variable !== "READ_DATABASE_URL")),
    attempt("Its schema", Checks.schema(sql, needs)),
    // The login of another role may not look at them.
    ...(has("intake", "worker") ? [attempt("Its deletions", Checks.deletions(sql))] : []),
    ...(has("worker") ? [attempt("Its deleted rows", Checks.served(sql))] : []),
    ...(has("data-api", "worker") ? [attempt("Its feed", Checks.feed(sql))] : [])
  ])
  return found.flat()
})

/** The state of the processor by the error of a read of a kind of objects, without any text of the processor. */
const processorFault = (kind: PspKind, error: PspError): Fact => {
  if (error._tag === "PspFailed" && error.blame === "permission") {
    return fail(`STRIPE_SECRET_KEY may not read ${kind} (${error.reason}).`, `Let the restricted key read ${kind}.`)
  }
  return error._tag === "PspFailed" && (error.blame === "psp" || error.blame === "unclear")
    ? fail(`It is unusable (${error.reason}).`, "Check STRIPE_SECRET_KEY, STRIPE_API_URL and the network path to it.")
    : warn(
        `It accepts the key, but refuses to read the account of a clinic (${"reason" in error ? error.reason : error._tag}).`,
        "Retry later. If the problem persists, ask the clinic to reconnect its account."
      )
}

/** Reads an account that is connected. */
const processor = Effect.fnUntraced(function* (settings: Settings) {
  const { databaseUrl, stripeApiUrl: apiUrl, stripeSecretKey } = settings
  if (Option.isNone(stripeSecretKey)) {
    return Option.isNone(databaseUrl)
      ? [ok("It is the demo processor of the embedded database.")]
      : [warn("It is not configured: reads of clinics' accounts return 503.", "Set STRIPE_SECRET_KEY.")]
  }
  if (Option.isNone(databaseUrl)) return [ok("It is configured.")]
  const sql = yield* connect({ ...poolOptions(settings, databaseUrl.value, "4 seconds").tasks, maxConnections: 1 })
  const [account] = yield* decodeTexts(sql`
    select processor_account as text from clinics where processor_account is not null limit 1`)
  if (account === undefined) return [ok("It is configured. No clinic has a connected account to test.")]
  const client = yield* stripe({ secretKey: stripeSecretKey.value, apiUrl })
  const read = (kind: PspKind) =>
    Effect.match(client.list(kind, account, { limit: 1 }), {
      onFailure: (error) => [processorFault(kind, error)],
      onSuccess: () => []
    })
  const faults = (yield* Effect.forEach(Record.keys(pspGroups), read, { concurrency: "unbounded" })).flat()
  return faults.length > 0 ? Array.dedupe(faults) : [ok("It responds.")]
})

/** A fact with its area, such as a database. */
export type Finding = Fact & { readonly area: string }

const inArea = (area: string, found: ReadonlyArray<Fact>) => found.map((fact): Finding => ({ area, ...fact }))

/** Examines the configuration, the databases and the processor. */
export const examine = Effect.fn("Doctor.examine")(function* () {
  const findings = inArea("Configuration", yield* configuration)
  const read = yield* Effect.option(readSettings)
  if (Option.isNone(read)) return findings
  const settings = read.value
  if (Option.isNone(settings.databaseUrl)) {
    const message = `The service keeps it in DATA_DIR=${settings.dataDir}, and makes it at its first start.`
    findings.push(...inArea("Embedded database", [ok(message)]))
  } else {
    for (const [variable, pools] of usedPools(settings, settings.databaseUrl.value)) {
      findings.push(...inArea(variable, yield* attempt("It", database(settings, variable, pools), 30)))
    }
  }
  if (settings.roles.includes("data-api")) {
    findings.push(...inArea("Payment processor", yield* attempt("It", processor(settings), 15)))
  }
  return findings
})
