/** Checks of a Postgres: the server, its sessions, deletions, changes and replication. */
import { Duration, Effect, Redacted, Result, Schema } from "effect"
import type { PgClient } from "@effect/sql-pg"
import { rowsOf, textsOf } from "../../database/Columns.ts"
import { connectionOptions, formatHost } from "../../database/ConnectionUrl.ts"
import { type Database, type PoolOptions as Pool, sessionSettings } from "../../database/Database.ts"
import * as Distribution from "../../database/Distribution.ts"
import { counts, mostCounted } from "../../deletions/OperatorTasks.ts"
import { invocation } from "../../process/Package.ts"
import { isLoopback, type Settings } from "../Settings.ts"
import * as Time from "../../process/Time.ts"
import { fail, facts, listed, ok, warn } from "../Check.ts"

/** A database of the configuration. */
export interface Examined {
  readonly sql: Database
  readonly settings: Settings
  /** The variable that names it. */
  readonly variable: string
  readonly pools: ReadonlyArray<Pool>
}

type Session = Pick<Examined, "sql" | "variable"> & { readonly pool: Pool }

/** The server of a pool, and its encryption. */
export const connection = ({ pool, variable }: Omit<Session, "sql">) => {
  // The configuration has checked it.
  const { host, port, ssl } = Result.getOrThrow(connectionOptions(Redacted.value(pool.url)))
  const isVerified = ssl !== false && ssl.rejectUnauthorized !== false
  const encryption =
    ssl === false ? "not encrypted" : `encrypted, the server is ${isVerified ? "verified" : "not verified"}`
  return facts(
    ok(`The ${pool.name ?? variable} is at ${formatHost({ host, port })}: ${encryption}.`),
    !isVerified &&
      !isLoopback(host) &&
      !host.startsWith("/") &&
      warn(
        `The connection to another machine can be read or intercepted: ${encryption}.`,
        `Unless a proxy encrypts, add sslmode=verify-full to the URL of ${variable}, with sslrootcert=FILE for an authority of your own.`
      )
  )
}

/** Settings that fit any pool; times in milliseconds. Not `lock_timeout`: reads want a short one, and deliveries none. */
const ofLogins: Readonly<Record<string, string>> = {
  TimeZone: "UTC",
  client_connection_check_interval: "500",
  enable_bitmapscan: "off",
  enable_seqscan: "off",
  idle_in_transaction_session_timeout: "5000",
  jit: "off",
  statement_timeout: "60000"
}

const Setting = Schema.Struct({ name: Schema.String, found: Schema.String, login: Schema.String })

/** The requested settings that a connection pooler drops. Those of the login are good enough. */
export const sessionSettingsLost = Effect.fnUntraced(function* ({ pool, sql }: Session) {
  const requested = sessionSettings(pool)
  const settings = yield* rowsOf(Setting)(sql`
    select name, setting as found, format('alter role %I in database %I', current_user, current_database()) as login
    from pg_settings where ${sql.in("name", Object.keys(requested))}`)
  const lost = settings.flatMap(({ found, login, name }) => {
    const [wanted, given] = [requested[name], ofLogins[name]]
    if (given === undefined || found === wanted || found === given) return []
    return [{ text: `${name} is ${found} instead of ${wanted}`, statement: `${login} set ${name} = '${given}'` }]
  })
  const sessions = `The sessions of the ${pool.name ?? "database"}`
  if (lost.length === 0) return [ok(`${sessions} have the requested settings.`)]
  const [texts, statements] = [lost.map(({ text }) => text), lost.map(({ statement }) => statement)]
  return [
    fail(
      `${sessions} lack requested settings: ${texts.join(", ")}. A connection pooler drops them.`,
      `Run: ${statements.join("; ")}`
    )
  ]
})

/** The longest that a deletion may be late, in seconds. */
export const longestDelay = 60

/** Milliseconds. */
const skewed = 500
const wrong = 60_000

const Answer = Schema.Struct({ now: Schema.Finite, is_read_only: Schema.Boolean })

/** The milliseconds that a statement takes, and that the clock of the server is ahead; and if it accepts only reads. */
export const timed = Effect.fnUntraced(function* (sql: Database) {
  const asking = rowsOf(Answer)(sql`
    select (extract(epoch from clock_timestamp()) * 1000)::float8 as now,
      current_setting('transaction_read_only')::boolean as is_read_only`)
  const [duration, [answer]] = yield* Effect.timed(asking)
  const took = Math.round(Duration.toMillis(duration))
  const ahead = (answer?.now ?? NaN) - ((yield* Time.wall) - took / 2)
  return { took, ahead, isReadOnly: answer?.is_read_only === true }
})

