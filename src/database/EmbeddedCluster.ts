/**
 * The cluster of the embedded database: PGlite in a thread, since it blocks its thread for seconds at a start. It is made
 * at the first start, below a data folder.
 */
import { statfs } from "node:fs/promises"
import { Duplex } from "node:stream"
import { Worker } from "node:worker_threads"
import { Cause, Effect, FileSystem, Option, Path } from "effect"
import { moduleBeside } from "../process/Package.ts"
import { note } from "../process/Printed.ts"
import { EmbeddedDatabaseError } from "./Database.ts"

/** The Postgres of PGlite, as the file PG_VERSION of a cluster names it. */
const postgres = "18"

/** MiB that a new cluster takes with its first records and their log. */
const needed = 128

/** The contents of a data folder. A volume may have the last one; a killed process leaves a journal of the lock. */
const ours = ["postgres", "made", "lock", "lock-journal", "lock.sock", "lost+found"]

type OnAnswer = (parts: ReadonlyArray<Uint8Array>) => void

/** The only session of a cluster. It takes messages of the wire protocol, all of them whole, and answers them in turn. */
export type Session = (messages: Uint8Array, onAnswer: OnAnswer) => void

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

const resetting = Buffer.from("S\0\0\0\x04Q\0\0\0\x0drollback\0Q\0\0\0\x10discard all\0")

/** Ends a sequence of messages that a user left open, its transaction, and its settings. */
export const reset = (session: Session) => session(resetting, () => {})

export const connectionTo = (session: Session) =>
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

/** The error of a cluster that cannot be made or opened: PGlite does not tell why. */
const unusable = Effect.fnUntraced(function* (folder: string, cause?: unknown) {
  const free = yield* Effect.option(Effect.tryPromise(() => statfs(folder)))
  const message = Option.exists(free, ({ bavail, bsize }) => bavail * bsize < (needed * 1024 ** 2) / 8)
    ? `The disk of the data folder ${folder} is full. Free ${needed} MiB and start again, or choose another folder with DATA_DIR.`
    : `The database in ${folder} is damaged. Replace the folder by a backup, or delete it: the next start makes a new one with demo data.`
  return yield* new EmbeddedDatabaseError({ message, cause })
})

/**
 * Opens the cluster of a data folder until the scope closes, and makes it first where there is none. One that was cut short
 * while it was made lacks its mark, and is made again.
 */
export const open = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const cluster = path.join(folder, "postgres")
  const marker = path.join(folder, "made")
  const isMade = yield* fs.exists(marker)
  if (!isMade) yield* fs.remove(cluster, { recursive: true, force: true })
  yield* fs.makeDirectory(cluster, { recursive: true, mode: 0o700 })
  const isOwn = (yield* fs.readDirectory(folder)).every((name) => ours.includes(name))
  // Private, since a cluster has signing secrets. A volume may belong to another user.
  yield* Effect.forEach(isOwn ? [folder, cluster] : [cluster], (each) => Effect.ignore(fs.chmod(each, 0o700)))
  const opening = Effect.catchTag(openPglite(cluster), "UnknownError", ({ cause }) => unusable(folder, cause))
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
  if (!/^\d+$/.test(version)) return yield* unusable(folder)
  return yield* new EmbeddedDatabaseError({
    message: `The database in ${folder} was made by Postgres ${version}, and this release has Postgres ${postgres}. Start the release that made it, or choose another folder with DATA_DIR.`
  })
})

/** A database in memory, until the scope closes. */
export const inMemory = Effect.mapError(
  openPglite("memory://"),
  ({ cause }) => new EmbeddedDatabaseError({ message: "The database in memory cannot be made.", cause })
)
