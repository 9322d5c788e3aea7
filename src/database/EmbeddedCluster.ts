/** The files of the embedded database: a cluster of PGlite that is made at the first start, below a data folder. */
import { statfs } from "node:fs/promises"
import { Worker } from "node:worker_threads"
import { PGlite } from "@electric-sql/pglite"
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

/** Opens a cluster, or one in memory, until the scope closes. Without the files of a cluster, PGlite makes one. */
const openPglite = (dataDir: string) =>
  Effect.acquireRelease(
    Effect.tryPromise(() => PGlite.create({ dataDir })),
    // What a full disk keeps it from writing is in the log, as after a kill.
    (database) => Effect.ignore(Effect.tryPromise(() => database.close()))
  )

/** Makes a cluster in a thread: this one could not take a stop signal during seconds of work. */
const make = Effect.fnUntraced(function* (cluster: string) {
  yield* note(`Making the database, which takes about 10 seconds: ${cluster}`)
  const began = yield* Clock.currentTimeMillis
  const tell = Effect.flatMap(Clock.currentTimeMillis, (now) =>
    note(`Still making the database, after ${Math.round((now - began) / 1000)} seconds`)
  )
  const made = Effect.callback<void, Cause.UnknownError>((resume) => {
    const thread = new Worker(moduleBeside(import.meta.url, "EmbeddedThread"), { workerData: cluster, execArgv: [] })
      .once("error", (cause) => resume(Effect.fail(new Cause.UnknownError(cause))))
      .once("exit", () => resume(Effect.void))
    return Effect.promise(() => thread.terminate())
  })
  yield* Effect.raceFirst(made, Effect.forever(Effect.delay(tell, "5 seconds")))
  yield* note("The database is made")
})

/** Prepares the folder of the cluster. One that was cut short while it was made lacks its mark, and is made again. */
const prepare = Effect.fnUntraced(function* (folder: string, cluster: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const marker = path.join(folder, "made")
  const isMade = yield* fs.exists(marker)
  if (!isMade) yield* fs.remove(cluster, { recursive: true, force: true })
  yield* fs.makeDirectory(cluster, { recursive: true, mode: 0o700 })
  const isOwn = (yield* fs.readDirectory(folder)).every((name) => ours.includes(name))
  // Private, since a cluster has signing secrets. A volume may belong to another user.
  yield* Effect.forEach(isOwn ? [folder, cluster] : [cluster], (each) => Effect.ignore(fs.chmod(each, 0o700)))
  if (isMade) return
  yield* make(cluster)
  yield* fs.writeFileString(marker, "The cluster beside this file is whole.\n")
})

/** The version of the Postgres that made a cluster. */
const versionOf = Effect.fnUntraced(function* (cluster: string) {
  const fs = yield* FileSystem.FileSystem
  const file = (yield* Path.Path).join(cluster, "PG_VERSION")
  return Option.map(yield* Effect.option(fs.readFileString(file)), (text) => text.trim())
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
  const explained = (cause?: unknown) =>
    Effect.gen(function* () {
      return yield* failed(yield* reasonOf(folder, yield* versionOf(cluster)), cause)
    })
  const whole = Effect.gen(function* () {
    yield* prepare(folder, cluster)
    // PGlite would make a cluster over the files of one without it.
    const version = yield* versionOf(cluster)
    if (!Option.contains(version, postgres)) return yield* explained()
    return yield* openPglite(cluster)
  })
  return yield* Effect.catchTag(whole, "UnknownError", ({ cause }) => explained(cause))
})

/** A database in memory, until the scope closes. */
export const inMemory = Effect.mapError(openPglite("memory://"), ({ cause }) =>
  failed("The database in memory cannot be made.", cause)
)
