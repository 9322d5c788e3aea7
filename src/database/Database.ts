/**
 * The databases of the service. They are often the same server, and always separate clients, so that one can be down alone.
 * The embedded database is a single session, so all are the same client there.
 */
import { Buffer } from "node:buffer"
import { connect as dial, type Socket } from "node:net"
import { PgClient, PgConnection } from "@effect/sql-pg"
import { Context, Duration, Effect, Equal, Layer, Record, Redacted, Result, Schema, type Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Pool } from "../observability/Metrics.ts"
import * as Time from "../observability/Time.ts"
import * as Columns from "./Columns.ts"
import { connectionOptions, formatHost } from "./ConnectionUrl.ts"
import * as Distribution from "./Distribution.ts"
import { connectFailure } from "./SqlFailure.ts"
import * as Store from "./Store.ts"

/**
 * A database. Statements of requests and of the worker go through `run`; those of a start or of an operator's command,
 * which have time and run alone, may use the client itself.
 */
export interface Database extends PgClient.PgClient, Store.Store {
  readonly distribution: Distribution.Distribution
  /** Opens a connection that sends statements without waiting for the answers to those before; the embedded database has none. */
  readonly openPipelined?: OpenPipelined | undefined
  /** The embedded database has none. */
  readonly url?: Redacted.Redacted
  /** True if its sessions lack the settings that they ask for. */
  readonly isPooled?: boolean
}

export type OpenPipelined = (
  onClose: () => void
) => Effect.Effect<Pick<PgConnection.PgConnection, "query">, SqlError, Scope.Scope>

/**
 * The embedded database cannot be opened. Defined here, since the types of PGlite do not compile for users of the package.
 */
