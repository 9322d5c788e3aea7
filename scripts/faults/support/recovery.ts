/** How long a service needs to be well again. */
import { Clock, Effect } from "effect"
import * as Callers from "./Callers.ts"

/**
 * Gives a store back to a service that is asked all the time, and says how many milliseconds after that the last request
 * was still not answered well.
 */
export const recovery = <E, R>(port: number, requests: Callers.Plan["requests"], giveBack: Effect.Effect<void, E, R>) =>
  Effect.gen(function* () {
    const asking = yield* Callers.start({
      ports: [port],
      requests,
      callers: 10,
      pause: 20,
      patience: 15_000,
      keepAlive: true
    })
    yield* Effect.sleep("200 millis")
    yield* giveBack
    const back = yield* Clock.currentTimeMillis
    yield* Effect.sleep("5 seconds")
    const report = yield* asking.stop
    const bad = report.filter(
      ({ status, took }) => !Callers.isGood(status) && (status !== Callers.noAnswer.unfinished || took > 1000)
    )
    return Math.max(0, ...bad.map(({ at, took }) => at + took - back))
  }).pipe(Effect.scoped)
