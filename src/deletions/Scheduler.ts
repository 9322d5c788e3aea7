/**
 * The scheduler of deletion tasks: each delivery is scheduled once, and each task runs once in effect.
 *
 * A worker claims a task for a lease. The claim counts an attempt, in a commit of its own, and carries a token. A
 * worker runs a task in one transaction that checks the token first: if another worker has claimed the task since, it
 * changes nothing.
 *
 * Attempts are counted when they begin, because a worker that dies cannot report anything. Only its worker knows that
 * an outage ended an attempt, and another worker may have taken the task over meanwhile: `release` takes the attempt
 * back in either case.
 */
import { Context, type DateTime, type Duration, type Effect, Layer } from "effect"
import type { Outcome } from "../api/DeletionTasks.ts"
import type { Deletions, Delivery } from "./Delivery.ts"
import * as Memory from "./SchedulerMemory.ts"
import * as Postgres from "./SchedulerPostgres.ts"
import type { Claim, ClaimLimits, RunOutcome, ScheduleOutcome, SchedulerUnavailable, TaskFailed } from "./Task.ts"

export class Scheduler extends Context.Service<
  Scheduler,
  {
    /** Stores a task for a delivery. Waits for a delivery of the same key that is being stored. */
    readonly schedule: (delivery: Delivery) => Effect.Effect<ScheduleOutcome, SchedulerUnavailable>
    /** Claims tasks for a lease, oldest first. A task whose attempts are used up becomes `dead` instead. */
    readonly claim: (
      limits: ClaimLimits,
      lease: Duration.Duration
    ) => Effect.Effect<ReadonlyArray<Claim>, SchedulerUnavailable>
    /** The heartbeat: leases begin again now. */
    readonly renew: (
      claims: ReadonlyArray<Claim>,
      lease: Duration.Duration
    ) => Effect.Effect<void, SchedulerUnavailable>
    /** True if tasks of several organizations are on different servers, and better not run together. */
    readonly runsApart: () => boolean
    /** Runs tasks and marks them completed, in one transaction: all or, when one fails, none. */
    readonly run: (
      claims: ReadonlyArray<Claim>
    ) => Effect.Effect<ReadonlyArray<RunOutcome>, TaskFailed | SchedulerUnavailable>
    /** Schedules a failed task for another attempt after a while. After its last attempt, marks it `dead`. */
    readonly fail: (
      claim: Claim,
      reason: string,
      retryAfter: Duration.Duration
    ) => Effect.Effect<void, SchedulerUnavailable>
    /** Takes the attempt back. If the worker still holds the task, the task is due at once. May be repeated. */
    readonly release: (claim: Claim) => Effect.Effect<void, SchedulerUnavailable>
    /** Empties payloads of tasks that were completed until a time, oldest first. Returns the number of tasks. */
    readonly empty: (until: DateTime.Utc, limit: number) => Effect.Effect<number, SchedulerUnavailable>
    /** The time until a task is due or a lease expires; undefined if no task is open. */
    readonly untilDue: Effect.Effect<Duration.Duration | undefined, SchedulerUnavailable>
  }
>()("practice-data/deletions/Scheduler") {
  /**
   * Tasks in the table `deletion_tasks`.
   *
   * @param delay from receiving a delivery to running it
   */
  static readonly layer = (delay: Duration.Duration) => Layer.effect(Scheduler, Postgres.make({ delay }))

  /**
   * The fake: tasks in memory.
   *
   * @param delay from receiving a delivery to running it
   * @param runTask the effect of a task; by default none
   */
  static readonly layerMemory = (
    delay: Duration.Duration,
    runTask?: (deletions: Deletions, claim: Claim) => Effect.Effect<Outcome, TaskFailed>
  ) => Layer.effect(Scheduler, Memory.make(delay, runTask))
}
