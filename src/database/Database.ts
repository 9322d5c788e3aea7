/**
 * The databases of the service: the one that holds the records and the tasks, and the one that holds the API keys. They
 * are often the same server, and always clients of their own, so that one can be down alone. (The embedded database is
 * a single session, so there all are the same client.)
 */
import { PgClient } from "@effect/sql-pg"
import { Context, Duration, Effect, Layer, Redacted } from "effect"
import { Statement } from "effect/sql"
import type { Pool } from "../observability/Metrics.ts"
import * as Distribution from "./Distribution.ts"
import * as Pipeline from "./Pipeline.ts"
import * as Route from "./Route.ts"
import * as SharedConnection from "./SharedConnection.ts"
import * as Store from "./Store.ts"
import * as TextBytes from "./TextBytes.ts"

/**
 * A database. Statements of requests and of the worker go through `run`; those of a start or of an operator's command,
 * which have all the time and nobody beside them, may be run as they are.
 */
export interface Database extends PgClient.PgClient, Store.Store {
  /** Whether its tables are distributed over several servers. */
  readonly distribution: Distribution.Distribution
  /** Where its connections go. The embedded database has none. */
  readonly route?: Route.Route
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
  /** How many of them short reads share, of which at least one other is left; by default none. */
  readonly sharedConnections?: number
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

/** Lets the spans of statements name the server that they go to, where that may be another one each time. */
const naming = (store: Store.Store, route: Route.Route): Store.Store => {
  const name: Statement.Transformer = (statement, _sql, _fiber, span) =>
    Effect.sync(() => {
      const { host, port } = route.endpoint()
      span.attribute("server.address", host)
      span.attribute("server.port", port)
      return statement
    })
  const named = Effect.provideService(Statement.CurrentTransformer, name)
  return {
    run: (request, statements) => store.run(request, named(statements)),
    runShort: (request, statement, alone) => named(store.runShort(request, statement, alone))
  }
}

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

/**
 * A pool of connections to a Postgres. Connections open when they are needed, so that a database that is down keeps
 * nobody from starting, and one that comes back is found by its store.
 */
export const connect = Effect.fnUntraced(function* (options: Options) {
  const name = options.name ?? "database"
  const route = yield* Route.make(options.url, {
    applicationName: options.applicationName,
    connectTimeout: options.connectTimeout ?? "1 second",
    startupParameters: sessionSettings(options)
  })
  const poolOf = (connections: number, isShared: boolean) =>
    route.configOf({
      maxConnections: connections,
      multiplex: isShared,
      maxMessageSize: 256 * 1024 * 1024,
      types: TextBytes.types,
      spanAttributes: { "db.client.connection.pool.name": name }
    })
  const shared = Math.min(options.sharedConnections ?? 0, options.maxConnections - 1)
  const connections = options.maxConnections - shared
  const client = yield* PgClient.make(poolOf(connections, false))
  const one = poolOf(1, true)
  const pipeline = yield* Effect.replicateEffect(
    SharedConnection.make(one, () => ({
      ...one.spanAttributes,
      "db.system.name": "postgresql",
      "db.namespace": one.database ?? one.username,
      "server.address": one.host,
      "server.port": one.port
    })),
    shared
  )
  const store = yield* Store.make({
    name,
    pool: options.pool,
    connections,
    pipeline: Pipeline.make(pipeline),
    isCancellable: true,
    probe: route.find
  })
  const database: Database = Object.assign(client, route.url.hosts.length > 1 ? naming(store, route) : store, {
    distribution: Distribution.make(client, store),
    route
  })
  return database
})

/** All databases on the one client that there is. */
export const layerShared = (client: Database) =>
  Layer.mergeAll(
    Layer.succeed(RecordDatabase, client),
    Layer.succeed(CredentialDatabase, client),
    Layer.succeed(TaskDatabase, client)
  )

/** Whether two clients are of the same database: as far as their URLs tell, which may differ for the same one. */
export const isSameDatabase = (one: Database, another: Database): boolean =>
  one === another ||
  (one.route !== undefined &&
    another.route !== undefined &&
    Redacted.value(one.route.text) === Redacted.value(another.route.text))
