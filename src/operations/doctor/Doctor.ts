/** The doctor: runs every check of an installation, each in its time, and advises what to do. */
import { accessSync, constants, existsSync, statfsSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { Duration, Effect, Option, Redacted, Result, Struct } from "effect"
import { connect, type Database, type Options as Pool } from "../../database/Database.ts"
import { poolsOf } from "../../database/Databases.ts"
import * as Embedded from "../../database/Embedded.ts"
import * as Failure from "../../process/Failure.ts"
import { config, type Role, type Settings } from "../Config.ts"
import * as Check from "./Check.ts"
import { type Fact, fail, facts, type Finding, ok, warn } from "./Check.ts"
import * as DatabaseChecks from "./DatabaseChecks.ts"
import * as MigrationsCheck from "./MigrationsCheck.ts"
import * as ServiceChecks from "./ServiceChecks.ts"
import * as SettingsChecks from "./SettingsChecks.ts"

const connectTimeout = Duration.seconds(4)

const request = {
  key: "doctor",
  within: Duration.seconds(2),
  unavailable: ({ reason }: { readonly reason: string }) => reason
}

const inArea = (area: string, found: ReadonlyArray<Fact>) =>
  found.map((fact): Finding => ({ area, ...Struct.omit(fact, ["output"]) }))

/** The databases of the configuration, each once, with the pools that connect to it. */
const databasesOf = (settings: Settings, url: Redacted.Redacted) => {
  const { credentials, records, tasks } = poolsOf(settings, url, connectTimeout)
  const isMain = (pool: Pool) => Redacted.value(pool.url) === Redacted.value(url)
  const others = [
    { variable: "READ_DATABASE_URL", pools: [records] },
    { variable: "CREDENTIALS_DATABASE_URL", pools: [credentials] }
  ]
  return [
    { variable: "DATABASE_URL", pools: [tasks, records, credentials].filter(isMain) },
    ...others.filter(({ pools }) => !pools.every(isMain))
  ]
}

/** Connects as the pools of a database do, with a connection each, and examines their sessions. */
const sessions = Effect.fnUntraced(function* (variable: string, pools: ReadonlyArray<Pool>) {
  const found: Array<Fact> = []
  const opened: Array<Database> = []
  for (const [index, pool] of pools.entries()) {
    const opening = Effect.tap(connect({ ...pool, maxConnections: 1 }), (sql) => sql`select 1`)
    const examined = Effect.matchEffect(opening, {
      onFailure: (error) =>
        Effect.succeed([
          fail(
            `The database cannot be reached: ${Failure.sqlReason(error)}`,
            `Check the host, port, login and password of ${variable}, its sslmode and files, and that the server runs and lets this machine in.`
          )
        ]),
      onSuccess: (sql) => {
        opened.push(sql)
        const subject = { pool, sql, variable }
        const checks = [DatabaseChecks.route(subject), DatabaseChecks.sessionSettingsLost(subject)]
        return Effect.map(Effect.all(checks), (each) => each.flat())
      }
    })
    found.push(...(yield* Check.examine({ [`The connections of the ${pool.name ?? "database"}`]: examined })))
    // The others would fail alike.
    if (opened.length <= index) break
  }
  return { found, sql: opened[0] }
})

/** The checks of a database of the configuration. */
const checksOf = (subject: DatabaseChecks.Examined): Check.Checks => {
  const { settings, sql, variable } = subject
  const isServer = variable !== undefined
  // The login of another role may not look at them.
  const isMainOf = (...roles: ReadonlyArray<Role>) =>
    (!isServer || variable === "DATABASE_URL") && settings.roles.some((role) => roles.includes(role))
  return {
    ...(isServer && { "The server": DatabaseChecks.server(subject), "Its connections": DatabaseChecks.room(subject) }),
    "Its migrations": MigrationsCheck.ofExamined(subject),
    ...(isMainOf("intake", "worker") && { "Its deletions": DatabaseChecks.deletions(sql) }),
    ...(isMainOf("data-api") && { "Its changes": DatabaseChecks.changes(sql) }),
    "Its replication": DatabaseChecks.replication(subject)
  }
}

const servers = Effect.fnUntraced(function* (settings: Settings, url: Redacted.Redacted) {
  const findings: Array<Finding> = []
  let primary: Database | undefined
  for (const { pools, variable } of databasesOf(settings, url)) {
    const { found, sql } = yield* sessions(variable, pools)
    findings.push(...inArea(variable, found))
    if (sql === undefined) continue
    if (variable === "DATABASE_URL") primary = sql
    const subject = { settings, variable, pools, sql, request }
    const above = variable === "READ_DATABASE_URL" ? primary : undefined
    findings.push(...inArea(variable, yield* Check.examine(checksOf({ ...subject, primary: above }))))
  }
  return { findings, sql: primary }
})

/** Mebibytes that the disk of the embedded database should have left. */
const little = 500

/** The findings about the folder of the embedded database, which may have a database that can be opened. */
const folderOf = (dataDir: string) => {
  if (dataDir === "memory") {
    return { found: [ok("DATA_DIR=memory: it is kept in the memory of the service.")], canOpen: false }
  }
  const folder = resolve(dataDir)
  const isThere = existsSync(join(folder, "made"))
  let parent = folder
  while (!existsSync(parent)) parent = dirname(parent)
  // The dot refuses a file.
  const isWritable = Result.isSuccess(Result.try(() => accessSync(`${parent}/.`, constants.W_OK)))
  const { bavail, bsize } = Result.getOrElse(
    Result.try(() => statfsSync(parent)),
    () => ({ bavail: Infinity, bsize: 1 })
  )
  const mebibytes = Math.floor((bavail * bsize) / 1024 ** 2)
  const found = facts(
    !isWritable &&
      fail(
        `${folder} cannot be written: ${parent} is no folder, or not this user's.`,
        "Choose another folder with DATA_DIR, or give this user the right."
      ),
    mebibytes < little && warn(`${parent} has ${mebibytes} MiB left.`, "Make room on its disk."),
    !isThere && isWritable && ok(`There is none in ${folder} yet; the first start makes it.`)
  )
  return { found, canOpen: isThere && isWritable }
}

const embedded = Effect.fnUntraced(function* (settings: Settings) {
  const { dataDir, processes } = settings
  const { canOpen, found } = folderOf(dataDir)
  const several = fail(`PROCESSES=${processes} needs a Postgres.`, "Set DATABASE_URL, or leave PROCESSES unset.")
  const before = facts(processes > 1 && several, ...found)
  if (!canOpen) return before
  const opened = Effect.gen(function* () {
    const { isGuest, sql } = yield* Embedded.connect(dataDir, { asGuest: true })
    const subject = { settings, variable: undefined, pools: [], sql, primary: undefined, request }
    return [
      ok(isGuest ? "Another process has it open, and shares it." : "It opens."),
      ...(yield* Check.examine(checksOf(subject)))
    ]
  }).pipe(
    Effect.catchTags({
      EmbeddedDatabaseError: ({ message }) =>
        Effect.succeed([fail(message, "Stop the other process, or choose another DATA_DIR.")]),
      SqlError: (error) => Effect.succeed([fail(`It does not open: ${Failure.sqlReason(error)}`, "Look at the log.")])
    }),
    Effect.scoped
  )
  return [...before, ...(yield* opened)]
})

export const examine = Effect.fn("Doctor.examine")(function* () {
  const configured = inArea("Configuration", yield* SettingsChecks.environment)
  const read = yield* Effect.option(config)
  if (Option.isNone(read)) return configured
  const settings = read.value
  const { findings, sql } = Option.isSome(settings.databaseUrl)
    ? yield* servers(settings, settings.databaseUrl.value)
    : { findings: inArea("Embedded database", yield* embedded(settings)), sql: undefined }
  return [
    ...configured,
    ...inArea("Configuration", SettingsChecks.ignoredParameters(settings)),
    ...inArea("Configuration", SettingsChecks.publicAddress(settings)),
    ...inArea("Configuration", SettingsChecks.operatorsListener(settings)),
    ...findings,
    ...inArea(
      "Payment processor",
      yield* Check.examine({ "The processor": ServiceChecks.processor({ settings, sql }) })
    ),
    ...inArea("Service", yield* Check.examine({ "The service": ServiceChecks.service(settings) }))
  ]
})
