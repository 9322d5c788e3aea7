/**
 * The embedded database: Postgres in the process (PGlite), under a data folder or in memory, reached over a socket by
 * the same client as any other Postgres. It is a single session, so its client has exactly one connection. One process
 * has it open, and shares it with the commands of operators.
 */
import type { Socket } from "node:net"
import { PGlite } from "@electric-sql/pglite"
import { PGLiteSocketServer } from "@electric-sql/pglite-socket"
import { PgClient } from "@effect/sql-pg"
import { Duration, Effect, Exit, FileSystem, Option, Path, type Queue, Schedule, Schema, Scope } from "effect"
import { type Database, guarded } from "./Database.ts"
import * as Distribution from "./Distribution.ts"
import * as EmbeddedGuests from "./EmbeddedGuests.ts"
import * as FolderLock from "./FolderLock.ts"
import * as Columns from "./Columns.ts"

/** The embedded database cannot be opened. */
export class EmbeddedDatabaseError extends Schema.TaggedError<EmbeddedDatabaseError>()("EmbeddedDatabaseError", {
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/** Nothing else stands in a data folder of its own. A volume may have the last one. */
const ours = ["postgres", "made", "lock.sock", "lock.sock.removing", "lost+found"]

/**
 * Makes a folder its owner's alone: a cluster has signing secrets. Returns whether that was needed. A volume may belong to
 * another user.
 */
const close = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const { mode } = yield* fs.stat(folder)
  if (process.getuid === undefined || (mode & 0o077) === 0) return false
  return yield* Effect.isSuccess(fs.chmod(folder, 0o700))
})

/**
 * Readies the folder of the cluster. Making a cluster takes a moment, and one that was cut short cannot be opened: what
 * was never marked as made is made again.
 */
const clusterIn = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const cluster = path.join(folder, "postgres")
  const marker = path.join(folder, "made")
  if (!(yield* fs.exists(marker))) yield* fs.remove(cluster, { recursive: true, force: true })
  yield* fs.makeDirectory(cluster, { recursive: true, mode: 0o700 })
  const isOwn = (yield* fs.readDirectory(folder)).every((name) => ours.includes(name))
  const closed = yield* Effect.forEach(isOwn ? [folder, cluster] : [cluster], close)
  if (closed.includes(true)) {
    yield* Effect.log(`Other users could read the data folder ${folder}. Now its owner alone can`)
  }
  return { cluster, made: fs.writeFileString(marker, "The cluster beside this file is whole.\n") }
})

const open = (cluster: string) =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: () => PGlite.create({ dataDir: cluster }),
      catch: (cause) =>
        new EmbeddedDatabaseError({ message: `The embedded database at ${cluster} cannot be opened.`, cause })
    }),
    (database) => Effect.promise(() => database.close())
  )

/** A client of the embedded database. */
export interface Embedded {
  readonly sql: Database
  /** Whether another process has it open, which then serves this one as a guest. */
  readonly isGuest: boolean
  /** Lets other processes in, until the scope closes. For its owner, once the database is ready for them. */
  readonly admitGuests: Effect.Effect<void, never, Scope.Scope>
}

const clientOf = (socket: string, connectTimeout?: Duration.Input) =>
  Effect.flatMap(
    PgClient.make({
      path: socket,
      username: "postgres",
      database: "postgres",
      maxConnections: 1,
      maxMessageSize: 256 * 1024 * 1024,
      types: Columns.types,
      // All connections are one session there, which still has the names that an earlier connection prepared.
      prepare: false,
      ...(connectTimeout === undefined ? {} : { connectTimeout })
    }),
    (client) =>
      guarded(
        client,
        {
          name: "embedded database",
          pool: "embedded",
          connections: 1,
          // Its socket knows no cancel: a statement that is cut short would keep all others waiting for seconds.
          isCancellable: false,
          // It is there as long as the process is.
          probe: Effect.void
        },
        Distribution.single
      )
  )

