/**
 * The retry policy of tasks. A claim counts an attempt, because a worker that dies cannot report anything.
 *
 * | an attempt ends                                      | it counts | the task runs again                                           |
 * | ---------------------------------------------------- | --------- | ------------------------------------------------------------- |
 * | with an error of its own, a bug, or after a minute   | yes       | after `backoff`; after the last attempt it is dead            |
 * | with its worker, so that its lease expires           | yes       | at once: isolated after 4 attempts, dead after the last       |
 * | with an outage that it met, or rows that others hold | no        | after `pause`                                                 |
 * | with a task store that cannot be reached             | no        | at once                                                       |
 *
 * An error of tasks that share a transaction ends no attempt: each is then run in a transaction of its own.
 */
import { DateTime, Duration, Effect, Random } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { codeOf, isContended, isLost, isUnreachable } from "../database/SqlFailure.ts"

/** The attempts of a task, after which it is dead. */
export const maximumAttempts = 8

/**
 * The attempts that a task may have beside others. If its lease expires after that, it may be what ends its workers,
 * and is claimed isolated: at most this many attempts of any other task end with such a worker.
 */
export const sharedAttempts = 4

/**
 * The kind of a failure. `outage`: the connection is lost, or the database is short of something, or stops; `contended`:
 * others hold what the task needs; `permanent`: any other, an unknown one included.
 */
export const failureKind = (error: SqlError): "contended" | "outage" | "permanent" => {
  if (isContended(error)) return "contended"
  // 25P03: the server ended a session whose process was paused.
  return isLost(error) || /^(08|53|57P|25P03)/.test(codeOf(error)) ? "outage" : "permanent"
}

/**
 * Classifies the error of a run's transaction. `failed`: the attempt counts, or several tasks share the transaction;
 * `postponed`: it does not count; `unavailable`: the task store cannot be reached, so that no attempt counts.
 */
export const endingOf = (error: SqlError, isShared: boolean): "failed" | "postponed" | "unavailable" => {
  if (isUnreachable(error)) return "unavailable"
  return isShared || failureKind(error) === "permanent" ? "failed" : "postponed"
}

/** The delay after an attempt that counts: random, from 1 second to a bound that doubles from 5 seconds to 5 minutes. */
const backoff = (attempt: number) =>
  Effect.map(Random.nextBetween(1000, Math.min(300_000, 5000 * 2 ** (attempt - 1))), Duration.millis)

/** The delay after an attempt that does not count: half as long as the task has been due, from 1 to 10 seconds. */
const pause = (scheduledFor: DateTime.Utc) =>
  Effect.map(DateTime.now, (now) =>
    Duration.clamp(Duration.divideUnsafe(DateTime.distance(scheduledFor, now), 2), {
      minimum: Duration.seconds(1),
      maximum: Duration.seconds(10)
    })
  )

/** Decides about a task whose run has ended without an outcome: the result of the attempt, and the delay of another one. */
export const retryOf = (
  ending: "failed" | "postponed",
  { attempt, scheduledFor }: { readonly attempt: number; readonly scheduledFor: DateTime.Utc }
) => {
  const isCounted = ending === "failed"
  const result = !isCounted ? "released" : attempt < maximumAttempts ? "failed" : "dead"
  return Effect.map(isCounted ? backoff(attempt) : pause(scheduledFor), (after) => ({ result, after }) as const)
}
