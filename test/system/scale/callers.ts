/** Callers that send requests in turn until they are stopped. */
import { Agent } from "node:http"
import { Array, Clock, Effect, Fiber } from "effect"
import { type Request, send } from "./haproxy.ts"

/** The result of a request. The status is 0 if no response came. Times are in milliseconds. */
export interface Sample {
  readonly at: number
  readonly took: number
  readonly status: number
}

export const isGood = ({ status }: Sample) => status >= 200 && status < 300

/** Starts so many callers, which are gone when the scope closes. Each pauses between a response and its next request. */
export const start = Effect.fnUntraced(function* (
  port: number,
  requests: Array.NonEmptyReadonlyArray<Request>,
  { callers, keepAlive, pause }: { readonly callers: number; readonly keepAlive: boolean; readonly pause: number }
) {
  const agent = keepAlive ? new Agent({ keepAlive }) : undefined
  const samples: Array<Sample> = []
  let count = 0
  let isStopped = false
  const ask = Effect.gen(function* () {
    const at = yield* Clock.currentTimeMillis
    const status = yield* send(port, requests[count++ % requests.length] ?? requests[0], agent).pipe(
      Effect.map((response) => response.status),
      Effect.catchTag("NoResponse", () => Effect.succeed(0)),
      Effect.timeoutOrElse({ duration: "15 seconds", orElse: () => Effect.succeed(0) })
    )
    samples.push({ at, took: (yield* Clock.currentTimeMillis) - at, status })
    yield* Effect.sleep(pause)
  })
  const caller = Effect.whileLoop({ while: () => !isStopped, body: () => ask, step: () => undefined })
  const fibers = yield* Effect.forEach(Array.range(1, callers), () => Effect.forkScoped(caller))
  yield* Effect.addFinalizer(() => Effect.sync(() => agent?.destroy()))
  return {
    /** The results, once the requests in flight have ended. */
    stop: Effect.suspend(() => {
      isStopped = true
      return Effect.as(Fiber.joinAll(fibers), samples)
    })
  }
})
