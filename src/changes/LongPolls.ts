/** The readers that wait for changes: each repeats its read once a second. */
import { Context, Deferred, type Duration, Effect, Layer, Option, Semaphore } from "effect"

/** The most readers of a process that wait at once. */
const maximumReaders = 100

export class LongPolls extends Context.Service<LongPolls>()("practice-data/changes/LongPolls", {
  make: Effect.gen(function* () {
    const permits = yield* Semaphore.make(maximumReaders)
    const stopped = yield* Deferred.make<void>()
    const ended = Effect.as(Deferred.await(stopped), Option.none())

    /**
     * Repeats a read each second until its result is found, or the time is over. Returns nothing then, at once if too many
     * readers wait, and once the process stops.
     */
    const poll = <A, E, R>(read: Effect.Effect<A, E, R>, isFound: (result: A) => boolean, within: Duration.Duration) =>
      read.pipe(
        Effect.delay("1 second"),
        Effect.repeat({ until: isFound }),
        Effect.asSome,
        Effect.raceFirst(ended),
        Effect.timeoutOrElse({ duration: within, orElse: () => Effect.succeedNone }),
        permits.withPermitsIfAvailable(1),
        Effect.map(Option.flatten)
      )

    return {
      poll,
      /** Ends all polls, now and from now on. */
      stop: Effect.asVoid(Deferred.succeed(stopped, undefined))
    }
  })
}) {
  static readonly layer = Layer.effect(LongPolls, LongPolls.make)
}
