/**
 * The databases of the service: the one that holds the records and the tasks, and the one that holds the API keys. They
 * are often the same server, and always clients of their own, so that one can be down alone. (The embedded database is
 * a single session, so there all are the same client.)
 */
import { PgClient, PgConnection } from "@effect/sql-pg"
import { Context, Duration, Effect, Layer, Redacted } from "effect"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import type { Pool } from "../observability/Metrics.ts"
import * as Distribution from "./Distribution.ts"
import * as Store from "./Store.ts"
import * as TextBytes from "./TextBytes.ts"

/**
 * A database. Statements of requests and of the worker go through `run`; those of a start or of an operator's command,
 * which have all the time and nobody beside them, may be run as they are.
 */
export interface Database extends PgClient.PgClient, Store.Store {
  /** Whether its tables are distributed over several servers. */
  readonly distribution: Distribution.Distribution
}

/** The database of the records. */
export class RecordDatabase extends Context.Service<RecordDatabase, Database>()(
  "practice-data/database/Database/RecordDatabase"
) {}

/** The database of the API keys. */
export class CredentialDatabase extends Context.Service<CredentialDatabase, Database>()(
  "practice-data/database/Database/CredentialDatabase"
) {}

/** The database of the records, for the intake and the worker: a pool of their own beside that of the reads. */
export class TaskDatabase extends Context.Service<TaskDatabase, Database>()(
  "practice-data/database/Database/TaskDatabase"
) {}

/** How to reach a Postgres. */
export interface Options {
  readonly url: Redacted.Redacted
  /** What it is called in the log. */
  readonly name?: string
  /** What it is called in the metrics. Without it, it is not measured. */
  readonly pool?: Pool
  readonly applicationName: string
  /** How many connections to keep open at most. */
  readonly maxConnections: number
  /** How long a connection may take to open. */
  readonly connectTimeout?: Duration.Input
  /** After how long the server gives up on a statement. */
  readonly statementTimeout: Duration.Input
  /** Whether the server looks out for a client that died, to end its statement and free its locks. */
  readonly watchesClient?: boolean
  /** Settings of each session, by name. */
  readonly settings?: Readonly<Record<string, string>>
}

/**
 * The planner's settings for searches: rows are read in the order of an index, and never gathered and sorted. That would
 * do for few rows and be far too slow for many, and a plan that is made for all organizations cannot know which it is.
 */
export const inOrder = { enable_bitmapscan: "off", enable_seqscan: "off" } as const

/**
 * How many milliseconds a statement of the data API waits for a lock. One that reads records looks up the key as well:
 * where the keys are locked, the caller is to know within two seconds, in which the key is looked up alone once more.
 */
export const lockTimeout = { lock_timeout: "800" } as const

const silent = new SqlError({
  reason: new ConnectionError({ cause: new Error("No answer in time"), operation: "connect" })
})

/**
 * A client whose statements may go through a store.
 *
 * @param distribution that of its tables, where it is known; otherwise the database is asked
 */
export const guarded = (client: PgClient.PgClient, options: Store.Options, distribution?: Distribution.Distribution) =>
  Effect.map(Store.make(options), (store): Database =>
    Object.assign(client, { ...store, distribution: distribution ?? Distribution.make(client, store) })
  )

/** What each session of a pool asks of its server, by the name of the setting; times in milliseconds. */
export const sessionSettings = (options: Options): Readonly<Record<string, string>> => ({
  TimeZone: "UTC",
  statement_timeout: String(Duration.toMillis(options.statementTimeout)),
  ...(options.watchesClient === true ? { client_connection_check_interval: "500" } : {}),
  ...options.settings
})

/** What the spans of statements say of the server: the client would look for it beside the URL. */
const addressOf = (url: Redacted.Redacted) => {
  const { hostname, pathname, port, searchParams } = new URL(Redacted.value(url))
  const database = decodeURIComponent(pathname.slice(1))
  if (hostname === "" || ["host", "port", "dbname"].some((name) => searchParams.has(name))) return {}
  return {
    host: decodeURIComponent(hostname.replace(/^\[(.*)\]$/, "$1")),
    port: port === "" ? 5432 : Number(port),
    ...(database === "" ? {} : { database })
  }
}

/**
 * A pool of connections to a Postgres. Connections open when they are needed, so that a database that is down keeps
 * nobody from starting, and one that comes back is found by its store.
 */
export const connect = Effect.fnUntraced(function* (options: Options) {
  const config = {
    url: options.url,
    ...addressOf(options.url),
    applicationName: options.applicationName,
    connectTimeout: options.connectTimeout ?? "1 second",
    maxMessageSize: 256 * 1024 * 1024,
    types: TextBytes.types,
    startupParameters: sessionSettings(options)
  } as const
  const client = yield* PgClient.make({
    ...config,
    maxConnections: options.maxConnections,
    spanAttributes: { "db.client.connection.pool.name": options.name ?? "database" }
  })
  const signOfLife = Effect.flatMap(PgConnection.make(config), (connection) => connection.query("select 1"))
  return yield* guarded(client, {
    name: options.name ?? "database",
    pool: options.pool,
    connections: options.maxConnections,
    isCancellable: true,
    probe: Effect.scoped(signOfLife).pipe(
      Effect.timeoutOrElse({ duration: "1 second", orElse: () => Effect.fail(silent) })
    )
  })
})

/** All databases on the one client that there is. */
export const layerShared = (client: Database) =>
  Layer.mergeAll(
    Layer.succeed(RecordDatabase, client),
    Layer.succeed(CredentialDatabase, client),
    Layer.succeed(TaskDatabase, client)
  )

/** Whether two clients are of the same database. */
export const isSameDatabase = (one: PgClient.PgClient, another: PgClient.PgClient): boolean =>
  one === another ||
  (one.config.url !== undefined &&
    another.config.url !== undefined &&
    Redacted.value(one.config.url) === Redacted.value(another.config.url))
