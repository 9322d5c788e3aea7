/**
 * The retry policy of tasks: which failures use up an attempt, how many attempts a task has, and when it runs again. The
 * scheduler and the worker follow it.
 */
import { DateTime, Duration, Effect, Random } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { codeOf, isContended, isLost } from "../database/SqlFailure.ts"

/** The attempts of a task, after which it is dead. */
export const maximumAttempts = 8

/**
 * The attempts that a task may have beside others. If its lease expires after that, it may be what ends its workers,
 * and is claimed alone: at most this many attempts of any other task end with such a worker.
 */
export const attemptsBesideOthers = 4

/**
 * The kind of a failure. `outage`: the connection is lost, or the database is short of something, or stops; `contended`:
 * others hold what the task needs. These two use up no attempt. `permanent`: any other, an unknown one included.
 */
export const failureKind = (error: SqlError): "contended" | "outage" | "permanent" => {
  if (isContended(error)) return "contended"
  // 25P03: the server ended a session whose process was paused.
  return isLost(error) || /^(08|53|57P|25P03)/.test(codeOf(error)) ? "outage" : "permanent"
}

/** Full jitter: a random duration from 1 second to a bound that doubles with each attempt, from 5 seconds to 5 minutes. */
const fullJitter = (attempt: number) => Random.nextBetween(1000, Math.min(300_000, 5000 * 2 ** (attempt - 1)))

/** The delay after an attempt that counts. */
export const backoff = (attempt: number): Effect.Effect<Duration.Duration> =>
  Effect.map(fullJitter(attempt), Duration.millis)

/** The delay after an attempt that does not count: half as long as the task has been due, from 1 to 10 seconds. */
export const pause = (scheduledFor: DateTime.Utc): Effect.Effect<Duration.Duration> =>
  Effect.map(DateTime.now, (now) =>
    Duration.clamp(Duration.divideUnsafe(DateTime.distance(scheduledFor, now), 2), {
      minimum: Duration.seconds(1),
      maximum: Duration.seconds(10)
    })
  )