/** A failure from a minute on. */
export const clock = ({ ahead, took }: Pick<Effect.Success<ReturnType<typeof timed>>, "ahead" | "took">) => {
  const off = Math.abs(ahead) - took / 2
  if (off <= skewed) return ok("Its clock and this machine's agree.")
  return (off > wrong ? fail : warn)(
    `Its clock is ${(Math.abs(ahead) / 1000).toFixed(1)} s ${ahead < 0 ? "behind" : "ahead of"} this machine's.`,
    "Sync both with the same time server: leases and due times of deletions compare clocks."
  )
}

const Server = Schema.Struct({
  version: Schema.String,
  number: Schema.Int,
  database: Schema.String,
  login: Schema.String,
  is_replica: Schema.Boolean,
  trigger_role: Schema.String,
  limit: Schema.Int
})

/** The version, the role, the distance and the clock of the server, and its room for the connections of a process. */
export const server = Effect.fnUntraced(function* ({ pools, settings, sql, variable }: Examined) {
  // A limit of -1 is none.
  const [row] = yield* rowsOf(Server)(sql`
    select current_setting('server_version') as version, current_setting('server_version_num')::int as number,
      current_database() as database, current_user as login, pg_is_in_recovery() as is_replica,
      current_setting('session_replication_role') as trigger_role, least(
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
          - coalesce(current_setting('reserved_connections', true), '0')::int,
        (select nullif(rolconnlimit, -1) from pg_roles where rolname = current_user),
        (select nullif(datconnlimit, -1) from pg_database where datname = current_database())) as limit`)
  if (row === undefined) return []
  const { database, is_replica, limit, login, number, trigger_role, version } = row
  const measured = yield* timed(sql)
  const role = is_replica ? "a replica" : "a primary"
  const needed = pools.length * settings.poolSize
  const room = `A process needs ${needed} connections of ${limit}.`
  const advice = "Lower DATABASE_POOL_SIZE, or raise the limit: of the server, the database or the login."
  return facts(
    number < 150_000
      ? fail(`PostgreSQL ${version} is too old.`, "Use PostgreSQL 15 or later.")
      : ok(
          `PostgreSQL ${version}, ${role}, database ${database}, login ${login}; a statement takes ${measured.took} ms.`
        ),
    is_replica &&
      variable !== "READ_DATABASE_URL" &&
      fail("It is a read-only replica.", `Point ${variable} at the primary.`),
    !is_replica &&
      measured.isReadOnly &&
      variable !== "READ_DATABASE_URL" &&
      fail(
        "It accepts only reads: its sessions have default_transaction_read_only = on.",
        `A managed server sets this when its disk is full: free some space. Otherwise run: alter role ${login} reset default_transaction_read_only; or the same of the database ${database}.`
      ),
    trigger_role !== "origin" &&
      fail(
        `Its sessions have session_replication_role = ${trigger_role}, so the order of changes is not kept.`,
        `Run: alter role ${login} reset session_replication_role; or the same of the database ${database}.`
      ),
    clock(measured),
    limit < needed ? fail(room, advice) : ok(room)
  )
})

export const deletions = Effect.fnUntraced(function* (sql: Database) {
  const { dead, now, oldest_due_at } = yield* counts(sql)
  const late = oldest_due_at === null ? 0 : (Date.parse(now) - Date.parse(oldest_due_at)) / 1000
  return facts(
    late > longestDelay &&
      warn(
        `A deletion has been due for ${Math.round(late)} seconds.`,
        "Run a process with the role worker, and check its log."
      ),
    dead > 0 &&
      warn(
        `Dead deletions (every attempt failed): ${dead > mostCounted ? `more than ${mostCounted}` : dead}.`,
        `See why: ${invocation("tasks list --state dead")}. Then: ${invocation("tasks replay TASK-ID")}`
      ),
    late <= longestDelay && dead === 0 && ok("No deletion is late or dead.")
  )
})

/** The order of changes. */
export const changes = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  if (yield* Distribution.hasDistributedTable(sql)) {
    return [ok("Changes are not served (501): the tables are distributed over several servers.")]
  }
  const unsettled = yield* textsOf(
    sql`select table_name as text from change_feed_states() where is_whole and not is_settled order by table_name`
  )
  return facts(
    unsettled.length === 0
      ? ok("The order of changes is intact.")
      : warn(
          `The order of changes of ${listed(unsettled)} must restart: triggers were disabled, or the table was restored. Its readers get 410 and start again.`,
          `A running service restarts it within a second. Or run: ${invocation("migrate")}`
        )
  )
})
