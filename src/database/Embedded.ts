/**
 * The embedded database: Postgres (PGlite), in a thread since it blocks its thread for seconds at a start, under a data
 * folder or in memory. The same client reaches it by messages. It is a single session, so its client has exactly one
 * connection. One process has it open: an operator's command needs the service to be stopped.
 */
import { statfs } from "node:fs/promises"
import { join, resolve } from "node:path"
import { Duplex, PassThrough } from "node:stream"
import { Worker } from "node:worker_threads"
import { PgClient } from "@effect/sql-pg"
import { Cause, Effect, FileSystem, MutableRef, Option } from "effect"
import { reasonOfFile } from "../process/Failure.ts"
import { takeLock } from "../process/Files.ts"
import { moduleBeside } from "../process/Package.ts"
import { note, step } from "../process/Printed.ts"
import * as Columns from "./Columns.ts"
import { EmbeddedDatabaseError, guarded } from "./Database.ts"
import * as Distribution from "./Distribution.ts"

const failed = (message: string, cause?: unknown) => new EmbeddedDatabaseError({ message, cause })

/** The Postgres of PGlite, as the file PG_VERSION of a cluster names it. */
const postgres = "18"

/** MiB that a new cluster takes with its first records and their log. */
const needed = 128

type OnAnswer = (parts: ReadonlyArray<Uint8Array>) => void

/** The only session of a cluster. It takes messages of the wire protocol, all of them whole, and answers them in turn. */
type Session = (messages: Uint8Array, onAnswer: OnAnswer) => void

const resetting = Buffer.from("S\0\0\0\x04Q\0\0\0\x0drollback\0Q\0\0\0\x10discard all\0")

/** Ends a sequence of messages that a user left open, its transaction, and its settings. */
const reset = (session: Session) => session(resetting, () => {})

const connectionTo = (session: Session) =>
  new Duplex({
    read() {},
    write(messages: Buffer, _encoding, done) {
      session(messages, (parts) => {
        if (!this.destroyed) for (const part of parts) this.push(part)
        done()
      })
    },
    final(done) {
      this.destroy()
      done()
    },
    destroy(error, done) {
      reset(session)
      done(error)
    }
  })

/** Opens a cluster, or one in memory, until the scope closes. Without the files of a cluster, PGlite makes one. */
const openPglite = Effect.fnUntraced(function* (dataDir: string) {
  const waiting: Array<OnAnswer> = []
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
  const session: Session = (messages, onAnswer) => {
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
  const cluster = join(folder, "postgres")
  const marker = join(folder, "made")
  const isMade = yield* fs.exists(marker)
  if (!isMade) yield* fs.remove(cluster, { recursive: true, force: true })
  yield* fs.makeDirectory(cluster, { recursive: true, mode: 0o700 })
  // Private, since a cluster has signing secrets. A volume may belong to another user.
  yield* Effect.ignore(fs.chmod(cluster, 0o700))
  const opening = Effect.catchTag(openPglite(cluster), "UnknownError", ({ cause }) => unusable(folder, isMade, cause))
  if (!isMade) {
    yield* note(`Making a database with demo data, which takes about 10 seconds: ${cluster}`)
    const made = yield* step("1 of 3: Postgres", opening, () => true)
    yield* fs.writeFileString(marker, "The cluster beside this file is whole.\n")
    return made
  }
  const versionFile = fs.readFileString(join(cluster, "PG_VERSION"))
  const version = (yield* Effect.orElseSucceed(versionFile, () => "")).trim()
  if (version === postgres) return yield* opening
  // PGlite would make a cluster over the files of one without a version.
  if (!/^\d+$/.test(version)) return yield* unusable(folder, isMade)
  return yield* failed(
    `The database in ${folder} was made by Postgres ${version}, and this release has Postgres ${postgres}. Start the release that made it, or choose another folder with DATA_DIR.`
  )
})

/** The client of a session. */
const client = Effect.fnUntraced(function* (session: Session) {
  const opened = MutableRef.make<Duplex>(new PassThrough().destroy())
  const pool = yield* PgClient.make({
    // A request to cancel a statement comes on another connection, and the session knows no such request. That
    // connection is closed, so that a stop waits for the statement alone.
    stream: () =>
      opened.current.destroyed ? MutableRef.setAndGet(opened, connectionTo(session)) : new PassThrough().destroy(),
    username: "postgres",
    database: "postgres",
    maxConnections: 1,
    maxMessageSize: 256 * 1024 * 1024,
    types: Columns.types,
    // All connections are one session, which still has the statements that an earlier connection prepared by name.
    prepare: false
  })
  const store = {
    name: "embedded database",
    pool: "embedded",
    connections: 1,
    // A cancelled statement would keep all others waiting for seconds.
    isCancellable: false,
    // It is up as long as the process is.
    probe: Effect.void
  } as const
  return yield* guarded(pool, store, Distribution.single)
})

/** Opens the embedded database in a folder; `memory` keeps nothing. */
export const connect = Effect.fn("Embedded.connect")(
  function* (dataDir: string) {
    if (dataDir === "memory") {
      const reason = "Cannot create the in-memory database."
      return yield* client(yield* Effect.mapError(openPglite("memory://"), ({ cause }) => failed(reason, cause)))
    }
    const fs = yield* FileSystem.FileSystem
    const folder = resolve(dataDir)
    if (!(yield* fs.exists(folder))) yield* fs.makeDirectory(folder, { mode: 0o700 })
    const owner = join(folder, "pid")
    if (yield* takeLock(join(folder, "lock"))) {
      yield* fs.writeFileString(owner, `${process.pid}\n`)
      return yield* client(yield* openCluster(folder))
    }
    const pid = yield* Effect.orElseSucceed(fs.readFileString(owner), () => "?")
    return yield* failed(
      `The embedded database in ${folder} is in use by process ${pid.trim()}, such as the running service: it serves one process. Stop that first, or choose another folder with DATA_DIR.`
    )
  },
  (effect, dataDir) => {
    const unusableFolder = ({ cause }: { readonly cause?: unknown }) =>
      failed(
        `The data folder of DATA_DIR, ${dataDir}, cannot be used: ${reasonOfFile(cause)}. Check that it is a folder, and that it and its files belong to you, or choose another.`,
        cause
      )
    return Effect.catchTags(effect, { UnknownError: unusableFolder, PlatformError: unusableFolder })
  }
)
