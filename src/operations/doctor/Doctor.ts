/** Looks for what is wrong with an installation: each check for itself, in its time, with what to do. */
import { Duration, Effect, Option, Redacted } from "effect"
import { config, type Role, type Settings } from "../../app/Config.ts"
import { connect, type Database, type Options as Pool, sessionSettings } from "../../database/Database.ts"
import { poolsOf } from "../../database/Databases.ts"
import * as Replica from "../Replica.ts"
import * as Failure from "../../process/Failure.ts"
import * as ChangesCheck from "./ChangesCheck.ts"
import * as ConfigurationCheck from "./ConfigurationCheck.ts"
import * as ConnectionsCheck from "./ConnectionsCheck.ts"
import * as EmbeddedCheck from "./EmbeddedCheck.ts"
import { check, fail, type Finding, ok, warn } from "./Finding.ts"
import * as MigrationsCheck from "./MigrationsCheck.ts"
import * as ProcessorCheck from "./ProcessorCheck.ts"
import * as RolesCheck from "./RolesCheck.ts"
import * as RouteCheck from "./RouteCheck.ts"
import * as ServerCheck from "./ServerCheck.ts"
import * as ServiceCheck from "./ServiceCheck.ts"
import * as SessionCheck from "./SessionCheck.ts"
import * as TasksCheck from "./TasksCheck.ts"

const connectTimeout = Duration.seconds(4)

/** A database by the variable that names it, with the pools that go there. */
interface Named {
  readonly variable: string
  readonly pools: ReadonlyArray<Pool>
}

const sameUrl = (one: Pool, other: Pool) => Redacted.value(one.url) === Redacted.value(other.url)

/** The databases of the configuration, each once. */
const databasesOf = (settings: Settings, url: Redacted.Redacted): ReadonlyArray<Named> => {
  const { credentials, records, tasks } = poolsOf(settings, url, connectTimeout)
  const main = [tasks, records, credentials].filter((pool) => sameUrl(pool, tasks))
  return [
    { variable: "DATABASE_URL", pools: main },
    ...(sameUrl(records, tasks) ? [] : [{ variable: "READ_DATABASE_URL", pools: [records] }]),
    ...(sameUrl(credentials, tasks) ? [] : [{ variable: "CREDENTIALS_DATABASE_URL", pools: [credentials] }])
  ]
}

/** Connects as a pool does, with one connection. */
const reach = Effect.fnUntraced(function* (pool: Pool) {
  const sql = yield* connect({ ...pool, maxConnections: 1 })
  yield* sql`select 1`
  return sql
})

const unreachable = (variable: string, error: Parameters<typeof Failure.sqlReason>[0]) => {
  return fail(
    `The database cannot be reached: ${Failure.sqlReason(error)}`,
    `Check the host, port, login and password of ${variable}, its sslmode and files, and that the server runs and lets this machine in.`
  )
}

/** The checks of what the service does with a database of records. */
const usage = (area: string, sql: Database, { roles }: Pick<Settings, "roles">) => {
  const has = (...some: ReadonlyArray<Role>) => roles.some((role) => some.includes(role))
  return [
    // The other roles may not look at these.
    ...(has("intake", "worker") ? [check(area, "Its deletions", TasksCheck.check(sql))] : []),
    ...(has("data-api") ? [check(area, "Its changes", ChangesCheck.check(sql))] : [])
  ]
}

/** What a database is needed for, by the variable that names it. */
const neededOf = (variable: string, { roles }: Settings): MigrationsCheck.Options => {
  const reads = roles.includes("data-api") ? [RolesCheck.roles["data-api"]] : []
  if (variable === "READ_DATABASE_URL") return { needed: reads }
  return variable === "DATABASE_URL"
    ? { needed: roles.map((role) => RolesCheck.roles[role]) }
    : { needed: reads.map(({ name }) => ({ name, can: "look API keys up" })), isOfKeys: true }
}