export class EmbeddedDatabaseError extends Schema.TaggedError<EmbeddedDatabaseError>()("EmbeddedDatabaseError", {
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/** The database of the records. */
export class RecordDatabase extends Context.Service<RecordDatabase, Database>()(
  "practice-data/database/Database/RecordDatabase"
) {}

/** The primary of the records, which the changes are read from. */
export class ChangeDatabase extends Context.Service<ChangeDatabase, Database>()(
  "practice-data/database/Database/ChangeDatabase"
) {}

/** The database of the API keys. */
export class CredentialDatabase extends Context.Service<CredentialDatabase, Database>()(
  "practice-data/database/Database/CredentialDatabase"
) {}

/** The database of the records, for the intake and the worker: a pool of their own beside that of the reads. */
export class TaskDatabase extends Context.Service<TaskDatabase, Database>()(
  "practice-data/database/Database/TaskDatabase"
) {}

export interface PoolOptions {
  readonly url: Redacted.Redacted
  /** Its name in the log. */
  readonly name?: string
  /** Its name in the metrics. Without one, it is not measured. */
  readonly pool?: Pool
  readonly applicationName: string
  readonly maxConnections: number
  /** True if one of these sends statements without waiting for the answers to those before. */
  readonly isPipelined?: boolean
  /** The time that a connection may take to open; a second by default. */
  readonly connectTimeout?: Duration.Input | undefined
  /** The time that the server spends on a statement before it cancels it. */
  readonly statementTimeout: Duration.Input
  readonly settings?: Readonly<Record<string, string>>
}

/**
 * The planner's settings for searches: rows are read in the order of an index, and never gathered and sorted. Sorting is
 * fine for few rows and far too slow for many, and a plan that is made for all organizations cannot know which it is. Plans
 * are not compiled: a page of 1,000 changes of all resources took 250 ms instead of 20.
 */
export const inOrder = { enable_bitmapscan: "off", enable_seqscan: "off", jit: "off" } as const

/**
 * The milliseconds that a statement of the data API waits for a lock. A read may look up the key too. If the keys are
 * locked, the caller needs an answer within two seconds, which includes a second look-up of the key alone.
 */
export const lockTimeout = { lock_timeout: "800" } as const

/**
 * The settings by which the server ends the transaction of a paused process, and the connection of a lost host: their locks
 * last for seconds only.
 */
const abandoned = {
  idle_in_transaction_session_timeout: "5000",
  tcp_keepalives_idle: "10",
  tcp_keepalives_interval: "5",
  tcp_keepalives_count: "3",
  tcp_user_timeout: "20000"
} as const

/** A client of its own whose statements may go through a store. Without a distribution, the database reports its own. */
export const guarded = Effect.fnUntraced(function* (
  client: PgClient.PgClient,
  options: Store.StoreOptions,
  distribution?: Distribution.Distribution
): Effect.fn.Return<Database, never, Scope.Scope> {
  const store = yield* Store.make(options)
  const reported = distribution ?? (yield* Distribution.make(client, store))
  return Object.assign(client.bind(undefined), client, store, { distribution: reported })
})

/** The settings that each session of a pool asks for, by name; times in milliseconds, of keepalives in seconds. */
export const sessionSettings = (options: PoolOptions): Readonly<Record<string, string>> => ({
  TimeZone: "UTC",
  ...abandoned,
  statement_timeout: String(Duration.toMillis(options.statementTimeout)),
  ...options.settings
})

/** Settings that statements count on, whatever a login or a database has. */
const inherited = {
  DateStyle: "ISO",
  default_transaction_isolation: "read committed",
  quote_all_identifiers: "off",
  standard_conforming_strings: "on"
}

/**
 * The bytes that a socket reads at once. The parser of the client copies them into buffers of 64 KiB: two times this and
 * the beginning of a record fit into one. By default, Node allocates 64 KiB for each read, and the parser then takes 128:
 * pages of 1,000 records cost a third more CPU, and six times as many full garbage collections.
 */
const readSize = 30 * 1024

/** Opens a socket. Keepalives detect a server that is gone. */
const openSocket = (host: string, port: number, isEncrypted: boolean): Socket => {
  const address = host.startsWith("/")
    ? { path: formatHost({ host, port }) }
    : { host, port, keepAlive: true, keepAliveInitialDelay: 30_000, noDelay: true }
  // TLS has a read buffer of its own.
  if (isEncrypted) return dial(address)
  const buffer = Buffer.allocUnsafeSlow(readSize)
  // The next read overwrites the bytes: the parser has copied them when this returns, which a test holds.
  const callback = (size: number) => {
    socket.emit("data", buffer.subarray(0, size))
    return true
  }
  const socket: Socket = dial({ ...address, onread: { buffer, callback } })
  return socket
}

/** A pool of connections to a Postgres. Connections open on demand, so the service starts while the database is down. */
export const connect = Effect.fnUntraced(function* (options: PoolOptions) {
  const name = options.name ?? "database"
  const parsed = connectionOptions(Redacted.value(options.url))
  if (Result.isFailure(parsed)) return yield* connectFailure(`The URL is wrong: ${parsed.failure}`)
  const { host, isPooled, port, ssl, user, ...url } = parsed.success
  const settings = sessionSettings(options)
  const sockets = new Set<Socket>()
  const config = {
    host,
    port,
    username: user,
    password: url.password,
    database: url.database,
    ssl,
    applicationName: url.applicationName ?? options.applicationName,
    connectTimeout: url.connectTimeout ?? options.connectTimeout ?? "1 second",
    // Poolers know no other setting.
    startupParameters: isPooled
      ? Record.filter(settings, (_, key) => key === "TimeZone")
      : { ...inherited, ...settings },
    startupOptions: isPooled ? undefined : url.options,
    // A statement that is prepared by name is in one session, and a pooler may continue in another one.
    prepare: !isPooled,
    stream: () => {
      const socket = openSocket(host, port, ssl !== false)
      sockets.add(socket)
      return socket.once("close", () => sockets.delete(socket))
    },
    // An idle connection is closed after this time, or at most twice as long.
    idleTimeout: "30 seconds",
    maxMessageSize: 256 * 1024 * 1024,
    types: Columns.types,
    spanAttributes: { "db.client.connection.pool.name": name }
  } as const
  const isPipelined = options.isPipelined === true && options.maxConnections > 1
  const connections = options.maxConnections - Number(isPipelined)
  const client = yield* Time.steadily(PgClient.make({ ...config, maxConnections: connections }))
  // Multiplexed: an interrupted statement is not cancelled, which takes 5 seconds if the server hangs.
  const open = (onClose: () => void) =>
    PgConnection.make({ ...config, multiplex: true, stream: () => config.stream().once("close", onClose) })
  const probe = open(() => {}).pipe(
    Effect.flatMap((connection) => connection.query("select 1", [], false)),
    Effect.scoped,
    Effect.timeoutOrElse({ duration: config.connectTimeout, orElse: () => connectFailure("No answer in time") })
  )
  const store = {
    name,
    pool: options.pool,
    connections,
    isCancellable: true,
    probe,
    disconnect: () => sockets.forEach((socket) => socket.destroy())
  }
  return Object.assign(yield* guarded(client, store), {
    url: options.url,
    isPooled,
    openPipelined: isPipelined ? open : undefined
  })
})

/** The databases by clients. */
export const layerWith = (clients: Readonly<Record<"records" | "changes" | "credentials" | "tasks", Database>>) =>
  Layer.mergeAll(
    Layer.succeed(RecordDatabase, clients.records),
    Layer.succeed(ChangeDatabase, clients.changes),
    Layer.succeed(CredentialDatabase, clients.credentials),
    Layer.succeed(TaskDatabase, clients.tasks)
  )

/** All databases on the one client that there is. */
export const layerShared = (client: Database) =>
  layerWith({ records: client, changes: client, credentials: client, tasks: client })

/** True if two clients have the same URL, or none. Different URLs may still name the same database. */
export const isSameDatabase = (one: Database, another: Database): boolean => Equal.equals(one.url, another.url)
