/** The readers that wait for changes. */
import { IncomingMessage } from "node:http"
import { Deferred, type Duration, Effect, Iterable, Option } from "effect"
import { HttpServerRequest } from "effect/http"
import type { SeenState } from "./FeedQuery.ts"
import { lowestEnded, type Visible } from "./Walk.ts"

/** Returns false once the client of the current request has ended its side of the connection: it may have left. */
const clientEnds: Effect.Effect<false> = Effect.flatMap(
  Effect.serviceOption(HttpServerRequest.HttpServerRequest),
  (service) => {
    const request = Option.getOrUndefined(service)?.source
    if (!(request instanceof IncomingMessage)) return Effect.never
    const { socket } = request
    return Effect.callback<false>((resume) => {
      const end = () => resume(Effect.succeed(false))
      if (socket.readableEnded) end()
      else socket.once("end", end)
      return Effect.sync(() => socket.off("end", end))
    })
  }
)

interface Waiter extends SeenState {
  /** True for changes, false for a stop. */
  readonly woken: Deferred.Deferred<boolean>
  snapshot: Visible
}

const wake = (woken: Iterable<Waiter>, isForChanges = true) =>
  Effect.forEach(woken, (waiter) => Deferred.succeed(waiter.woken, isForChanges), { discard: true })

/**
 * @param connections half of them may wait at once, and an eighth for one organization
 * @param findWoken finds the indexes of the readers with changes since they read; undefined where it fails
 */
export const make = (
  connections: number,
  findWoken: (readers: ReadonlyArray<SeenState>, now: Visible) => Effect.Effect<ReadonlyArray<number> | undefined>
) => {
  const waiters = new Set<Waiter>()
  let isStopped = false

  const isFull = (organization: string) =>
    waiters.size >= connections / 2 ||
    Iterable.countBy(waiters, (waiter) => waiter.organization === organization) >= connections / 8

  const wait = Effect.fnUntraced(function* (seen: SeenState, within: Duration.Duration) {
    if (isStopped || isFull(seen.organization)) return false
    const waiter: Waiter = { ...seen, woken: yield* Deferred.make<boolean>() }
    waiters.add(waiter)
    return yield* Deferred.await(waiter.woken).pipe(
      Effect.raceFirst(clientEnds),
      Effect.timeoutOrElse({ duration: within, orElse: () => Effect.succeed(false) }),
      Effect.ensuring(Effect.sync(() => waiters.delete(waiter)))
    )
  })

  let tokens: string | undefined
  /** Wakes the readers for whom there may be changes; all of them where a feed has ended. */
  const advance = Effect.fnUntraced(function* (now: Visible, feeds: string) {
    if (tokens !== undefined && tokens !== feeds) yield* wake(waiters)
    tokens = feeds
    const behind = [...waiters].filter(({ snapshot }) => lowestEnded(snapshot, now) < Infinity)
    const woken = behind.length === 0 ? [] : yield* findWoken(behind, now)
    if (woken === undefined) return
    for (const waiter of behind) waiter.snapshot = now
    yield* wake(woken.flatMap((index) => behind[index] ?? []))
  })

  const stop = Effect.suspend(() => {
    isStopped = true
    return wake(waiters, false)
  })
  return { wait, advance, stop, size: () => waiters.size }
}
