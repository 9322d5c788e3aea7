/**
 * The embedded database: Postgres (PGlite), in a thread since it blocks its thread for seconds at a start, under a data
 * folder or in memory. The same client reaches it by messages. It is a single session, so its client has exactly one
 * connection. One process has it open, and shares it with operators' commands.
 */
import { statfs } from "node:fs/promises"
import { connect as connectSocket } from "node:net"
import { type Duplex, PassThrough } from "node:stream"
import { Worker } from "node:worker_threads"
import { PgClient } from "@effect/sql-pg"
import { Cause, Duration, Effect, Exit, FileSystem, Option, Path, Schedule, Schema, Scope } from "effect"
import { reasonOfFile } from "../process/Failure.ts"
import { makeFolder, takeLock } from "../process/Files.ts"
import { moduleBeside } from "../process/Package.ts"
import { note } from "../process/Printed.ts"
import * as Columns from "./Columns.ts"
import { EmbeddedDatabaseError, guarded } from "./Database.ts"
import * as Distribution from "./Distribution.ts"
import * as EmbeddedSession from "./EmbeddedSession.ts"

const failed = (message: string, cause?: unknown) => new EmbeddedDatabaseError({ message, cause })

/** The Postgres of PGlite, as the file PG_VERSION of a cluster names it. */
const postgres = "18"

/** The bytes that a system allows a socket's path. A folder with a longer one is not shared. */
const longestPath = 100

/** MiB that a new cluster takes with its first records and their log. */
const needed = 128

/** Opens a cluster, or one in memory, until the scope closes. Without the files of a cluster, PGlite makes one. */
const openPglite = Effect.fnUntraced(function* (dataDir: string) {
  const waiting: Array<EmbeddedSession.OnAnswer> = []
  const module = moduleBeside(import.meta.url, "EmbeddedThread")
  const thread = yield* Effect.acquireRelease(
    Effect.sync(() => new Worker(module, { workerData: dataDir, execArgv: [] })),
    (opened) => Effect.promise(() => opened.terminate())
  )
  yield* Effect.callback<void, Cause.UnknownError>((resume) => {
    const fail = (cause: unknown) => resume(Effect.fail(new Cause.UnknownError(cause)))
    thread.once("error", fail).once("exit", fail)
    thread.once("message", () => {
      // A later error ends the process: nothing is known of the session.
      thread.off("error", fail).on("message", (answer) => waiting.shift()?.(answer))
      resume(Effect.void)
    })
  })
  const closed = Effect.callback<void>((resume) => {
    thread.once("exit", () => resume(Effect.void)).postMessage(null, [])
  })
  // The log of a cluster that cannot close in time is replayed at the next start, as after a kill.
  yield* Effect.addFinalizer(() => Effect.timeoutOption(closed, "500 millis"))
  const session: EmbeddedSession.Session = (messages, onAnswer) => {
    // They may be a part of a larger buffer.
    const copy = new Uint8Array(messages)
    waiting.push(onAnswer)
    thread.postMessage(copy, [copy.buffer])
  }
  return session
})

/** The error of a cluster that cannot be made or opened. PGlite does not tell why it cannot open one. */
const unusable = Effect.fnUntraced(function* (folder: string, isMade: boolean, cause?: unknown) {
  const free = yield* Effect.option(Effect.tryPromise(() => statfs(folder)))
  const isFull = Option.exists(free, ({ bavail, bsize }) => bavail * bsize < (needed * 1024 ** 2) / 8)
  const message = isFull
    ? `The disk of the data folder ${folder} is full. Free ${needed} MiB and start again, or choose another folder with DATA_DIR.`
    : isMade
      ? `The database in ${folder} is damaged. Replace the folder by a backup, or delete it: the next start makes a new one with demo data.`
      : `The database in ${folder} cannot be made: ${reasonOfFile(cause)}. Remove the cause, or choose another folder with DATA_DIR.`
  return yield* failed(message, cause)
})

/**
 * Opens the cluster of a data folder until the scope closes, and makes it first where there is none. One that was cut short
 * while it was made lacks its mark, and is made again.
 */
