/**
 * The state of a database. While it is known to be down, statements fail at once, and a probe on a connection of its own
 * finds out when it is back. An outage begins with a connection that cannot be made, never with a statement that fails.
 */
import { Clock, Duration, Effect, Exit, type Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { reasonOf } from "./SqlFailure.ts"

/** The time before the next probe. */
const pause = "200 millis"

/** An outage that begins sooner after the last one is reported as a part of it. */
const quiet = "1 second"

/** The least time between two warnings of a kind. */
const window = Duration.toMillis("10 seconds")

/** Warns with a reason, at most once in a window. The next warning has the number of those before it in `left_out`. */
const bounded = (message: string, clock: Clock.Clock) => {
  let warnedAt = -Infinity
  let leftOut = 0
  return (reason: string) =>
    Effect.suspend(() => {
      const now = clock.currentTimeMillisUnsafe()
      if (Math.abs(now - warnedAt) < window) return Effect.sync(() => void leftOut++)
      const warning = Effect.annotateLogs(Effect.logWarning(message), {
        reason,
        ...(leftOut === 0 ? {} : { left_out: leftOut })
      })
      warnedAt = now
      leftOut = 0
      return warning
    })
}

export interface Outage {
  readonly isDown: () => boolean
  /** The number of successful statements. A waiting statement sees by it that others succeed. */
  readonly successes: () => number
  /** A statement succeeded. */
  readonly succeeded: () => void
  /** No connection could be made. */
  readonly begin: (error: SqlError) => void
  /** A statement failed at once, since the database is down. */
  readonly refused: () => void
  /** The database has not responded for a while: it is probed, and an outage begins when the probe fails too. */
  readonly suspect: () => void
  /** Warns that the database did not answer, or refuses the service; each in a bounded number of lines. */
  readonly warn: (isRefused: boolean, reason: string) => Effect.Effect<void>
}

export interface Options {
  /** The name of the database, for the log. */
  readonly name: string
  readonly probe: Effect.Effect<unknown, SqlError>
  /** Called when the database is down from now on. */
  readonly onDown: () => void
  /** Called when an outage begins that is no part of the last one. */
  readonly onOutage: () => void
}

/** Watches a database until the scope closes. */
export const make = Effect.fnUntraced(function* ({
  name,
  onDown,
  onOutage,
  probe
}: Options): Effect.fn.Return<Outage, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const clock = yield* Clock.Clock
  const run = Effect.runForkWith(yield* Effect.context())
  const inScope = (effect: Effect.Effect<void>) => void run(Effect.forkIn(effect, scope))
  const warnUnanswered = bounded(`The ${name} did not answer`, clock)
  const warnRefused = bounded(`The ${name} refuses the service`, clock)
  let isDown = false
  let isWatched = false
  let isSuspected = false
  let successes = 0
  let since = 0n
  let refused = 0

  const untilBack = Effect.gen(function* () {
    let away = Duration.zero
    while (isDown) {
      while (isDown) {
        yield* Effect.sleep(pause)
        if (isDown && Exit.isSuccess(yield* Effect.exit(probe))) isDown = false
      }
      away = Duration.nanos(clock.monotonicTimeNanosUnsafe() - since)
      yield* Effect.sleep(quiet)
    }
    isWatched = false
    yield* Effect.annotateLogs(Effect.log(`The ${name} is back`), {
      dependency: name,
      away_ms: Math.round(Duration.toMillis(away)),
      refused
    })
  })

  const begin = (error: SqlError) => {
    if (isDown) return
    isDown = true
    if (!isWatched) {
      isWatched = true
      onOutage()
      since = clock.monotonicTimeNanosUnsafe()
      refused = 0
      const warning = Effect.logWarning(`The ${name} cannot be reached`)
      run(Effect.annotateLogs(warning, { dependency: name, reason: reasonOf(error) }))
      inScope(untilBack)
    }
    onDown()
  }

  return {
    isDown: () => isDown,
    successes: () => successes,
    succeeded: () => {
      successes++
      isDown = false
    },
    begin,
    refused: () => {
      refused++
    },
    suspect: () => {
      if (isDown || isSuspected) return
      isSuspected = true
      const before = successes
      const failed = (error: SqlError) =>
        Effect.sync(() => {
          if (successes === before) begin(error)
        })
      inScope(
        Effect.matchEffect(probe, { onFailure: failed, onSuccess: () => Effect.sleep(pause) }).pipe(
          Effect.ensuring(Effect.sync(() => (isSuspected = false)))
        )
      )
    },
    warn: (isRefused, reason) => (isRefused ? warnRefused : warnUnanswered)(reason)
  }
})
