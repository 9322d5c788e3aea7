/**
 * The retry policy of tasks. An attempt counts from its start, because a worker that dies cannot report anything.
 *
 * | an attempt ends                                      | it counts | the task runs again                                  |
 * | ---------------------------------------------------- | --------- | ---------------------------------------------------- |
 * | with an error of its own, a bug, or after a minute   | yes       | after `backoff`; after the last attempt it is dead   |
 * | with its worker                                      | yes       | at once; after the last attempt it is dead           |
 * | with an outage that it met, or rows that others hold | no        | after `pause`                                        |
 */
import { DateTime, Duration, Effect, Random } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { errorCode, isContended, isLost } from "../database/SqlFailure.ts"

/** The attempts of a task, after which it is dead. */
export const maximumAttempts = 8

/**
 * True for a failure that passes by itself: others hold what the task needs, the connection is lost, or the database is
 * short of something, or stops. All others count, unknown ones included.
 */
export const isPassing = (error: SqlError) =>
  // 25P03: the server ended a session whose process was paused.
  isContended(error) || isLost(error) || /^(08|53|57P|25P03)/.test(errorCode(error))

/** The delay after an attempt that counts: random, from 1 second to a bound that doubles from 5 seconds to 5 minutes. */
export const backoff = (attempt: number) =>
  Effect.map(Random.nextBetween(1000, Math.min(300_000, 5000 * 2 ** (attempt - 1))), Duration.millis)

/** The delay after an attempt that does not count: half as long as the task has been due, from 1 to 10 seconds. */
export const pause = (scheduledFor: DateTime.Utc) =>
  Effect.map(DateTime.now, (now) =>
    Duration.clamp(Duration.divideUnsafe(DateTime.distance(scheduledFor, now), 2), {
      minimum: Duration.seconds(1),
      maximum: Duration.seconds(10)
    })
  )
