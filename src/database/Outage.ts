/**
 * Whether a database is there. While it is known to be down nobody is sent to it: a probe on a connection of its own
 * finds out when it is back. What begins an outage is a connection that cannot be made, never a statement that fails.
 */
import { Clock, Duration, Effect, Exit, type Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { reasonOf } from "./SqlFailure.ts"

/** How long to wait before the next probe. */
const pause = "200 millis"

/** An outage that begins sooner after the last one is told as a part of it. */
const quiet = "1 second"

export interface Outage {
  readonly isDown: () => boolean
  /** How many statements went well so far. Who had to wait sees by it whether others had. */
  readonly successes: () => number
  /** A statement went well. */
  readonly succeeded: () => void
  /** No connection could be made. */
  readonly begin: (error: SqlError) => void
  /** A statement was refused, since the database cannot be reached. */
  readonly refused: () => void
  /** The database has not responded for a while: it is probed, and an outage begins when the probe fails too. */
  readonly suspect: () => void
}

export interface Options {
  /** The name of the database, for the log. */
  readonly name: string
  /** Asks the database for a sign of life. */
  readonly probe: Effect.Effect<unknown, SqlError>
  /** Called when nobody is to be sent to the database any more. */
  readonly onDown: () => void
  /** Called when an outage begins that is not the last one, back for a moment. */
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
      run(
        Effect.annotateLogs(Effect.logWarning(`The ${name} cannot be reached`), {
          dependency: name,
          reason: reasonOf(error)
        })
      )
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
      inScope(
        probe.pipe(
          Effect.asVoid,
          Effect.catchTag("SqlError", (error) =>
            Effect.sync(() => {
              if (successes === before) begin(error)
            })
          ),
          Effect.ensuring(Effect.sync(() => (isSuspected = false)))
        )
      )
    }
  }
})
