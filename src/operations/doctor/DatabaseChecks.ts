/** Checks of a Postgres: the server, the sessions and their way to it, deletions, changes and replication. */
import { Clock, Duration, Effect, Schema } from "effect"
import type { PgClient } from "@effect/sql-pg"
import type { Role, Settings } from "../Config.ts"
import { formatHost } from "../../database/ConnectionUrl.ts"
import { type Database, type Options as Pool, sessionSettings } from "../../database/Database.ts"
import * as Distribution from "../../database/Distribution.ts"
import { isSocket } from "../../database/Endpoint.ts"
import type { ServerTls } from "../../database/ServerTls.ts"
import * as SessionSettings from "../../database/SessionSettings.ts"
import { counts, mostCounted } from "../../deletions/Tasks.ts"
import { invocation } from "../../process/Package.ts"
import * as Replica from "../Replica.ts"
import { type Check, fail, findings, first, listed, ok, rows, type Said, warn } from "./Check.ts"
import * as MigrationsCheck from "./MigrationsCheck.ts"

/** A session of a pool. */
export interface Session {
  readonly variable: string
  readonly pool: Pool
  readonly sql: Database
}

const isLocal = ({ host }: { readonly host: string }) =>
  /^(localhost|127\.|::1$)/.test(host) || isSocket({ host, port: 0 })

const verified: Readonly<Record<ServerTls["verification"], string>> = {
  none: "the server is not verified",
  authority: "its certificate is verified, and not its host",
  host: "its certificate and host are verified"
}

const Identity = Schema.Struct({ login: Schema.String, tls: Schema.NullOr(Schema.String) })

const route = Effect.fnUntraced(function* ({ pool, sql, variable }: Session) {
  if (sql.route === undefined) return []
  const endpoint = sql.route.endpoint()
  const { tls } = endpoint
  const count = sql.route.url.hosts.length
  // A pooler in between has a connection of its own to the server, of which it may tell.
  const session = yield* first(
    Identity,
    sql`
      select session_user as login,
        (select version || ', ' || cipher from pg_stat_ssl where pid = pg_backend_pid() and ssl) as tls`
  )
  const encryption = tls === undefined ? "not encrypted" : `${session.tls ?? "TLS"}, ${verified[tls.verification]}`
  const { passwordSource } = sql.route
  const password = passwordSource === undefined ? "no password" : `the password of ${passwordSource}`
  const place = `${formatHost(endpoint)}${count === 1 ? "" : `, of ${count} servers`}`
  // Two hosts of the URL may be the same server.
  const servers = count === 1 ? [] : yield* sql.route.servers
  const primaries = new Map(servers.flatMap((one) => (one.isStandby ? [] : [[one.started, formatHost(one)]])))
  const encrypt = `Add sslmode=verify-full to the URL of ${variable}`
  return findings([
    ok(`The ${pool.name ?? variable} is at ${place}: ${encryption}; login ${session.login}, ${password}.`),
    primaries.size > 1 &&
      fail(
        `Several of its servers are primaries, so what is written may be lost: ${[...primaries.values()].join(", ")}.`,
        "Stop the one that was primary before, and make it a standby of the other."
      ),
    !isLocal(endpoint) &&
      tls === undefined &&
      warn("The connection is not encrypted.", `${encrypt}, unless a proxy encrypts.`),
    !isLocal(endpoint) &&
      tls?.verification === "none" &&
      warn(
        "The connection is encrypted, and may go to anyone: the server is not verified.",
        `${encrypt}, with sslrootcert=FILE or sslrootcert=system.`
      ),
    !endpoint.asksSettings &&
      warn(
        "A connection pooler refuses to be asked for settings of sessions, and was not asked.",
        "Give the login the settings that are said to be missing."
      )
  ])
})

const settingsOf = Effect.fnUntraced(function* ({ pool, sql }: Session) {
  const lost = yield* SessionSettings.lost(sql, sessionSettings(pool))
  const sessions = `The sessions of the ${pool.name ?? "database"}`
  if (lost.length === 0) return [ok(`${sessions} have the settings that they ask for.`)]
  const statements = yield* SessionSettings.statementsFor(sql, lost)
  return [
    fail(
      `${sessions} lack settings: ${SessionSettings.describe(lost)}. A connection pooler swallows them.`,
      `Run ${invocation("migrate")} if this login is a member of the roles practice_data_..., or: ${statements.join("; ")}`
    )
  ]
})

/** The checks of each pool. */
export const sessionChecks: ReadonlyArray<Check<Session>> = [
  { name: "The way to the database", at: ["doctor"], run: route },
  { name: "The settings of sessions", at: ["doctor", "start"], run: settingsOf }
]

const oldestVersion = 150_000

/** Milliseconds. */
const slow = 10
const skewed = 500
const wrong = 60_000

const Now = Schema.Struct({ now: Schema.Finite })

