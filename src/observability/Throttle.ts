/** Log lines of frequent events, such as failures in an outage: a few of them, with the number of those left out. */
import { Effect } from "effect"
import * as Time from "./Time.ts"

const window = 10_000

/** Logs at most so many lines in ten seconds. The next line has the number of those before it in `left_out`. */
export const limited = (most: number) => {
  let begun = -Infinity
  let lines = 0
  let leftOut = 0
  return (line: Effect.Effect<void>): Effect.Effect<void> =>
    Effect.flatMap(Time.monotonic, (now) => {
      if (now - begun >= window) {
        begun = now
        lines = 0
      }
      if (lines === most) {
        leftOut++
        return Effect.void
      }
      const before = leftOut
      lines++
      leftOut = 0
      return before === 0 ? line : Effect.annotateLogs(line, "left_out", before)
    })
}

/** Warns with a reason, at most so many times in ten seconds: by default once. */
export const make = (message: string, most = 1) => {
  const limit = limited(most)
  return (reason: string): Effect.Effect<void> =>
    limit(Effect.annotateLogs(Effect.logWarning(message), "reason", reason))
}
