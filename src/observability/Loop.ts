/** Work in the background that never ends: where a run of it fails or meets a bug, that is logged, and the next one follows. */
import { Cause, Duration, Effect, Exit } from "effect"

const shortestPause = Duration.millis(100)
const longestPause = Duration.seconds(30)

/** A run of this length has not failed to start. */
const stable = Duration.minutes(1)

/** The pause before another run, by the one before it: it doubles, and is the shortest after a stable run. */
export const pauseAfter = (before: Duration.Duration, lived: Duration.Duration) =>
  Duration.isGreaterThan(lived, stable)
    ? shortestPause
    : Duration.clamp(Duration.times(before, 2), { minimum: shortestPause, maximum: longestPause })

/** Runs an effect until it succeeds. */
export const restarting = Effect.fnUntraced(function* <A, E, R>(name: string, run: Effect.Effect<A, E, R>) {
  let pause = Duration.zero
  while (true) {
    const [lived, exit] = yield* Effect.timed(Effect.exit(run))
    if (Exit.isSuccess(exit)) return exit.value
    // A fiber that is interrupted ends here.
    yield* Effect.yieldNow
    pause = pauseAfter(pause, lived)
    const log = Cause.hasDies(exit.cause) ? Effect.logError : Effect.logWarning
    yield* log(`${name} failed. Restarting in ${Duration.format(pause)}`, exit.cause)
    yield* Effect.sleep(pause)
  }
})

/** Repeats a step without end. */
export const forever = <E, R>(name: string, step: Effect.Effect<unknown, E, R>): Effect.Effect<never, never, R> =>
  // oxlint-disable-next-line eslint/no-restricted-properties -- This is where it belongs.
  restarting(name, Effect.forever(step))
