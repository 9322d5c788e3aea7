/**
 * Time slices for long work on the one thread of the event loop. Between two slices, of whichever request, the event loop
 * turns: malicious requests that arrive together take turns, and their times do not add up for anyone else.
 *
 * The work is a generator that yields where it may be paused.
 */
import { Effect, Semaphore } from "effect"

const permit = Semaphore.makeUnsafe(1)

/** How long a slice may take, in milliseconds, unless a single step takes longer. */
const sliceMillis = 4

// Not the clock of the fiber: others wait in real time.
const now = () => performance.now()

const advance = <A>(steps: Iterator<void, A>): IteratorResult<void, A> => {
  const end = now() + sliceMillis
  let result = steps.next()
  while (result.done !== true && now() < end) result = steps.next()
  return result
}

/** Runs work in slices, one slice of all such work at a time. */
export const runSliced = <A>(work: () => Iterator<void, A>): Effect.Effect<A> =>
  Effect.suspend(() => {
    const steps = work()
    // The permit is held until the event loop has turned.
    const slice = permit.withPermit(
      Effect.tap(
        Effect.sync(() => advance(steps)),
        Effect.yieldNow
      )
    )
    const rest: Effect.Effect<A> = Effect.flatMap(slice, (result) =>
      result.done === true ? Effect.succeed(result.value) : rest
    )
    return rest
  })

/** Runs work to its end at once, if it is known to be short. */
export const runSync = <A>(work: Iterator<void, A>): A => {
  let result = work.next()
  while (result.done !== true) result = work.next()
  return result.value
}

/** Work that cannot be paused, with a yield before it. */
export function* step<A>(work: () => A): Generator<void, A> {
  yield
  return work()
}
