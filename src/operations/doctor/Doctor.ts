/** The doctor: runs every check of an installation, each in its time, and advises what to do. */
import { statfs } from "node:fs/promises"
import { Duration, Effect, FileSystem, Option, Path, Redacted } from "effect"
import { config, type Settings } from "../Config.ts"
import { connect, type Database, type Options as Pool } from "../../database/Database.ts"
import { poolsOf } from "../../database/Databases.ts"
import * as Embedded from "../../database/Embedded.ts"
import * as Failure from "../../process/Failure.ts"
import * as Check from "./Check.ts"
import { databaseChecks, sessionChecks } from "./DatabaseChecks.ts"
import { processorChecks, serviceChecks } from "./ServiceChecks.ts"
import { environment, settingsChecks } from "./SettingsChecks.ts"

const connectTimeout = Duration.seconds(4)

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

/** Connects as a pool does, with one connection. */
const reach = (pool: Pool) => Effect.tap(connect({ ...pool, maxConnections: 1 }), (sql) => sql`select 1`)

const unreachable = (variable: string, error: Parameters<typeof Failure.sqlReason>[0]) =>
  Check.fail(
    `The database cannot be reached: ${Failure.sqlReason(error)}`,
    `Check the host, port, login and password of ${variable}, its sslmode and files, and that the server runs and lets this machine in.`
  )

/** The findings about a session of a pool. */
const session = (variable: string, pool: Pool) =>
  Check.attempt(
    `The connections of the ${pool.name ?? "database"}`,
    Effect.gen(function* () {
      const subject = { pool, sql: yield* reach(pool), variable }
      return (yield* Effect.forEach(Check.checksAt("doctor", sessionChecks, subject), ({ run }) => run(subject))).flat()
    }).pipe(Effect.scoped)
  )

const servers = Effect.fnUntraced(function* (settings: Settings, url: Redacted.Redacted) {
  const findings: Array<Check.Finding> = []
  let primary: Database | undefined
  for (const { pools, variable } of databasesOf(settings, url)) {
    const [pool] = pools
    if (pool === undefined) continue
    let sql: Database | undefined
    const reached = reach(pool).pipe(
      Effect.map((database) => {
        sql = database
        return []
      }),
      Effect.catchTag("SqlError", (error) => Effect.succeed([unreachable(variable, error)]))
    )
    const said = [...(yield* Check.attempt("The database", reached))]
    if (sql !== undefined) {
      if (variable === "DATABASE_URL") primary = sql
      said.push(...(yield* Effect.forEach(pools, (each) => session(variable, each))).flat())
    }
    findings.push(...said.map((one) => ({ area: variable, ...one })))
    if (sql === undefined) continue
    findings.push(...(yield* Check.examine(variable, databaseChecks, { settings, variable, pools, sql, primary })))
  }
  return { findings, sql: primary }
})

/** Mebibytes that the disk of the embedded database should have left. */
const little = 500

/** The nearest folder that exists: the path itself, or one above it. */
const existing = (folder: string): Effect.Effect<string, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const above = (yield* Path.Path).dirname(folder)
    if (above === folder || (yield* Effect.orElseSucceed(fs.exists(folder), () => false))) return folder
    return yield* existing(above)
  })

/** The findings about the folder of the embedded database, which may have a database that can be opened. */
const folderOf = Effect.fnUntraced(function* (dataDir: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  if (dataDir === "memory") {
    return { said: [Check.ok("DATA_DIR=memory: it is kept in the memory of the service.")], canOpen: false }
  }
  const folder = path.resolve(dataDir)
  const isThere = yield* Effect.orElseSucceed(fs.exists(path.join(folder, "made")), () => false)
  const parent = yield* existing(folder)
  const isWritable = yield* fs.stat(parent).pipe(
    Effect.filterOrFail(({ type }) => type === "Directory"),
    Effect.andThen(fs.access(parent, { writable: true })),
    Effect.as(true),
    Effect.orElseSucceed(() => false)
  )
  const free = yield* Effect.option(Effect.tryPromise(() => statfs(parent)))
  const { bavail, bsize } = Option.getOrElse(free, () => ({ bavail: Infinity, bsize: 1 }))
  const mebibytes = Math.floor((bavail * bsize) / 1024 ** 2)
  return {
    said: Check.findings([
      !isWritable &&
        Check.fail(
          `${folder} cannot be written: ${parent} is no folder, or not this user's.`,
          "Choose another folder with DATA_DIR, or give this user the right."
        ),
      mebibytes < little && Check.warn(`${parent} has ${mebibytes} MiB left.`, "Make room on its disk."),
      !isThere && isWritable && Check.ok(`There is none in ${folder} yet; the first start makes it.`)
    ]),
    canOpen: isThere && isWritable
  }
})

const embedded = Effect.fnUntraced(function* (settings: Settings) {
  const area = "Embedded database"
  const { dataDir, processes } = settings
  const { canOpen, said } = yield* folderOf(dataDir)
  const several = Check.fail(`PROCESSES=${processes} needs a Postgres.`, "Set DATABASE_URL, or leave PROCESSES unset.")
  const findings = [...(processes > 1 ? [several] : []), ...said].map((one): Check.Finding => ({ area, ...one }))
  if (!canOpen) return findings
  const opened = Effect.gen(function* () {
    const { isGuest, sql } = yield* Embedded.connect(dataDir, { asGuest: true })
    const how = Check.ok(isGuest ? "Another process has it open, and shares it." : "It opens.")
    const subject = { settings, variable: undefined, pools: [], sql, primary: undefined }
    return [{ area, ...how }, ...(yield* Check.examine(area, databaseChecks, subject))]
  }).pipe(
    Effect.catchTags({
      EmbeddedDatabaseError: ({ message }) =>
        Effect.succeed([{ area, ...Check.fail(message, "Stop the other process, or choose another DATA_DIR.") }]),
      SqlError: (error) =>
        Effect.succeed([{ area, ...Check.fail(`It does not open: ${Failure.sqlReason(error)}`, "Look at the log.") }])
    }),
    Effect.scoped
  )
  return [...findings, ...(yield* opened)]
})

/** All findings. */
export const examine = Effect.fn("Doctor.examine")(function* () {
  const configured = (yield* environment).map((one): Check.Finding => ({ area: "Configuration", ...one }))
  const read = yield* Effect.option(config)
  if (Option.isNone(read)) return configured
  const settings = read.value
  const { findings, sql } = Option.isSome(settings.databaseUrl)
    ? yield* servers(settings, settings.databaseUrl.value)
    : { findings: yield* embedded(settings), sql: undefined }
  return [
    ...configured,
    ...(yield* Check.examine("Configuration", settingsChecks, settings)),
    ...findings,
    ...(yield* Check.examine("Payment processor", processorChecks, { settings, sql })),
    ...(yield* Check.examine("Service", serviceChecks, settings))
  ]
})