/** Opens a database in this process. */
const host = Effect.fnUntraced(function* (dataDir: string, guests?: Queue.Dequeue<Socket>) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const database = yield* open(dataDir)
  const sockets = yield* fs.makeTempDirectoryScoped({ prefix: "practice-data-" })
  const socket = path.join(sockets, ".s.PGSQL.5432")
  yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () => {
        const server = new PGLiteSocketServer({ db: database, path: socket, maxConnections: 2 })
        return server.start().then(() => server)
      },
      catch: (cause) => new EmbeddedDatabaseError({ message: "The embedded database cannot listen.", cause })
    }),
    (server) => Effect.promise(() => server.stop())
  )
  const sql = yield* clientOf(socket)
  const admitGuests = guests === undefined ? Effect.void : EmbeddedGuests.serve({ database, sql }, guests)
  return { sql, isGuest: false, admitGuests } satisfies Embedded
})

/** Another user's socket: a data folder whose path is too long for one has it where anybody could put one. */
const isForeign = Effect.fnUntraced(function* (socket: string) {
  const { uid } = yield* Effect.flatMap(FileSystem.FileSystem, (fs) => fs.stat(socket))
  return Option.exists(uid, (owner) => process.getuid !== undefined && owner !== process.getuid())
})

/** Connects to the process that has the folder, and waits for its turn. Fails if that process ends meanwhile. */
const visit = Effect.fnUntraced(function* (socket: string) {
  const sql = yield* clientOf(socket, EmbeddedGuests.longestWait)
  yield* sql`select 1`
  return { sql, isGuest: true, admitGuests: Effect.void } satisfies Embedded
})

/** Runs an effect in a scope of its own, which closes with this one, or at once if the effect fails. */
const attempt = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const scope = yield* Effect.flatMap(Effect.scope, Scope.fork)
    return yield* effect.pipe(
      Scope.provide(scope),
      Effect.tapCause((cause) => Scope.close(scope, Exit.failCause(cause)))
    )
  })

/** The folder is another process's, which may be about to end. */
class Taken extends Schema.TaggedError<Taken>()("Taken", {}) {}

const openFolder = Effect.fnUntraced(function* (folder: string, asGuest: boolean) {
  const taking = yield* FolderLock.take(folder)
  if (FolderLock.Taking.$is("Taken")(taking)) {
    const { cluster, made } = yield* clusterIn(folder)
    const opened = yield* host(cluster, taking.guests)
    yield* made
    return opened
  }
  if (!asGuest || (yield* isForeign(taking.socket))) return yield* new Taken()
  return yield* Effect.catchTag(attempt(visit(taking.socket)), "SqlError", () => new Taken())
})

export interface Options {
  /** Whether the process that has the folder open may be asked to share it. */
  readonly asGuest?: boolean
}

// Another command may have it for a moment, or many of them one after the other.
const patience = (asGuest: boolean) => (asGuest ? EmbeddedGuests.longestWait : Duration.seconds(3))

/**
 * Opens the embedded database.
 *
 * @param dataDir the folder it is kept in, or `memory` to keep nothing
 */
export const connect = Effect.fn("Embedded.connect")(function* (dataDir: string, { asGuest = false }: Options = {}) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = path.resolve(dataDir)
  const opened = fs
    .makeDirectory(folder, { recursive: true, mode: 0o700 })
    .pipe(Effect.andThen(openFolder(folder, asGuest)))
  return yield* (dataDir === "memory" ? host("memory://") : opened).pipe(
    Effect.retry({
      while: Schema.is(Taken),
      schedule: Schedule.upTo(Schedule.spaced("100 millis"), { duration: patience(asGuest) })
    }),
    Effect.catchTags({
      LockError: ({ cause }) =>
        new EmbeddedDatabaseError({
          message: `The data folder ${folder} cannot be locked. Choose another with DATA_DIR.`,
          cause
        }),
      PlatformError: (cause) =>
        new EmbeddedDatabaseError({
          message: `The data folder of DATA_DIR, ${dataDir}, cannot be used: ${cause.message}`,
          cause
        }),
      Taken: () =>
        new EmbeddedDatabaseError({
          message: `The data folder ${folder} is in use by another process, such as the running service: the embedded database serves one process. Stop it, or choose another folder with DATA_DIR.`
        })
    })
  )
})
