/** Waits for a condition of another process or of a database, up to a timeout. */
import { Data, Effect, Schedule } from "effect"

/** The time within which any condition comes true on a slow and busy machine. */
export const patience = "50 seconds"

/** The condition did not become true in time. */
export class NotInTime extends Data.TaggedError("NotInTime")<{ readonly what: string }> {}

/** Checks a condition every few milliseconds until it is true. */
export const eventually = <E = never, R = never>(
  what: string,
  condition: Effect.Effect<boolean, E, R> | (() => boolean)
) =>
  Effect.repeat(Effect.isEffect(condition) ? condition : Effect.sync(condition), {
    until: (isTrue) => isTrue,
    schedule: Schedule.spaced("5 millis")
  }).pipe(
    Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.fail(new NotInTime({ what })) }),
    Effect.asVoid
  )