const ofDatabase = (settings: Settings, { pools, variable }: Named, sql: Database, isMain: boolean) => {
  const needed = settings.processes * pools.length * settings.poolSize
  const isRead = variable === "READ_DATABASE_URL"
  return [
    check(variable, "The server", ServerCheck.check(sql, { variable, isWritten: !isRead })),
    ...pools.map((pool) =>
      check(
        variable,
        `The connections of the ${pool.name ?? "database"}`,
        Effect.flatMap(reach(pool), (session) =>
          Effect.map(
            Effect.all([
              RouteCheck.check(session, pool.name ?? variable, variable),
              SessionCheck.check(session, sessionSettings(pool))
            ]),
            (said) => said.flat()
          )
        ).pipe(Effect.scoped)
      )
    ),
    check(variable, "Its connections", ConnectionsCheck.check(sql, needed)),
    check(variable, "Its migrations", MigrationsCheck.check(sql, neededOf(variable, settings))),
    ...(isMain ? usage(variable, sql, settings) : [])
  ]
}

const within = Duration.seconds(2)

/** Whether a replica follows its primary. */
const replication = (primary: Database | undefined, replica: Database) =>
  primary === undefined
    ? Effect.succeed([])
    : Replica.check(primary, replica, (database, statement) =>
        database.run({ key: "doctor", within, unavailable: ({ reason }) => reason }, statement)
      ).pipe(
        Effect.match({
          onFailure: (reason) => [warn(`Whether it follows DATABASE_URL is not known: ${reason}`, "Look at both.")],
          onSuccess: (problem) =>
            problem === undefined
              ? [ok("It follows DATABASE_URL, or was never its replica.")]
              : [fail(`It ${problem.charAt(0).toLowerCase()}${problem.slice(1)}.`, "Look at its replication.")]
        })
      )

const servers = Effect.fnUntraced(function* (settings: Settings, url: Redacted.Redacted) {
  const findings: Array<Finding> = []
  let main: Database | undefined
  for (const named of databasesOf(settings, url)) {
    const [first] = named.pools
    if (first === undefined) continue
    let sql: Database | undefined
    const reached = reach(first).pipe(
      Effect.map((database) => {
        sql = database
        return []
      }),
      Effect.catchTag("SqlError", (error) => Effect.succeed([unreachable(named.variable, error)]))
    )
    findings.push(...(yield* check(named.variable, "The database", reached)))
    if (sql === undefined) continue
    const isMain = named.variable === "DATABASE_URL"
    if (isMain) main = sql
    // One after the other: they share a connection, and one of them measures.
    const all = yield* Effect.forEach(ofDatabase(settings, named, sql, isMain), (each) => each)
    findings.push(...all.flat())
    if (named.variable === "READ_DATABASE_URL") {
      findings.push(...(yield* check(named.variable, "Its replication", replication(main, sql))))
    }
  }
  return { findings, sql: main }
})

const embedded = Effect.fnUntraced(function* (settings: Settings) {
  const area = "Embedded database"
  const { isThere, said } = yield* EmbeddedCheck.check(settings)
  const findings: Array<Finding> = said.map((each) => ({ area, ...each }))
  if (!isThere) return findings
  const opened = EmbeddedCheck.open(settings).pipe(
    Effect.flatMap(({ said: how, sql }) =>
      Effect.map(
        Effect.forEach(
          [check(area, "Its migrations", MigrationsCheck.check(sql, { needed: [] })), ...usage(area, sql, settings)],
          (each) => each
        ),
        (all): ReadonlyArray<Finding> => [{ area, ...how }, ...all.flat()]
      )
    ),
    Effect.catchTags({
      EmbeddedDatabaseError: ({ message }) =>
        Effect.succeed([{ area, ...fail(message, "Stop the other process, or choose another DATA_DIR.") }]),
      SqlError: (error) =>
        Effect.succeed([{ area, ...fail(`It does not open: ${Failure.sqlReason(error)}`, "Look at the log.") }])
    }),
    Effect.scoped
  )
  return [...findings, ...(yield* opened)]
})

/** Everything that is found. */
export const examine = Effect.fn("Doctor.examine")(function* () {
  const configured = yield* ConfigurationCheck.check()
  const read = yield* Effect.option(config)
  if (Option.isNone(read)) return configured
  const settings = read.value
  const { findings, sql } = Option.isSome(settings.databaseUrl)
    ? yield* servers(settings, settings.databaseUrl.value)
    : { findings: yield* embedded(settings), sql: undefined }
  const processor = yield* check("Payment processor", "The processor", ProcessorCheck.check(settings, sql))
  const service = yield* check("Service", "The service", ServiceCheck.check(settings))
  return [...configured, ...findings, ...processor, ...service]
})
