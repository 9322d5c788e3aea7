/**
 * Long work of the one thread that answers everybody, cut into slices. Between two slices, whosesoever they are,
 * everybody else is served: hostile requests that come together take turns, and do not add up.
 */
import { Effect, Semaphore } from "effect"

const turn = Semaphore.makeUnsafe(1)

/** How long a slice may take, in milliseconds, unless a single step of it takes longer. */
const longest = 4

// The time that others wait is real whatever clock the fiber has.
const now = () => performance.now()

const advance = <A>(steps: Iterator<void, A>): IteratorResult<void, A> => {
  const end = now() + longest
  let result = steps.next()
  while (result.done !== true && now() < end) result = steps.next()
  return result
}

/** Does the work in slices, each when it is its turn. It pauses where it yields. */
export const inSlices = <A>(work: () => Iterator<void, A>): Effect.Effect<A> =>
  Effect.suspend(() => {
    const steps = work()
    // The turn lasts until the event loop has come round.
    const slice = turn.withPermit(
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

/** Does the work at once: for what is known to be short. */
export const atOnce = <A>(work: Iterator<void, A>): A => {
  let result = work.next()
  while (result.done !== true) result = work.next()
  return result.value
}

/** A step that nothing can interrupt, with a pause before it. */
export function* step<A>(work: () => A): Generator<void, A> {
  yield
  return work()
}
