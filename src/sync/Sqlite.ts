/** SQLite, as Node brings it. */
import type { DatabaseSync } from "node:sqlite"
import { Effect, Predicate, type Scope } from "effect"
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

// SQLITE_BUSY and SQLITE_LOCKED, whose extended codes have the same last byte.
const isBusy = (cause: unknown) =>
  Predicate.hasProperty(cause, "errcode") && Predicate.isNumber(cause.errcode) && [5, 6].includes(cause.errcode & 0xff)

/** Runs statements, whose failures are those of the target. */
export const attempt = <A>(name: string, work: () => A): Effect.Effect<A, Target.TargetError> =>
  Effect.try({
    try: work,
    catch: (cause) =>
      isBusy(cause)
        ? new Target.TargetUnavailable({ message: `${name} is locked by another program` })
        : new Target.TargetRefused({ message: `${name} cannot be used: ${reasonOf(cause)}` })
  })

/** Opens a file until the scope closes. A statement waits up to 10 seconds for a lock. */
export const open = Effect.fnUntraced(function* (
  name: string,
  file: string
): Effect.fn.Return<Database, Target.TargetError, Scope.Scope> {
  const { DatabaseSync } = yield* load
  return yield* Effect.acquireRelease(
    attempt(name, () => new DatabaseSync(file, { timeout: 10_000 })),
    (database) => Effect.sync(() => database.close())
  )
})

/**
 * Takes a file for this process alone until the scope closes. The lock is that of an empty database, which the system
 * frees however the process ends. False if another process has it.
 */
export const lock = Effect.fnUntraced(function* (name: string, file: string) {
  const { DatabaseSync } = yield* load
  const database = yield* Effect.acquireRelease(
    attempt(name, () => new DatabaseSync(file)),
    (opened) => Effect.sync(() => opened.close())
  )
  return yield* attempt(name, () => database.exec("begin exclusive")).pipe(
    Effect.as(true),
    Effect.catchTag("TargetUnavailable", () => Effect.succeed(false))
  )
})
