/**
 * Timeouts for the many statements that nearly never need one: each sets several and ends before any of them. All
 * timeouts of one length share a timer, since they expire in the order in which they were set.
 */
import { Clock, Context, Duration, Effect, type Scope } from "effect"

interface Entry {
  readonly at: number
  readonly expired: () => void
}

/** Ends a timeout before its time. */
export type Cancel = () => void

export interface Timeouts {
  /** Calls `expired` after so many milliseconds on the clock of a context, unless it is cancelled before. */
  readonly set: (context: Context.Context<never>, millis: number, expired: () => void) => Cancel
}

const now = (clock: Clock.Clock) => Number(clock.monotonicTimeNanosUnsafe()) / 1_000_000

const makeQueue = (clock: Clock.Clock, millis: number, run: (effect: Effect.Effect<void>) => void) => {
  const entries = new Set<Entry>()
  let isWatched = false
  const watch: Effect.Effect<void> = Effect.suspend(() => {
    for (const entry of entries) {
      const left = entry.at - now(clock)
      if (left > 0) return Effect.andThen(clock.sleep(Duration.millis(Math.ceil(left))), watch)
      entries.delete(entry)
      entry.expired()
    }
    isWatched = false
    return Effect.void
  })
  return (expired: () => void): Cancel => {
    const entry = { at: now(clock) + millis, expired }
    entries.add(entry)
    if (!isWatched) {
      isWatched = true
      run(watch)
    }
    return () => void entries.delete(entry)
  }
}

/** Timeouts until the scope closes. */
export const make: Effect.Effect<Timeouts, never, Scope.Scope> = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const fork = Effect.runForkWith(yield* Effect.context())
  const run = (effect: Effect.Effect<void>) => void fork(Effect.forkIn(effect, scope))
  const clocks = new WeakMap<Clock.Clock, Map<number, ReturnType<typeof makeQueue>>>()
  return {
    set: (context, millis, expired) => {
      const clock = Context.get(context, Clock.Clock)
      const queues = clocks.get(clock) ?? new Map<number, ReturnType<typeof makeQueue>>()
      clocks.set(clock, queues)
      const queue = queues.get(millis) ?? makeQueue(clock, millis, run)
      queues.set(millis, queue)
      return queue(expired)
    }
  }
})
