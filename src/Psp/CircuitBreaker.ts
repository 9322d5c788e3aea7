/**
 * A circuit breaker: after so many failures in a row, calls fail at once for a while, so that something that is down
 * costs its callers nothing. Then one call tries; when it succeeds, all may call again.
 */
import { Clock, Duration, Effect, Ref } from "effect"

/** How a circuit breaker breaks. */
export interface Options {
  readonly failures: number
  readonly pause: Duration.Duration
}

interface State {
  readonly failures: number
  /** Milliseconds since 1970 until which no call is made. */
  readonly openUntil: number
}

const closed: State = { failures: 0, openUntil: 0 }

/** A closed circuit breaker. */
export const make = ({ failures, pause }: Options) =>
  Effect.map(Ref.make(closed), (state) => {
    const fail = Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Ref.update(state, (current) => {
        const count = current.failures + 1
        return { failures: count, openUntil: count >= failures ? now + Duration.toMillis(pause) : 0 }
      })
    )
    // While the circuit is open, the first call after the pause goes through, and the others wait for another pause.
    const enter = Effect.flatMap(Clock.currentTimeMillis, (now) =>
      Ref.modify(state, (current): readonly [boolean, State] => {
        if (current.openUntil === 0) return [true, current]
        return now < current.openUntil
          ? [false, current]
          : [true, { ...current, openUntil: now + Duration.toMillis(pause) }]
      })
    )
    return {
      /** Whether calls are made. */
      isClosed: Effect.map(Ref.get(state), ({ openUntil }) => openUntil === 0),
      /** Makes the call, or fails at once. Which errors count as failures is the caller's to say. */
      protect:
        <E, E2>(isFailure: (error: E) => boolean, whenOpen: () => E2) =>
        <A, R>(call: Effect.Effect<A, E, R>): Effect.Effect<A, E | E2, R> =>
          Effect.flatMap(enter, (mayCall): Effect.Effect<A, E | E2, R> =>
            mayCall
              ? call.pipe(
                  Effect.tap(() => Ref.set(state, closed)),
                  Effect.tapError((error) => (isFailure(error) ? fail : Ref.set(state, closed)))
                )
              : Effect.fail(whenOpen())
          )
    }
  })
