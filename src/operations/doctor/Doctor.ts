/** The doctor: finds what keeps an installation from working, and advises what to do. It changes nothing. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Config, Effect, Option, Redacted, Result } from "effect"
import { textsOf } from "../../database/Columns.ts"
import { connectionOptions, format } from "../../database/ConnectionUrl.ts"
import { connect, type Database, type PoolOptions as Pool } from "../../database/Database.ts"
import { poolsOf } from "../../database/Databases.ts"
import * as Embedded from "../../database/Embedded.ts"
import * as Failure from "../../process/Failure.ts"
import * as Variable from "../../process/Variable.ts"
import { type PspError, stripe } from "../../psp/PspClient.ts"
import type { needs } from "../Privileges.ts"
import { readSettings, type Role, type Settings, variables } from "../Settings.ts"
import * as Checks from "./DatabaseChecks.ts"
import { attempt, type Fact, fail, type Finding, inArea, ok, warn } from "./Finding.ts"

/** The text of a value: of a secret that is the URL of a Postgres, without its password and parameters. */
const shown = (value: unknown, text: string) => {
  const inner = Option.isOption(value) ? Option.getOrUndefined(value) : value
  if (!Redacted.isRedacted(inner)) return text
  return Result.match(connectionOptions(text), { onFailure: () => "(set)", onSuccess: format })
}

/** The fact about a variable, unless it is unset. */
const inspect = Effect.fnUntraced(function* (setting: Config.Config<unknown>) {
  const name = yield* Variable.firstName(setting)
  const text = yield* Config.withDefault(Config.String(name), "")
  const value = yield* Effect.result(setting)
  if (Result.isSuccess(value)) return text === "" ? [] : [ok(`${name}=${shown(value.success, text)}`)]
  return [fail(Failure.explain(value.failure), `Set ${name} to a valid value, or unset it.`)]
})

interface Examined {
  readonly variable: string
  readonly pools: ReadonlyArray<Pool>
  readonly needed: ReadonlyArray<readonly [Role, keyof typeof needs]>
}

/** The databases of the configuration, each once, with the pools that connect to it and what their statements need. */
const databasesOf = (settings: Settings, url: Redacted.Redacted): ReadonlyArray<Examined> => {
  const { changes, credentials, records, tasks } = poolsOf(settings, url, "4 seconds")
  const { roles } = settings
  const others = roles.flatMap((role) => (role === "data-api" ? [] : [[role, role] as const]))
  const main = { variable: "DATABASE_URL", pools: [tasks], needed: others }
  if (!roles.includes("data-api")) return [main]
  const ofDataApi = (variable: string, pool: Pool, need: keyof typeof needs): Examined => ({
    variable: Redacted.value(pool.url) === Redacted.value(url) ? main.variable : variable,
    pools: [pool],
    needed: [["data-api", need]]
  })
  const reads = ofDataApi("READ_DATABASE_URL", records, "records")
  // With a replica, changes have a pool of their own.
  const ofChanges = { ...ofDataApi("", changes, "tasks"), ...(reads.variable === main.variable && { pools: [] }) }
  const all = [main, reads, ofChanges, ofDataApi("CREDENTIALS_DATABASE_URL", credentials, "credentials")]
  return Array.from(
    Map.groupBy(all, ({ variable }) => variable),
    ([variable, same]) => ({
      variable,
      pools: same.flatMap(({ pools }) => pools),
      needed: same.flatMap(({ needed }) => needed)
    })
  )
}

/** Examines a database by one connection of its first pool, and returns the connection, if there is one. */
const examineDatabase = Effect.fnUntraced(function* (settings: Settings, { needed, pools, variable }: Examined) {
  let opened: Database | undefined
  const connecting = Effect.gen(function* () {
    const [pool] = pools
    if (pool === undefined) return []
    const sql = yield* connect({ ...pool, maxConnections: 1 })
    yield* sql`select 1`
    opened = sql
    return []
  })
  const found = [...(yield* attempt("It", connecting))]
  const sql = opened
  if (sql !== undefined) {
    const isMain = variable === "DATABASE_URL"
    const has = (...roles: ReadonlyArray<Role>) => isMain && settings.roles.some((role) => roles.includes(role))
    const isWritten = variable !== "READ_DATABASE_URL"
    found.push(...(yield* attempt("The server", Checks.server(sql, pools.length * settings.poolSize, isWritten))))
    found.push(...(yield* attempt("Its schema", Checks.schema(sql, needed))))
    // The login of another role may not look at them.
    if (has("intake", "worker")) found.push(...(yield* attempt("Its deletions", Checks.deletions(sql))))
    if (has("data-api", "worker")) found.push(...(yield* attempt("Its feed", Checks.feed(sql))))
  }
  return { sql, findings: inArea(variable, found) }
})

