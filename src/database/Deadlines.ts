/**
 * What is to happen when a time is over, for the many that nearly never need it: a request sets several deadlines and is
 * done before any of them. All deadlines of one length share a timer, since they end in the order in which they began.
 */
import { type Clock, Duration, Effect, Scope } from "effect"

interface Entry {
  readonly at: number
  readonly over: () => void
}

/** Ends a deadline before its time. */
export type Cancel = () => void

export interface Deadlines {
  /** Calls `over` when so many milliseconds are over on a clock, unless it is cancelled before. */
  readonly set: (clock: Clock.Clock, millis: number, over: () => void) => Cancel
}

const nowOn = (clock: Clock.Clock) => Number(clock.monotonicTimeNanosUnsafe()) / 1_000_000

const makeLane = (clock: Clock.Clock, millis: number, run: (effect: Effect.Effect<void>) => void) => {
  const entries = new Set<Entry>()
  let isWatched = false
  const watch: Effect.Effect<void> = Effect.suspend(() => {
    const now = nowOn(clock)
    for (const entry of entries) {
      if (entry.at > now) return Effect.andThen(clock.sleep(Duration.millis(Math.ceil(entry.at - now))), watch)
      entries.delete(entry)
      entry.over()
    }
    isWatched = false
    return Effect.void
  })
  return (over: () => void): Cancel => {
    const entry = { at: nowOn(clock) + millis, over }
    entries.add(entry)
    if (!isWatched) {
      isWatched = true
      run(watch)
    }
    return () => void entries.delete(entry)
  }
}

/** Deadlines until the scope closes. */
export const make: Effect.Effect<Deadlines, never, Scope.Scope> = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const fork = Effect.runForkWith(yield* Effect.context())
  const run = (effect: Effect.Effect<void>) => void fork(Effect.forkIn(effect, scope))
  const clocks = new WeakMap<Clock.Clock, Map<number, (over: () => void) => Cancel>>()
  return {
    set: (clock, millis, over) => {
      const lanes = clocks.get(clock) ?? new Map<number, (over: () => void) => Cancel>()
      clocks.set(clock, lanes)
      const lane = lanes.get(millis) ?? makeLane(clock, millis, run)
      lanes.set(millis, lane)
      return lane(over)
    }
  }
})
