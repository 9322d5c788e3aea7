/** SQLite, as Node brings it. */
import type { DatabaseSync } from "node:sqlite"
import { Effect, Predicate, type Scope } from "effect"
import * as Files from "./ndjson/Files.ts"
import * as Target from "./Target.ts"

export type Database = DatabaseSync

/** Node 22 warns that `node:sqlite` is experimental, which is nothing that users of a command can act on. */
const load = Effect.sync(() => {
  const emitWarning = process.emitWarning.bind(process)
  process.emitWarning = () => {}
  const sqlite = process.getBuiltinModule("node:sqlite")
  process.emitWarning = emitWarning
  return sqlite
})

const reasonOf = (cause: unknown) => (Predicate.isError(cause) ? cause.message : String(cause))

/** The result code, which is the last byte of an extended one. */
const codeOf = (cause: unknown) =>
  Predicate.hasProperty(cause, "errcode") && Predicate.isNumber(cause.errcode) ? cause.errcode & 0xff : 0

// SQLITE_BUSY and SQLITE_LOCKED.
const isLocked = (cause: unknown) => [5, 6].includes(codeOf(cause))

// SQLITE_IOERR and SQLITE_FULL.
const hasNoRoom = (cause: unknown) => [10, 13].includes(codeOf(cause))

const failureOf = (name: string, cause: unknown): Target.TargetError => {
  if (isLocked(cause)) return new Target.TargetUnavailable({ message: `${name} is locked by another program` })
  const message = `${name} cannot be used: ${reasonOf(cause)}`
  return hasNoRoom(cause) || Files.isTemporary(cause)
    ? new Target.TargetUnavailable({ message })
    : new Target.TargetRefused({ message })
}

/** Runs statements, whose failures are those of the target. */
export const attempt = <A>(name: string, work: () => A): Effect.Effect<A, Target.TargetError> =>
  Effect.try({ try: work, catch: (cause) => failureOf(name, cause) })

/** Opens a file until the scope closes. A statement waits some milliseconds for a lock, by default 10 seconds. */
export const open = Effect.fnUntraced(function* (
  name: string,
  file: string,
  timeout = 10_000
): Effect.fn.Return<Database, Target.TargetError, Scope.Scope> {
  const { DatabaseSync } = yield* load
  yield* Files.refuseDangling(file)
  return yield* Effect.acquireRelease(
    attempt(name, () => new DatabaseSync(file, { timeout })),
    (database) => Effect.sync(() => database.close())
  )
})

/**
 * Takes a file for this process alone until the scope closes. The lock is that of an empty database, which the system
 * frees however the process ends. False if another process has it.
 */
export const lock = Effect.fnUntraced(function* (name: string, file: string) {
  const database = yield* open(name, file, 0)
  return yield* attempt(name, () => {
    try {
      database.exec("begin exclusive")
      return true
    } catch (cause) {
      if (isLocked(cause)) return false
      throw cause
    }
  })
})