/** The milliseconds that a statement takes, and that the clock of the server is ahead. */
const timed = Effect.fnUntraced(function* (sql: Database) {
  const before = yield* Clock.currentTimeMillis
  const { now } = yield* first(Now, sql`select extract(epoch from clock_timestamp())::float8 * 1000 as now`)
  const after = yield* Clock.currentTimeMillis
  return { took: after - before, ahead: now - (before + after) / 2 }
})

const clock = (took: number, ahead: number): Said => {
  const off = Math.abs(ahead)
  const said = `Its clock is ${(off / 1000).toFixed(1)} s ${ahead < 0 ? "behind" : "ahead of"} this machine's.`
  const advice = "Let both follow the same time server: leases and due times of deletions compare clocks."
  if (off - took / 2 > wrong) return fail(said, advice)
  return off - took / 2 > skewed ? warn(said, advice) : ok("Its clock and this machine's agree.")
}

const Server = Schema.Struct({
  version: Schema.String,
  number: Schema.Int,
  database: Schema.String,
  login: Schema.String,
  is_replica: Schema.Boolean
})

const server = Effect.fnUntraced(function* ({ sql, variable }: Examined) {
  const { database, is_replica, login, number, version } = yield* first(
    Server,
    sql`
      select current_setting('server_version') as version, current_setting('server_version_num')::int as number,
        current_database() as database, current_user as login, pg_is_in_recovery() as is_replica`
  )
  // The first statement is slower.
  yield* timed(sql)
  const [one, other] = [yield* timed(sql), yield* timed(sql)]
  const { ahead, took } = one.took < other.took ? one : other
  return findings([
    number < oldestVersion
      ? fail(`PostgreSQL ${version} is too old.`, "Use PostgreSQL 15 or later.")
      : ok(`PostgreSQL ${version}, database ${database}, login ${login}; a statement takes ${took} ms.`),
    took > slow && warn(`It is far away: each statement takes ${took} ms.`, "Run the service near its database."),
    is_replica &&
      (variable === "READ_DATABASE_URL"
        ? ok("It is a replica.")
        : fail(
            "It is a replica, which cannot be written.",
            `Point ${variable} at the primary: several servers with target_session_attrs=read-write, for example.`
          )),
    clock(took, ahead)
  ])
})

const Room = Schema.Struct({
  login: Schema.String,
  all: Schema.Int,
  used: Schema.Int,
  own: Schema.Int,
  of_login: Schema.Int,
  of_database: Schema.Int
})

/** The room for the connections that the processes of this configuration open. */
const room = Effect.fnUntraced(function* ({ pools, settings, sql }: Examined) {
  const needed = settings.processes * pools.length * settings.poolSize
  const { all, login, of_database, of_login, own, used } = yield* first(
    Room,
    sql`
      select current_user as login,
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
          - coalesce(current_setting('reserved_connections', true), '0')::int as all,
        (select coalesce(sum(numbackends), 0) from pg_stat_database)::int as used,
        (select count(*) from pg_stat_activity
          where application_name in ('practice-data-records', 'practice-data-credentials', 'practice-data-tasks')
            and datname = current_database() and pid <> pg_backend_pid())::int as own,
        (select rolconnlimit from pg_roles where rolname = current_user) as of_login,
        (select datconnlimit from pg_database where datname = current_database()) as of_database`
  )
  const free = Math.max(0, all - used)
  const limits = [
    of_login >= 0 && of_login < needed && `the login ${login} may open ${of_login}`,
    of_database >= 0 && of_database < needed && `the database takes ${of_database}`,
    all < needed && `the server takes ${all}`
  ].filter((one) => one !== false)
  const advice = "Lower PROCESSES or DATABASE_POOL_SIZE, raise the limit, or end what holds connections."
  const said = `PROCESSES × pools × DATABASE_POOL_SIZE needs ${needed} connections`
  if (limits.length > 0) return [fail(`${said}, and ${limits.join(", and ")}.`, advice)]
  return free + own < needed
    ? [warn(`${said}; ${free} of ${all} are free.`, advice)]
    : [ok(`${said} at most; ${free} of ${all} are free.`)]
})

/** Seconds. */
const latest = 60

const deadText = (dead: number) => {
  if (dead > mostCounted) return `More than ${mostCounted} deletions are`
  return dead === 1 ? "1 deletion is" : `${dead} deletions are`
}

/** The deletions that are due, and those that are dead. */
export const deletions = Effect.fnUntraced(function* (sql: Database) {
  const { dead, now, oldest_due_at } = yield* counts(sql)
  const late = oldest_due_at === null ? 0 : (Date.parse(now) - Date.parse(oldest_due_at)) / 1000
  return findings([
    late > latest &&
      warn(
        `A deletion has been due for ${Math.round(late)} seconds.`,
        "Run a process with the role worker, and look at its log."
      ),
    dead > 0 &&
      warn(
        `${deadText(dead)} dead: every attempt failed.`,
        `See why: ${invocation("tasks list --state dead")}. Then: ${invocation("tasks replay TASK-ID")}`
      ),
    late <= latest && dead === 0 && ok("No deletion is late or dead.")
  ])
})

