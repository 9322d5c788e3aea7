/**
 * The state of a database. While it is known to be down, statements fail at once, and a probe on a connection of its own
 * finds out when it is back. An outage begins with a connection that cannot be made, never with a statement that fails.
 */
import { Effect, Exit, FiberSet } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import * as Throttle from "../observability/Throttle.ts"
import { isShort, reasonOf } from "./SqlFailure.ts"

/** The time before the next probe. */
const pause = "200 millis"

/** An outage that begins sooner after the last one is reported as a part of it. */
const quiet = "1 second"

export interface OutageOptions {
  readonly name: string
  readonly probe: Effect.Effect<unknown, SqlError>
  readonly onDown: () => void
  /** Called when an outage begins that is no part of the last one. */
  readonly onOutage: () => void
}

/** Watches a database until the scope closes. */
export const make = Effect.fnUntraced(function* ({ name, onDown, onOutage, probe }: OutageOptions) {
  const run = yield* FiberSet.makeRuntime()
  let isDown = false
  let isWatched = false
  let isSuspected = false
  let successes = 0

  // A database that has no connection left is up: those that are open work.
  const reach = Effect.catchIf(probe, isShort, () => Effect.void)

  const untilBack = Effect.gen(function* () {
    while (isDown) {
      while (isDown) {
        yield* Effect.sleep(pause)
        if (isDown && Exit.isSuccess(yield* Effect.exit(reach))) isDown = false
      }
      yield* Effect.sleep(quiet)
    }
    isWatched = false
    yield* Effect.annotateLogs(Effect.log(`The ${name} is back`), { dependency: name })
  })

  const begin = (error: SqlError) => {
    if (isDown) return
    isDown = true
    if (!isWatched) {
      isWatched = true
      onOutage()
      const warning = Effect.logWarning(`The ${name} cannot be reached`)
      run(Effect.annotateLogs(warning, { dependency: name, reason: reasonOf(error) }))
      run(untilBack)
    }
    onDown()
  }

  return {
    isDown: () => isDown,
    /** The number of successful statements, by which a waiting statement sees that others succeed. */
    successes: () => successes,
    succeeded: () => {
      successes++
      isDown = false
    },
    begin,
    /** Probes a database that has not responded for a while. An outage begins when the probe fails too. */
    suspect: () => {
      if (isDown || isSuspected) return
      isSuspected = true
      const before = successes
      const onFailure = (error: SqlError) => Effect.sync(() => (successes === before ? begin(error) : undefined))
      // A busy database is not probed more often than one that is down.
      const probed = Effect.matchEffect(reach, { onFailure, onSuccess: () => Effect.sleep(pause) })
      const end = Effect.sync(() => (isSuspected = false))
      run(Effect.ensuring(probed, end))
    },
    warnUnanswered: Throttle.make(`The ${name} did not answer`),
    warnRefused: Throttle.make(`The ${name} refuses the service`)
  }
})

export type Outage = Effect.Success<ReturnType<typeof make>>
