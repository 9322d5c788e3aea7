/** A warning that many may have reason for at the same time: one line, and how many more there were. */
import { Clock, Duration, Effect } from "effect"

/** No second line before this time is over. */
const quiet = Duration.toMillis("10 seconds")

/** Warns with a reason, unless it did so a short while ago. The next line says how many were left out. */
export const make = (message: string) => {
  let lastAt = -Infinity
  let leftOut = 0
  return (reason: string): Effect.Effect<void> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      // A clock that was set back silences nobody.
      if (Math.abs(now - lastAt) < quiet) {
        leftOut++
        return Effect.void
      }
      const line = leftOut === 0 ? reason : `${reason} (and ${leftOut} times before, since the last warning)`
      lastAt = now
      leftOut = 0
      return Effect.logWarning(message, line)
    })
}
