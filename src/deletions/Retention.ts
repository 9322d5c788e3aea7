/**
 * Empties the payloads of tasks that were completed long ago, a few at a time. A task keeps its receipt, fingerprint and
 * outcome, so that a repeated delivery is a duplicate at any later time. A dead task keeps its payload for its replay.
 */
import { DateTime, Duration, Effect, Layer } from "effect"
import { Scheduler } from "./Scheduler.ts"

const batch = 100

const pause = Duration.millis(200)

const idle = Duration.minutes(1)

/**
 * Empties payloads until the scope closes.
 *
 * @param retention for how long a completed task keeps its payload
 */
export const layer = (retention = Duration.days(90)) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { empty } = yield* Scheduler
      const step = Effect.flatMap(DateTime.now, (now) => empty(DateTime.subtractDuration(now, retention), batch))
      yield* step.pipe(
        Effect.orElseSucceed(() => 0),
        Effect.flatMap((emptied) => Effect.sleep(emptied < batch ? idle : pause)),
        Effect.forever,
        Effect.forkScoped
      )
    })
  )
