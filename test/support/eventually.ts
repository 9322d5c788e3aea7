/** Waits for a condition of another process or of a database, up to a timeout. */
import { Data, Effect, Schedule } from "effect"

/** The time within which any condition comes true on a slow and busy machine. Fast tests end after a minute. */
export const patience = "3 minutes"

/** The condition did not become true in time. */
class NotInTime extends Data.TaggedError("NotInTime")<{ readonly message: string }> {}

/** Asks every few milliseconds until the answer is true, or as wanted. */
export const eventually = <A, E = never, R = never>(
  what: string,
  ask: Effect.Effect<A, E, R> | (() => A),
  isWanted: (answer: A) => boolean = (answer) => answer === true
) =>
  Effect.repeat(Effect.isEffect(ask) ? ask : Effect.sync(ask), {
    until: isWanted,
    schedule: Schedule.spaced("5 millis")
  }).pipe(
    Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.fail(new NotInTime({ message: what })) }),
    Effect.asVoid
  )
