/**
 * The cluster of the embedded database: PGlite in a thread, since it blocks its thread for seconds at a start. It is made
 * at the first start, below a data folder.
 */
import { statfs } from "node:fs/promises"
import { Duplex } from "node:stream"
import { Worker } from "node:worker_threads"
import { Cause, Clock, Effect, FileSystem, Option, Path } from "effect"
import { moduleBeside } from "../process/Package.ts"
import { note } from "../process/Printed.ts"
import { EmbeddedDatabaseError } from "./Database.ts"

export const failed = (message: string, cause?: unknown) =>
  new EmbeddedDatabaseError({ message, ...(cause === undefined ? {} : { cause }) })

/** The Postgres of PGlite, as the file PG_VERSION of a cluster names it. */
const postgres = "18"

const mebibyte = 1024 * 1024

/** MiB that a new cluster takes with its first records and their log. */
const needed = 128

/** The contents of a data folder. A volume may have the last one; a killed process leaves a journal of the lock. */
const ours = ["postgres", "made", "lock", "lock-journal", "lock.sock", "lost+found"]

/** The parts of an answer. */
type Answer = ReadonlyArray<Uint8Array>

/** A cluster that is open: a single session, which its users share. */
export interface Cluster {
  /** Sends messages of the wire protocol, all of them whole, which are answered in turn. */
  readonly send: (messages: Uint8Array, onAnswer: (answer: Answer) => void) => void
}

/** Opens a cluster, or one in memory, until the scope closes. Without the files of a cluster, PGlite makes one. */
const openPglite = Effect.fnUntraced(function* (dataDir: string) {
  const waiting: Array<(answer: Answer) => void> = []
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
  const cluster: Cluster = {
    send: (messages, onAnswer) => {
      // They may be a part of a larger buffer.
      const copy = new Uint8Array(messages)
      waiting.push(onAnswer)
      thread.postMessage(copy, [copy.buffer])
    }
  }
  return cluster
})

const resetting = Buffer.from("S\0\0\0\x04Q\0\0\0\x0drollback\0Q\0\0\0\x10discard all\0")

/** Ends a sequence of messages that a user left open, its transaction, and its settings. */
export const reset = ({ send }: Cluster) => send(resetting, () => {})

/** A connection to the session. */
export const connectionTo = (cluster: Cluster) =>
  new Duplex({
    read() {},
    write(messages: Buffer, _encoding, done) {
      cluster.send(messages, (answer) => {
        if (!this.destroyed) for (const part of answer) this.push(part)
        done()
      })
    },
    final(done) {
      this.destroy()
      done()
    },
    destroy(error, done) {
      reset(cluster)
      done(error)
    }
  })

/** Makes a cluster, and tells its progress. */
const make = Effect.fnUntraced(function* (cluster: string) {
  yield* note(`Making the database, which takes about 10 seconds: ${cluster}`)
  const began = yield* Clock.currentTimeMillis
  const tell = Effect.flatMap(Clock.currentTimeMillis, (now) =>
    note(`Still making the database, after ${Math.round((now - began) / 1000)} seconds`)
  )
  const made = yield* Effect.raceFirst(openPglite(cluster), Effect.forever(Effect.delay(tell, "5 seconds")))
  yield* note("The database is made")
  return made
})

/** The version of the Postgres that made a cluster. */
const versionOf = Effect.fnUntraced(function* (cluster: string) {
  const fs = yield* FileSystem.FileSystem
  const file = (yield* Path.Path).join(cluster, "PG_VERSION")
  return Option.map(yield* Effect.option(fs.readFileString(file)), (text) => text.trim())
})

/** Opens the cluster of a folder. One that was cut short while it was made lacks its mark, and is made again. */
const openIn = Effect.fnUntraced(function* (folder: string, cluster: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const marker = path.join(folder, "made")
  const isMade = yield* fs.exists(marker)
  if (!isMade) yield* fs.remove(cluster, { recursive: true, force: true })
  yield* fs.makeDirectory(cluster, { recursive: true, mode: 0o700 })
  const isOwn = (yield* fs.readDirectory(folder)).every((name) => ours.includes(name))
  // Private, since a cluster has signing secrets. A volume may belong to another user.
  yield* Effect.forEach(isOwn ? [folder, cluster] : [cluster], (each) => Effect.ignore(fs.chmod(each, 0o700)))
  if (!isMade) {
    const made = yield* make(cluster)
    yield* fs.writeFileString(marker, "The cluster beside this file is whole.\n")
    return made
  }
  // PGlite would make a cluster over the files of one without it.
  if (!Option.contains(yield* versionOf(cluster), postgres)) return yield* new Cause.UnknownError(undefined)
  return yield* openPglite(cluster)
})

/** The reason why the cluster of a folder cannot be made or opened, which PGlite does not tell, and what to do. */
const reasonOf = Effect.fnUntraced(function* (folder: string, version: Option.Option<string>) {
  if (Option.exists(version, (found) => /^\d+$/.test(found) && found !== postgres)) {
    return `The database in ${folder} was made by Postgres ${Option.getOrThrow(version)}, and this release has Postgres ${postgres}. Start the release that made it, or choose another folder with DATA_DIR.`
  }
  const free = yield* Effect.option(Effect.tryPromise(() => statfs(folder)))
  return Option.exists(free, ({ bavail, bsize }) => bavail * bsize < (needed * mebibyte) / 8)
    ? `The disk of the data folder ${folder} is full. Free ${needed} MiB and start again, or choose another folder with DATA_DIR.`
    : `The database in ${folder} is damaged. Replace the folder by a backup, or delete it: the next start makes a new one with demo data.`
})

/** Opens the cluster of a data folder until the scope closes, and makes it first where there is none. */
export const open = Effect.fnUntraced(function* (folder: string) {
  const cluster = (yield* Path.Path).join(folder, "postgres")
  const explained = Effect.fnUntraced(function* ({ cause }: Cause.UnknownError) {
    return yield* failed(yield* reasonOf(folder, yield* versionOf(cluster)), cause)
  })
  return yield* Effect.catchTag(openIn(folder, cluster), "UnknownError", explained)
})

/** A database in memory, until the scope closes. */
export const inMemory = Effect.mapError(openPglite("memory://"), ({ cause }) =>
  failed("The database in memory cannot be made.", cause)
)