const openCluster = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const cluster = path.join(folder, "postgres")
  const marker = path.join(folder, "made")
  const isMade = yield* fs.exists(marker)
  if (!isMade) yield* fs.remove(cluster, { recursive: true, force: true })
  yield* fs.makeDirectory(cluster, { recursive: true, mode: 0o700 })
  // Private, since a cluster has signing secrets. A volume may belong to another user.
  yield* Effect.ignore(fs.chmod(cluster, 0o700))
  const opening = Effect.catchTag(openPglite(cluster), "UnknownError", ({ cause }) => unusable(folder, isMade, cause))
  if (!isMade) {
    yield* note(`Making the database, which takes about 10 seconds: ${cluster}`)
    const made = yield* opening
    yield* note("The database is made")
    yield* fs.writeFileString(marker, "The cluster beside this file is whole.\n")
    return made
  }
  const versionFile = fs.readFileString(path.join(cluster, "PG_VERSION"))
  const version = (yield* Effect.orElseSucceed(versionFile, () => "")).trim()
  if (version === postgres) return yield* opening
  // PGlite would make a cluster over the files of one without a version.
  if (!/^\d+$/.test(version)) return yield* unusable(folder, isMade)
  return yield* failed(
    `The database in ${folder} was made by Postgres ${version}, and this release has Postgres ${postgres}. Start the release that made it, or choose another folder with DATA_DIR.`
  )
})

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

const clientOf = Effect.fnUntraced(function* (open: () => Duplex, connectTimeout?: Duration.Input) {
  const client = yield* PgClient.make({
    stream: streamOf(open),
    username: "postgres",
    database: "postgres",
    maxConnections: 1,
    maxMessageSize: 256 * 1024 * 1024,
    types: Columns.types,
    connectTimeout,
    // All connections are one session there, which still has the names that an earlier connection prepared.
    prepare: false
  })
  const store = {
    name: "embedded database",
    pool: "embedded",
    connections: 1,
    // It knows no cancel: a cancelled statement would keep all others waiting for seconds.
    isCancellable: false,
    // It is up as long as the process is.
    probe: Effect.void
  } as const
  return yield* guarded(client, store, Distribution.single)
})

const host = Effect.fnUntraced(function* (session: EmbeddedSession.Session, guestSocket?: string) {
  const sql = yield* clientOf(() => EmbeddedSession.connectionTo(session))
  const guests = guestSocket === undefined ? Effect.void : EmbeddedSession.serve(session, sql, guestSocket)
  return {
    sql,
    /** True if another process has the database open, which shares it with this one. */
    isGuest: false,
    /** Lets other processes in, until the scope closes. For the owner, once the database is ready for them. */
    admitGuests: Effect.mapError(guests, ({ cause }) => failed("The embedded database cannot listen.", cause))
  }
})

/** Connects to the process that has the folder open, and waits for a turn. */
const visit = Effect.fnUntraced(function* (socket: string) {
  const sql = yield* clientOf(() => connectSocket(socket), EmbeddedSession.longestWait)
  yield* sql`select 1`
  return { sql, isGuest: true, admitGuests: Effect.void }
})

/** True if a process listens at a socket: also one whose lock file was deleted. */
const isAnswered = (socket: string) =>
  Effect.callback<boolean>((resume) => {
    const probe = connectSocket(socket, () => probe.destroy())
    probe.once("error", () => resume(Effect.succeed(false))).once("close", () => resume(Effect.succeed(true)))
  })

const openFolder = Effect.fnUntraced(function* (folder: string, asGuest: boolean) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const socket = path.join(folder, "lock.sock")
  const isShared = Buffer.byteLength(socket) <= longestPath
  if ((yield* takeLock(path.join(folder, "lock"))) && !(isShared && (yield* isAnswered(socket)))) {
    yield* fs.remove(socket, { force: true })
    return yield* host(yield* openCluster(folder), isShared ? socket : undefined)
  }
  if (!asGuest || !isShared) return yield* new Taken()
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
  if (dataDir === "memory") {
    const opening = openPglite("memory://")
    return yield* host(
      yield* Effect.mapError(opening, ({ cause }) => failed("The database in memory cannot be made.", cause))
    )
  }
  const folder = (yield* Path.Path).resolve(dataDir)
  const unusableFolder = (cause: unknown) =>
    failed(`The data folder of DATA_DIR, ${dataDir}, cannot be used: ${reasonOfFile(cause)}`, cause)
  yield* Effect.try({ try: () => makeFolder(folder), catch: unusableFolder })
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
        duration: asGuest ? EmbeddedSession.longestWait : Duration.seconds(3)
      })
    }),
    Effect.catchTags({
      UnknownError: ({ cause }) =>
        failed(`The data folder ${folder} cannot be locked. Choose another with DATA_DIR.`, cause),
      PlatformError: unusableFolder,
      Taken: () =>
        failed(
          `The data folder ${folder} is in use by another process, such as the running service: the embedded database serves one process. Stop it, or choose another folder with DATA_DIR.`
        )
    })
  )
})
