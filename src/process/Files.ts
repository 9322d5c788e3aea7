/** Locks on files. */
import { DatabaseSync } from "node:sqlite"
import { Effect, Predicate } from "effect"

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