const embedded = Effect.fnUntraced(function* ({ dataDir }: Settings) {
  if (!existsSync(join(dataDir, "made"))) return [ok(`None in DATA_DIR=${dataDir} yet; the first start creates it.`)]
  return yield* Effect.gen(function* () {
    const sql = yield* Embedded.connect(dataDir)
    return [ok("It opens."), ...(yield* Checks.schema(sql, [])), ...(yield* Checks.deletions(sql))]
  }).pipe(
    Effect.catchTag(["EmbeddedDatabaseError", "SqlError"], (error) => {
      const isInUse = error._tag === "EmbeddedDatabaseError" && error.isInUse === true
      return Effect.succeed([
        isInUse ? warn("It was not examined.", error.message) : fail("It does not open.", Failure.explain(error))
      ])
    }),
    Effect.scoped
  )
})

/** The state of the processor by the error of a read, without any text of the processor. */
const processorFault = (error: PspError): Fact =>
  error._tag === "PspFailed" && (error.blame === "psp" || error.blame === "unclear")
    ? fail(`It is unusable (${error.reason}).`, "Check STRIPE_SECRET_KEY, STRIPE_API_URL and the network path to it.")
    : warn(
        `It accepts the key, but refuses to read the account of a clinic (${"reason" in error ? error.reason : error._tag}).`,
        "Retry later. If the problem persists, ask the clinic to reconnect its account."
      )

/** Reads an account that is connected, if the database that has the accounts can be reached. */
const processor = Effect.fnUntraced(function* (settings: Settings, sql: Database | undefined) {
  const { databaseUrl, stripeApiUrl: apiUrl, stripeSecretKey } = settings
  if (Option.isNone(stripeSecretKey)) {
    return Option.isNone(databaseUrl)
      ? [ok("It is the demo processor of the embedded database.")]
      : [warn("It is not configured: reads of clinics' accounts return 503.", "Set STRIPE_SECRET_KEY.")]
  }
  if (sql === undefined) return [ok("It is configured.")]
  const [account] = yield* textsOf(sql`
    select processor_account as text from clinics where processor_account is not null limit 1`)
  if (account === undefined) return [ok("It is configured. No clinic has a connected account to test.")]
  const client = yield* stripe({ secretKey: stripeSecretKey.value, apiUrl })
  return yield* Effect.match(client.list("payouts", account, { limit: 1 }), {
    onFailure: (error) => [processorFault(error)],
    onSuccess: () => [ok("It responds.")]
  })
})

export const examine = Effect.fn("Doctor.examine")(function* () {
  const settingsOfAll: ReadonlyArray<Config.Config<unknown>> = Object.values(variables)
  const findings: Array<Finding> = inArea("Configuration", (yield* Effect.forEach(settingsOfAll, inspect)).flat())
  const read = yield* Effect.option(readSettings)
  if (Option.isNone(read)) return findings
  const settings = read.value
  let primary: Database | undefined
  if (Option.isNone(settings.databaseUrl)) {
    findings.push(...inArea("Embedded database", yield* embedded(settings)))
  } else {
    for (const database of databasesOf(settings, settings.databaseUrl.value)) {
      const examined = yield* examineDatabase(settings, database)
      findings.push(...examined.findings)
      if (database.variable === "DATABASE_URL") primary = examined.sql
    }
  }
  if (settings.roles.includes("data-api")) {
    findings.push(...inArea("Payment processor", yield* attempt("It", processor(settings, primary))))
  }
  return findings
})
