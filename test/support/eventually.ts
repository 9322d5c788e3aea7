/** Waits for a condition of another process or of a database, up to a timeout. */
import { Data, Effect, Schedule } from "effect"
import { timeout } from "./Process.ts"

/** It did not become true in time. */
export class NotInTime extends Data.TaggedError("NotInTime")<{ readonly what: string }> {}

/** Checks a condition every few milliseconds until it is true. */
export const eventually = <E, R>(what: string, ask: Effect.Effect<boolean, E, R>) =>
  Effect.repeat(ask, { until: (yes) => yes, schedule: Schedule.spaced("5 millis") }).pipe(
    Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.fail(new NotInTime({ what })) }),
    Effect.asVoid
  )
