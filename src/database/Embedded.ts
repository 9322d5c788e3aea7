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
import { EmbeddedDatabaseError, guarded } from "./Database.ts"
import * as Distribution from "./Distribution.ts"
import * as EmbeddedCluster from "./EmbeddedCluster.ts"
import * as EmbeddedGuests from "./EmbeddedGuests.ts"

/** The folder is another process's, which may be about to end. */
class Taken extends Schema.TaggedError<Taken>()("Taken", {}) {}

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

const host = Effect.fnUntraced(function* (session: EmbeddedCluster.Session, guestSocket?: string) {
  const sql = yield* clientOf(() => EmbeddedCluster.connectionTo(session))
  const guests = guestSocket === undefined ? Effect.void : EmbeddedGuests.serve(session, sql, guestSocket)
  return {
    sql,
    /** True if another process has the database open, which shares it with this one. */
    isGuest: false,
    /** Lets other processes in, until the scope closes. For the owner, once the database is ready for them. */
    admitGuests: Effect.mapError(
      guests,
      ({ cause }) => new EmbeddedDatabaseError({ message: "The embedded database cannot listen.", cause })
    )
  }
})

/** Connects to the process that has the folder open, and waits for a turn. */
const visit = Effect.fnUntraced(function* (socket: string) {
  const { uid } = yield* Effect.flatMap(FileSystem.FileSystem, (fs) => fs.stat(socket))
  // A long path has its socket in a folder where any user could put one.
  if (Option.exists(uid, (owner) => process.getuid !== undefined && owner !== process.getuid()))
    return yield* new Taken()
  const sql = yield* clientOf(() => connectSocket(socket), EmbeddedGuests.longestWait)
  yield* sql`select 1`
  return { sql, isGuest: true, admitGuests: Effect.void }
})

const openFolder = Effect.fnUntraced(function* (folder: string, asGuest: boolean) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fs.makeDirectory(folder, { recursive: true, mode: 0o700 })
  const socket = EmbeddedGuests.socketIn(folder)
  if (yield* FileLock.take(path.join(folder, "lock"))) {
    yield* fs.remove(socket, { force: true })
    return yield* host(yield* EmbeddedCluster.open(folder), socket)
  }
  if (!asGuest) return yield* new Taken()
  return yield* Effect.mapError(visit(socket), () => new Taken())
})

/**
 * Opens the embedded database in a folder; `memory` keeps nothing.
 *
 * @param options `asGuest` if the process that has the folder open may be asked to share it
 */
export const connect = Effect.fn("Embedded.connect")(function* (
  dataDir: string,
  { asGuest = false }: { readonly asGuest?: boolean } = {}
) {
  if (dataDir === "memory") return yield* host(yield* EmbeddedCluster.inMemory)
  const folder = (yield* Path.Path).resolve(dataDir)
  // Each attempt that fails closes what it opened.
  const attempt = Effect.flatMap(Effect.flatMap(Effect.scope, Scope.fork), (scope) =>
    openFolder(folder, asGuest).pipe(
      Scope.provide(scope),
      Effect.tapCause((cause) => Scope.close(scope, Exit.failCause(cause)))
    )
  )
  return yield* attempt.pipe(
    Effect.retry({
      while: Schema.is(Taken),
      // Another command may have it for a moment, or many of them one after the other.
      schedule: Schedule.upTo(Schedule.spaced("100 millis"), {
        duration: asGuest ? EmbeddedGuests.longestWait : Duration.seconds(3)
      })
    }),
    Effect.catchTags({
      UnknownError: ({ cause }) => {
        const message = `The data folder ${folder} cannot be locked. Choose another with DATA_DIR.`
        return new EmbeddedDatabaseError({ message, cause })
      },
      PlatformError: (cause) => {
        const message = `The data folder of DATA_DIR, ${dataDir}, cannot be used: ${reasonOfFile(cause)}`
        return new EmbeddedDatabaseError({ message, cause })
      },
      Taken: () =>
        new EmbeddedDatabaseError({
          message: `The data folder ${folder} is in use by another process, such as the running service: the embedded database serves one process. Stop it, or choose another folder with DATA_DIR.`
        })
    })
  )
})
