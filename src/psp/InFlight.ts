/** A limit of how many calls of each key are under way at once. Nobody waits: what is past the limit is refused. */
import { Effect } from "effect"

/** Counts of calls by key, of which those under way are kept. */
export const make = (limit: number) => {
  const counts = new Map<string, number>()
  const leave = (key: string) => {
    const left = (counts.get(key) ?? 1) - 1
    if (left === 0) counts.delete(key)
    else counts.set(key, left)
  }
  return <E2>(key: string, whenFull: () => E2) =>
    <A, E, R>(call: Effect.Effect<A, E, R>): Effect.Effect<A, E | E2, R> =>
      Effect.acquireUseRelease(
        Effect.suspend(() => {
          const count = counts.get(key) ?? 0
          if (count >= limit) return Effect.fail(whenFull())
          counts.set(key, count + 1)
          return Effect.void
        }),
        () => call,
        () => Effect.sync(() => leave(key))
      )
}
