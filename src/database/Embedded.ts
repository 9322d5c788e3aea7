/**
 * The embedded database: Postgres in a thread of the process (PGlite), under a data folder or in memory, which the same
 * client reaches by messages. It is a single session, so its client has exactly one connection. One process has it open,
 * and shares it with operators' commands.
 */
import { connect as connectSocket } from "node:net"
import { type Duplex, PassThrough } from "node:stream"
import { PgClient } from "@effect/sql-pg"
import { Duration, Effect, Exit, FileSystem, Option, Path, Schedule, Schema, Scope } from "effect"
import { reasonOfFile } from "../process/Failure.ts"
import * as FileLock from "../process/FileLock.ts"
import * as Columns from "./Columns.ts"
import { type Database, guarded } from "./Database.ts"
import * as Distribution from "./Distribution.ts"
import * as EmbeddedCluster from "./EmbeddedCluster.ts"
import type { EmbeddedDatabaseError } from "./Database.ts"
import * as EmbeddedGuests from "./EmbeddedGuests.ts"

/** The folder is another process's, which may be about to end. */
class Taken extends Schema.TaggedError<Taken>()("Taken", {}) {}

/** A client of the embedded database. */
export interface Embedded {
  readonly sql: Database
  /** True if another process has the database open, which shares it with this one. */
  readonly isGuest: boolean
  /** Lets other processes in, until the scope closes. For the owner, once the database is ready for them. */
  readonly admitGuests: Effect.Effect<void, EmbeddedDatabaseError, Scope.Scope>
}

/**
 * Connects to the session. It knows no request to cancel a statement, which comes on a connection beside that of the
 * statement. That one is closed, so that a stop waits for the statement alone.
 */
const streamOf = (connect: () => Duplex) => {
  let connection: Duplex | undefined
  return () => {
    if (connection?.destroyed === false) return new PassThrough().destroy()
    return (connection = connect())
  }
}

const clientOf = (open: () => Duplex, connectTimeout?: Duration.Input) =>
  PgClient.make({
    stream: streamOf(open),
    username: "postgres",
    database: "postgres",
    maxConnections: 1,
    maxMessageSize: 256 * 1024 * 1024,
    types: Columns.types,
    connectTimeout,
    // All connections are one session there, which still has the names that an earlier connection prepared.
    prepare: false
  }).pipe(
    Effect.flatMap((client) =>
      guarded(
        client,
        {
          name: "embedded database",
          pool: "embedded",
          connections: 1,
          // It knows no cancel: a cancelled statement would keep all others waiting for seconds.
          isCancellable: false,
          // It is up as long as the process is.
          probe: Effect.void
        },
        Distribution.single
      )
    )
  )

/**
 * Connects to a cluster of this process.
 *
 * @param guestSocket the path of the socket for other processes
 */
const host = Effect.fnUntraced(function* (cluster: EmbeddedCluster.Cluster, guestSocket?: string) {
  const sql = yield* clientOf(() => EmbeddedCluster.connectionTo(cluster))
  const admitGuests =
    guestSocket === undefined
      ? Effect.void
      : Effect.mapError(EmbeddedGuests.serve({ cluster, sql }, guestSocket), ({ cause }) =>
          EmbeddedCluster.failed("The embedded database cannot listen.", cause)
        )
  const embedded: Embedded = { sql, isGuest: false, admitGuests }
  return embedded
})

/** Connects to the process that has the folder open, and waits for a turn. */
const visit = Effect.fnUntraced(function* (socket: string) {
  const { uid } = yield* Effect.flatMap(FileSystem.FileSystem, (fs) => fs.stat(socket))
  // A long path has its socket in a folder where any user could put one.
  if (Option.exists(uid, (owner) => process.getuid !== undefined && owner !== process.getuid()))
    return yield* new Taken()
  const sql = yield* clientOf(() => connectSocket(socket), EmbeddedGuests.longestWait)
  yield* sql`select 1`
  const embedded: Embedded = { sql, isGuest: true, admitGuests: Effect.void }
  return embedded
})

/** True if a process listens at a socket: also one of a version that locked nothing else. */
const isAnswered = (socket: string) =>
  Effect.callback<boolean>((resume) => {
    const probe = connectSocket(socket)
    probe.once("connect", () => resume(Effect.succeed(true))).once("error", () => resume(Effect.succeed(false)))
    return Effect.sync(() => probe.destroy())
  })

const openFolder = Effect.fnUntraced(function* (folder: string, asGuest: boolean) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fs.makeDirectory(folder, { recursive: true, mode: 0o700 })
  const socket = EmbeddedGuests.socketIn(folder)
  if ((yield* FileLock.take(path.join(folder, "lock"))) && !(yield* isAnswered(socket))) {
    yield* fs.remove(socket, { force: true })
    return yield* host(yield* EmbeddedCluster.open(folder), socket)
  }
  if (!asGuest) return yield* new Taken()
  return yield* Effect.mapError(visit(socket), () => new Taken())
})

/**
 * Opens the embedded database.
 *
 * @param dataDir its folder, or `memory` to keep nothing
 * @param options `asGuest` if the process that has the folder open may be asked to share it
 */
export const connect = Effect.fn("Embedded.connect")(function* (
  dataDir: string,
  { asGuest = false }: { readonly asGuest?: boolean } = {}
) {
  const folder = (yield* Path.Path).resolve(dataDir)
  // Each attempt that fails closes what it opened.
  const attempt = Effect.gen(function* () {
    if (dataDir === "memory") return yield* host(yield* EmbeddedCluster.inMemory)
    const scope = yield* Effect.flatMap(Effect.scope, Scope.fork)
    return yield* openFolder(folder, asGuest).pipe(
      Scope.provide(scope),
      Effect.tapCause((cause) => Scope.close(scope, Exit.failCause(cause)))
    )
  })
  return yield* attempt.pipe(
    Effect.retry({
      while: Schema.is(Taken),
      // Another command may have it for a moment, or many of them one after the other.
      schedule: Schedule.upTo(Schedule.spaced("100 millis"), {
        duration: asGuest ? EmbeddedGuests.longestWait : Duration.seconds(3)
      })
    }),
    Effect.catchTags({
      UnknownError: ({ cause }) =>
        EmbeddedCluster.failed(`The data folder ${folder} cannot be locked. Choose another with DATA_DIR.`, cause),
      PlatformError: (cause) =>
        EmbeddedCluster.failed(
          `The data folder of DATA_DIR, ${dataDir}, cannot be used: ${reasonOfFile(cause)}`,
          cause
        ),
      Taken: () =>
        EmbeddedCluster.failed(
          `The data folder ${folder} is in use by another process, such as the running service: the embedded database serves one process. Stop it, or choose another folder with DATA_DIR.`
        )
    })
  )
})
