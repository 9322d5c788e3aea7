/**
 * The state of a database. While it is known to be down, statements fail at once, and a probe on a connection of its own
 * finds out when it is back. An outage begins with a connection that cannot be made, never with a statement that fails.
 */
import { Cause, Effect, Exit, FiberHandle, Latch, MutableRef, Result } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { isReadOnly, isShort, isUnreachable, safeReason } from "./SqlFailure.ts"

/** The time before the next probe. */
const pause = "200 millis"

export interface OutageOptions {
  readonly name: string
  /** Probes the database on a connection of its own. */
  readonly probe: Effect.Effect<unknown, SqlError>
  /** Closes all connections, to a server that takes no writes any more. */
  readonly disconnect?: () => void
}

/** Watches a database until the scope closes. */
export const make = Effect.fnUntraced(function* ({ disconnect, name, probe }: OutageOptions) {
  const down = Latch.makeUnsafe()
  const reason = MutableRef.make("")
  const successes = MutableRef.make(0)

  /** Begins an outage, unless the number of statements that have succeeded is above `before`. */
  const begin = (error: SqlError, before: number) => {
    if (down.isOpen() || successes.current > before) return
    reason.current = safeReason(error)
    down.openUnsafe()
  }

  const succeeded = () => {
    MutableRef.increment(successes)
    down.closeUnsafe()
  }

  // A database that has no connection left is up: those that are open work.
  const reach = Effect.result(Effect.catchIf(probe, isShort, () => Effect.void))

  const watch = Effect.gen(function* () {
    yield* down.await
    const warning = Effect.logWarning(`The ${name} cannot be reached`)
    yield* Effect.annotateLogs(warning, { dependency: name, reason: reason.current })
    while (down.isOpen()) {
      while (down.isOpen()) {
        yield* Effect.sleep(pause)
        if (down.isOpen() && Result.isSuccess(yield* reach)) down.closeUnsafe()
      }
      // It may be gone again at once.
      yield* Effect.sleep("1 second")
    }
    yield* Effect.annotateLogs(Effect.log(`The ${name} is back`), { dependency: name })
  })

  const suspect = Effect.gen(function* () {
    const before = successes.current
    const reached = yield* reach
    if (Result.isFailure(reached)) begin(reached.failure, before)
    // A busy database is not probed more often than one that is down.
    else yield* Effect.sleep(pause)
  })

  yield* Effect.forkScoped(Effect.forever(watch))
  const inBackground = yield* FiberHandle.makeRuntime<never>()

  return {
    isDown: () => down.isOpen(),
    /** Completes once the database is down. */
    begun: down.await,
    succeeded,
    /** Observes statements. Where they cannot connect, an outage begins, unless others have succeeded meanwhile. */
    observe: <A, E, R>(statements: Effect.Effect<A, E, R>) =>
      Effect.suspend(() => {
        const before = successes.current
        return Effect.onExit(statements, (exit) =>
          Effect.sync(() => {
            if (Exit.isSuccess(exit)) return succeeded()
            const error = Cause.squash(exit.cause)
            if (!isSqlError(error)) return
            if (isUnreachable(error)) begin(error, before)
            if (isReadOnly(error)) disconnect?.()
          })
        )
      }),
    /** The number of statements that have succeeded. */
    successes: () => successes.current,
    /**
     * Probes the database, unless the number of statements that have succeeded is above `before`. If the probe fails, an
     * outage begins.
     */
    suspect: (before: number) => {
      if (successes.current === before) inBackground(suspect, { onlyIfMissing: true })
    }
  }
})
