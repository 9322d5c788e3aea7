/** Waits for something of the outside world to become true, within bounds. */
import { Data, Effect, Schedule } from "effect"
import { patience } from "./Process.ts"

/** It did not become true in time. */
export class NotInTime extends Data.TaggedError("NotInTime")<{ readonly what: string }> {}

/** Asks every few milliseconds until the answer is yes. */
export const eventually = <E, R>(what: string, ask: Effect.Effect<boolean, E, R>) =>
  Effect.repeat(ask, { until: (yes) => yes, schedule: Schedule.spaced("5 millis") }).pipe(
    Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.fail(new NotInTime({ what })) }),
    Effect.asVoid
  )
