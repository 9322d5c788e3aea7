/** Private folders, and locks on files. */
import { existsSync, mkdirSync } from "node:fs"
import { dirname } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { Effect, Predicate } from "effect"

/** Makes a private folder and those above it. Node's own recursion never ends where one cannot be made, as in /proc. */
export const makeFolder = (folder: string): void => {
  if (existsSync(folder)) return
  if (dirname(folder) !== folder) makeFolder(dirname(folder))
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    // Another process may have made it.
    if (!existsSync(folder)) throw error
  }
}

/** True for SQLITE_BUSY and SQLITE_LOCKED, in the last byte of an extended result code. */
export const isLocked = (cause: unknown) =>
  Predicate.hasProperty(cause, "errcode") && Predicate.isNumber(cause.errcode) && [5, 6].includes(cause.errcode & 0xff)

/**
 * Locks a file until the scope closes. False if another process has the lock: that of an empty SQLite database, which the
 * system frees however the process ends.
 */
export const takeLock = Effect.fnUntraced(function* (file: string) {
  const database = yield* Effect.acquireRelease(
    Effect.try(() => new DatabaseSync(file, { timeout: 0 })),
    (opened) => Effect.sync(() => opened.close())
  )
  return yield* Effect.try(() => database.exec("begin exclusive")).pipe(
    Effect.as(true),
    Effect.catchIf(
      ({ cause }) => isLocked(cause),
      () => Effect.succeed(false)
    )
  )
})
