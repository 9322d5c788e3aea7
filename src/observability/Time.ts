/** The two clocks. Durations are measured by the monotonic one. The wall clock, which may be set back, is for dates. */
import { Clock, type Duration, Effect, type Exit } from "effect"

/** The monotonic time of a clock, in milliseconds since some moment. */
export const monotonicMillis = (clock: Clock.Clock) => Number(clock.monotonicTimeNanosUnsafe()) / 1_000_000

export const monotonic = Effect.map(Clock.Clock, monotonicMillis)

/** The wall time of a clock, in milliseconds since 1970. */
export const wallMillis = (clock: Clock.Clock) => clock.currentTimeMillisUnsafe()

export const wall = Clock.currentTimeMillis

/** A clock whose wall time is monotonic: for libraries that measure by the wall clock. */
export const steady = (clock: Clock.Clock): Clock.Clock => {
  const { monotonicTimeNanos } = clock
  const [millis, nanos] = [() => monotonicMillis(clock), () => clock.monotonicTimeNanosUnsafe()]
  return {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: monotonicTimeNanos,
    monotonicTimeNanosUnsafe: nanos,
    monotonicTimeNanos,
    sleep: (duration) => clock.sleep(duration)
  }
}

/** Makes the monotonic clock the only one of an effect. */
export const steadily = Effect.updateService(Clock.Clock, steady)

/** Keeps the result of an effect for a while. Concurrent callers share a run, which continues when one of them leaves. */
export const cachedFor = <A, E, R>(
  self: Effect.Effect<A, E, R>,
  durationOf: (exit: Exit.Exit<A, E>) => Duration.Input
) =>
  Effect.flatMap(Clock.Clock, (clock) =>
    Effect.map(Effect.cachedWithTTL(Effect.provideService(self, Clock.Clock, clock), durationOf), steadily)
  )
