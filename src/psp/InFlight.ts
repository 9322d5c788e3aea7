/** A limit of how many calls of each key are in flight. Nothing waits: a call past the limit is refused. */
import { Effect } from "effect"

/** Fails with `whenFull` instead of making a call of a key that already has `limit` in flight. */
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