/** The longest that a transaction may hold changes back, in seconds. */
const longestHeld = 60

const Feed = Schema.Struct({ name: Schema.String })

const Holder = Schema.Struct({
  holder: Schema.String,
  /** Null where the login may not see it. */
  age: Schema.NullOr(Schema.Finite),
  login: Schema.String
})

/** The order of changes, and the transactions that hold it back. */
export const changes = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  if (yield* Distribution.ask(sql)) {
    return [ok("Changes are not served (501), since the tables are distributed over several servers.")]
  }
  const unsettled = yield* rows(
    Feed,
    sql`select table_name as name from change_feed_states() where is_whole and not is_settled order by table_name`
  )
  const found = yield* rows(
    Holder,
    sql`
      select 'The transaction of process ' || pid || coalesce(' (' || usename || ', ' || datname || ')', '') as holder,
        extract(epoch from now() - xact_start)::float8 as age, quote_ident(current_user) as login
      from pg_stat_activity where backend_xid is not null and pid <> pg_backend_pid()
      union all
      select 'The prepared transaction ' || gid, extract(epoch from now() - prepared)::float8, '' from pg_prepared_xacts
      order by age desc nulls first`
  )
  const hidden = found.filter(({ age }) => age === null)
  const { age, holder = "" } = found[hidden.length] ?? {}
  return findings([
    unsettled.length === 0
      ? ok("The order of changes is whole.")
      : warn(
          `The order of changes of ${listed(unsettled.map(({ name }) => name))} has to begin anew: triggers were disabled, or the table was restored. Its readers get 410 and start again.`,
          `A running service does it within a second. Or run: ${invocation("migrate")}`
        ),
    hidden[0] !== undefined &&
      warn(
        `Transactions of other logins hold back the changes of all records (${hidden.length} now). This login cannot see since when.`,
        `grant pg_read_all_stats to ${hidden[0].login}`
      ),
    typeof age === "number" &&
      age >= longestHeld &&
      warn(
        `${holder} has been open for ${Math.round(age)} seconds, and holds back the changes of all records.`,
        holder.startsWith("The prepared")
          ? "Commit it or roll it back: commit prepared, rollback prepared."
          : "End it, load in smaller parts, and set idle_in_transaction_session_timeout."
      )
  ])
})

const replication = (primary: Database | undefined, replica: Database): Effect.Effect<ReadonlyArray<Said>> =>
  primary === undefined
    ? Effect.succeed([])
    : Replica.check(primary, replica, (database, statement) =>
        database.run({ key: "doctor", within: Duration.seconds(2), unavailable: ({ reason }) => reason }, statement)
      ).pipe(
        Effect.match({
          onFailure: (reason) => [warn(`Its replication cannot be checked: ${reason}`, "Look at both.")],
          onSuccess: (problem) =>
            problem === undefined
              ? [ok("It follows DATABASE_URL, or was never its replica.")]
              : [fail(`It ${problem.charAt(0).toLowerCase()}${problem.slice(1)}.`, "Look at its replication.")]
        })
      )

/** A database of the configuration. */
export interface Examined {
  readonly settings: Settings
  /** The variable that names it; undefined for the embedded database. */
  readonly variable: string | undefined
  /** The pools that connect to it. */
  readonly pools: ReadonlyArray<Pool>
  readonly sql: Database
  /** The database of `DATABASE_URL`, if it can be reached. */
  readonly primary: Database | undefined
}

const isMain = ({ variable }: Examined) => variable === undefined || variable === "DATABASE_URL"
const isServer = ({ variable }: Examined) => variable !== undefined

// The login of another role may not look at them.
const hasRole = ({ settings }: Examined, ...some: ReadonlyArray<Role>) =>
  settings.roles.some((role) => some.includes(role))

/** The checks of each database. */
export const databaseChecks: ReadonlyArray<Check<Examined>> = [
  { name: "The server", at: ["doctor"], applies: isServer, run: server },
  { name: "Its connections", at: ["doctor"], applies: isServer, run: room },
  {
    name: "Its migrations",
    at: ["doctor"],
    run: ({ settings, sql, variable }) => MigrationsCheck.check(sql, MigrationsCheck.neededOf(variable, settings))
  },
  {
    name: "Its deletions",
    at: ["doctor"],
    applies: (subject) => isMain(subject) && hasRole(subject, "intake", "worker"),
    run: ({ sql }) => deletions(sql)
  },
  {
    name: "Its changes",
    at: ["doctor"],
    applies: (subject) => isMain(subject) && hasRole(subject, "data-api"),
    run: ({ sql }) => changes(sql)
  },
  {
    name: "Its replication",
    at: ["doctor"],
    applies: ({ variable }) => variable === "READ_DATABASE_URL",
    run: ({ primary, sql }) => replication(primary, sql)
  }
]
