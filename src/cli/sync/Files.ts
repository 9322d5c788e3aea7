/** Files of a copy, SQLite's among them. A change is on disk when it ends: neither a kill nor a power cut leaves half of it. */
import * as fs from "node:fs"
import { dirname } from "node:path"
import { Effect, Predicate } from "effect"
import * as Failure from "../../process/Failure.ts"
import { isLocked, makeFolder, sqlite, takeLock } from "../../process/Files.ts"
import { type Failed, Refused, Unavailable } from "../Usage.ts"
import * as Target from "./Target.ts"

/** The prefix of the files in a folder beside those of the resources. */
export const ownPrefix = "_practice_data_sync"

/** The system's codes for SQLITE_READONLY, SQLITE_IOERR, SQLITE_FULL and SQLITE_CANTOPEN. */
const codes: Readonly<Record<number, string>> = { 8: "EACCES", 10: "EIO", 13: "ENOSPC", 14: "EACCES" }

// The disk is full or fails, or a file was removed, which is made again when the target is opened.
const temporary = new Set<unknown>(["ENOSPC", "EDQUOT", "EIO", "ENOENT"])

export const failureOf = (target: string, cause: unknown): Failed => {
  if (isLocked(cause)) return new Unavailable({ message: `${target} is locked by another program` })
  // The last byte of an extended result code.
  const found = Predicate.hasProperty(cause, "errcode") ? codes[Number(cause.errcode) & 0xff] : undefined
  const reason = found === undefined ? cause : { code: found }
  const message = `${target} cannot be used: ${Failure.reasonOfFile(reason)}`
  const isTemporary = Predicate.hasProperty(reason, "code") && temporary.has(reason.code)
  return isTemporary ? new Unavailable({ message }) : new Refused({ message })
}

/** Works with files, or runs statements of SQLite. Failures are those of the target. */
export const attempt = <A>(target: string, work: () => A): Effect.Effect<A, Failed> =>
  Effect.try({ try: work, catch: (cause) => failureOf(target, cause) })

/** Refuses a symbolic link to nothing, which would make a file in another place. */
const refuseDangling = (path: string) =>
  Effect.try(() => fs.lstatSync(path).isSymbolicLink() && !fs.existsSync(path)).pipe(
    // A path that cannot be examined cannot be made either.
    Effect.orElseSucceed(() => false),
    Effect.filterOrFail(
      (isDangling) => !isDangling,
      () => new Refused({ message: `${path} is a symbolic link to something that does not exist.` })
    )
  )

/** Opens a SQLite file until the scope closes. */
export const openSqlite = Effect.fnUntraced(function* (target: string, file: string) {
  const { DatabaseSync } = yield* sqlite
  yield* refuseDangling(file)
  return yield* Effect.acquireRelease(
    attempt(target, () => new DatabaseSync(file, { timeout: 10_000 })),
    (database) => Effect.sync(() => database.close())
  )
})

/** Takes a place for this process alone until the scope closes. */
export const lock = Effect.fnUntraced(function* (name: string, file: string) {
  yield* refuseDangling(file)
  const isTaken = yield* Effect.mapError(takeLock(file), ({ cause }) => failureOf(name, cause))
  if (!isTaken) return yield* Target.inUse(name)
})

/** Makes a folder if there is none. Refuses one that has files, unless one of them is of the copy. */
export const takeFolder = Effect.fnUntraced(function* (name: string, folder: string, own: string) {
  yield* refuseDangling(folder)
  const found = yield* attempt(name, () => {
    makeFolder(folder)
    return fs.readdirSync(folder)
  })
  const other = found.find((file) => !file.startsWith(".") && !file.startsWith(ownPrefix))
  if (other !== undefined && !found.includes(own) && found.includes(`${ownPrefix}.json`)) {
    const message = `The copy in ${name} has no ${own}: an earlier version of practice-data made it. Empty the folder, or choose another target; all records are then copied again.`
    return yield* new Refused({ message })
  }
  if (other !== undefined && !found.includes(own)) return yield* Target.notOurs(`file ${other} in ${folder}`)
})

/** Opens a file or folder while work lasts. */
const using = <A>(path: string, flags: string, work: (handle: number) => A): A => {
  const handle = fs.openSync(path, flags)
  try {
    return work(handle)
  } finally {
    fs.closeSync(handle)
  }
}

/** Writes at a position of a file, in the place of what follows. Returns the size of the file, which is made if there is none. */
export const writeAt = (file: string, position: number, pieces: Iterable<string>): number =>
  using(file, "a", (handle) => {
    fs.ftruncateSync(handle, position)
    for (const piece of pieces) fs.writeFileSync(handle, piece)
    fs.fsyncSync(handle)
    return fs.fstatSync(handle).size
  })

/** Puts a new file, which is made at another path first, in the place of a file. */
export const replace = (file: string, make: (next: string) => void) => {
  const next = `${file}.next`
  fs.rmSync(next, { force: true })
  make(next)
  using(next, "r+", fs.fsyncSync)
  fs.renameSync(next, file)
  try {
    using(dirname(file), "r", fs.fsyncSync)
  } catch {
    // Not every system can sync a folder: there, a rename lasts once the system has written it.
  }
}
