/**
 * Timeouts for the many statements that nearly never need one: each sets several and ends before any of them. All
 * timeouts of one length on one clock share a timer, since they expire in the order in which they were set.
 */
import { type Clock, Duration, Effect } from "effect"

interface Entry {
  readonly at: number
  readonly expired: () => void
}

const now = (clock: Clock.Clock) => Number(clock.monotonicTimeNanosUnsafe()) / 1_000_000

/**
 * Timeouts until the scope closes. The result is a function that calls `expired` after so many milliseconds, and returns
 * how to cancel that.
 */
export const make = Effect.gen(function* () {
  const scope = yield* Effect.scope
  const fork = Effect.runForkWith(yield* Effect.context())
  const clocks = new WeakMap<Clock.Clock, Map<number, Set<Entry>>>()

  const watch = (clock: Clock.Clock, entries: Set<Entry>, done: () => void): Effect.Effect<void> =>
    Effect.suspend(() => {
      for (const entry of entries) {
        const left = entry.at - now(clock)
        if (left > 0) {
          return Effect.andThen(clock.sleep(Duration.millis(Math.ceil(left))), watch(clock, entries, done))
        }
        entries.delete(entry)
        entry.expired()
      }
      done()
      return Effect.void
    })

  return (clock: Clock.Clock, millis: number, expired: () => void): (() => void) => {
    const queues = clocks.get(clock) ?? new Map<number, Set<Entry>>()
    clocks.set(clock, queues)
    const entries = queues.get(millis) ?? new Set<Entry>()
    const entry = { at: now(clock) + millis, expired }
    entries.add(entry)
    if (!queues.has(millis)) {
      queues.set(millis, entries)
      fork(
        Effect.forkIn(
          watch(clock, entries, () => queues.delete(millis)),
          scope
        )
      )
    }
    return () => void entries.delete(entry)
  }
})
