/** The doctor: runs every check of an installation, each in its time, and advises what to do. */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { Duration, Effect, Option, Redacted } from "effect"
import { connect, type Database, type PoolOptions as Pool } from "../../database/Database.ts"
import { poolsOf } from "../../database/Databases.ts"
import * as Embedded from "../../database/Embedded.ts"
import * as Failure from "../../process/Failure.ts"
import { readSettings, type Role, type Settings } from "../Settings.ts"
import * as Check from "../Check.ts"
import { fail, type Finding, inArea, ok, warn } from "../Check.ts"
import * as DatabaseChecks from "./DatabaseChecks.ts"
import * as MigrationsCheck from "./MigrationsCheck.ts"
import * as RecordChecks from "./RecordChecks.ts"
import * as ServiceChecks from "./ServiceChecks.ts"

/** The databases of the configuration, each once, with the pools that connect to it. */
const databasesOf = (settings: Settings, url: Redacted.Redacted) => {
  const { credentials, records, tasks } = poolsOf(settings, url, Duration.seconds(4))
  const isMain = (pool: Pool) => Redacted.value(pool.url) === Redacted.value(url)
  // The other roles have no such pools.
  const ofDataApi = settings.roles.includes("data-api") ? [records, credentials] : []
  return [
    { variable: "DATABASE_URL", pools: [tasks, ...ofDataApi.filter(isMain)] },
    ...ofDataApi
      .filter((pool) => !isMain(pool))
      .map((pool) => ({ variable: pool === records ? "READ_DATABASE_URL" : "CREDENTIALS_DATABASE_URL", pools: [pool] }))
  ]
}

const checksOf = (subject: DatabaseChecks.Examined): Check.Checks => {
  const { settings, sql, variable } = subject
  const isMain = variable === "DATABASE_URL"
  // The login of another role may not look at them.
  const isMainOf = (...roles: ReadonlyArray<Role>) => isMain && settings.roles.some((role) => roles.includes(role))
  // The processes only read the records and the API keys of others.
  const needed = settings.roles.filter((role) => isMain || role === "data-api")
  return {
    "The server": DatabaseChecks.server(subject),
    "Its migrations": MigrationsCheck.check(sql, needed, variable === "CREDENTIALS_DATABASE_URL"),
    ...(isMainOf("intake", "worker") && { "Its deletions": DatabaseChecks.deletions(sql) }),
    ...(isMainOf("worker") && { "Its deleted records": RecordChecks.deletionsApplied(sql) }),
    ...(isMainOf("data-api") && { "Its changes": DatabaseChecks.changes(sql) }),
    "Its subscriptions": RecordChecks.subscriptions(sql)
  }
}

const servers = Effect.fnUntraced(function* (settings: Settings, url: Redacted.Redacted) {
  const findings: Array<Finding> = []
  let primary: Database | undefined
  for (const { pools, variable } of databasesOf(settings, url)) {
    const opened: Array<Database> = []
    for (const [index, pool] of pools.entries()) {
      // As the pool does, with one connection.
      const session = Effect.gen(function* () {
        const sql = yield* Effect.tap(connect({ ...pool, maxConnections: 1 }), (client) => client`select 1`)
        opened.push(sql)
        const subject = { pool, sql, variable }
        return [...DatabaseChecks.connection(subject), ...(yield* DatabaseChecks.sessionSettingsLost(subject))]
      })
      findings.push(
        ...(yield* Check.examine(variable, { [`The connection of the ${pool.name ?? "database"}`]: session }))
      )
      // The others would fail alike.
      if (opened.length <= index) break
    }
    const [sql] = opened
    if (sql === undefined) continue
    if (variable === "DATABASE_URL") primary = sql
    findings.push(...(yield* Check.examine(variable, checksOf({ settings, variable, pools, sql }))))
    if (variable === "DATABASE_URL" && settings.roles.includes("data-api")) {
      const references = { "Its references": RecordChecks.referencesToNothing(sql) }
      findings.push(...(yield* Check.examine(variable, references, Duration.seconds(12))))
    }
  }
  return { findings, sql: primary }
})

const embedded = Effect.fnUntraced(function* ({ dataDir }: Settings) {
  const area = "Embedded database"
  const isMade = existsSync(join(dataDir, "made"))
  if (!isMade) return inArea(area, [ok(`None in DATA_DIR=${dataDir} yet; the first start creates it.`)])
  return yield* Effect.gen(function* () {
    const sql = yield* Embedded.connect(dataDir)
    const checks = { "Its migrations": MigrationsCheck.check(sql, []), "Its deletions": DatabaseChecks.deletions(sql) }
    return [...inArea(area, [ok("It opens.")]), ...(yield* Check.examine(area, checks))]
  }).pipe(
    Effect.catchTag(["EmbeddedDatabaseError", "SqlError"], (error) =>
      Effect.succeed(
        inArea(area, [
          error._tag === "EmbeddedDatabaseError" && error.isInUse === true
            ? warn("It was not examined.", error.message)
            : fail("It does not open.", Failure.explain(error))
        ])
      )
    ),
    Effect.scoped
  )
})

export const examine = Effect.fn("Doctor.examine")(function* () {
  const configured = inArea("Configuration", yield* ServiceChecks.environment)
  const read = yield* Effect.option(readSettings)
  if (Option.isNone(read)) return configured
  const settings = read.value
  const { findings, sql } = Option.isSome(settings.databaseUrl)
    ? yield* servers(settings, settings.databaseUrl.value)
    : { findings: yield* embedded(settings), sql: undefined }
  const { operatorsListener, processor, publicAddress, service } = ServiceChecks
  const ofSettings = [publicAddress, operatorsListener].flatMap((check) => check(settings))
  return [
    ...configured,
    ...inArea("Configuration", ofSettings),
    ...findings,
    ...(yield* Check.examine(
      "Payment processor",
      settings.roles.includes("data-api") ? { "The processor": processor(settings, sql) } : {}
    )),
    ...(yield* Check.examine("Service", { "The service": service(settings) }))
  ]
})
