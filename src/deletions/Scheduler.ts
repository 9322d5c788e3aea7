/**
 * The tasks that delete invoices: scheduling them, once for each delivery, and running them, once in effect.
 *
 * A worker claims a task for a lease; the claim counts an attempt, in a commit of its own, and carries a token. What a
 * worker does with a task it does in one transaction that looks at the token first, so that a worker that was paused
 * past its lease, and whose task another has claimed since, changes nothing.
 */
import { Context, type Duration, type Effect, Layer } from "effect"
import type { Deletions, Delivery } from "./Delivery.ts"
import * as Memory from "./SchedulerMemory.ts"
import * as Postgres from "./SchedulerPostgres.ts"
import type { Claim, Outcome, RunOutcome, ScheduleOutcome, SchedulerUnavailable, TaskFailed } from "./Task.ts"

/** How many tasks to claim at most, of each kind those that have been due the longest. */
export interface ClaimLimits {
  /** Tasks whose time has come, the first or for another attempt. */
  readonly due: number
  /** Tasks whose lease expired, and that may still be run beside others. */
  readonly expired: number
  /** Tasks whose lease expired too often for that. Whoever claims one must have nothing else in hand. */
  readonly alone: number
}

export class Scheduler extends Context.Service<
  Scheduler,
  {
    /** Stores a task for a delivery. Waits for a delivery of the same key that is being stored. */
    readonly schedule: (delivery: Delivery) => Effect.Effect<ScheduleOutcome, SchedulerUnavailable>
    /** Takes tasks for a lease. A task whose attempts are used up becomes `dead` instead. */
    readonly claim: (
      limits: ClaimLimits,
      lease: Duration.Duration
    ) => Effect.Effect<ReadonlyArray<Claim>, SchedulerUnavailable>
    /** Makes leases last from now on again. */
    readonly renew: (
      claims: ReadonlyArray<Claim>,
      lease: Duration.Duration
    ) => Effect.Effect<void, SchedulerUnavailable>
    /** Deletes what the task says and marks it completed. */
    readonly run: (claim: Claim) => Effect.Effect<RunOutcome, TaskFailed | SchedulerUnavailable>
    /** Runs tasks in one transaction, for less than each of them alone would cost: all or, when one fails, none. */
    readonly runTogether: (
      claims: ReadonlyArray<Claim>
    ) => Effect.Effect<ReadonlyArray<RunOutcome>, TaskFailed | SchedulerUnavailable>
    /** Puts a task back for another attempt after a while, or, when it has had all of them, marks it `dead`. */
    readonly fail: (
      claim: Claim,
      reason: string,
      retryAfter: Duration.Duration
    ) => Effect.Effect<void, SchedulerUnavailable>
    /** Puts a task back at once, its attempt not counted: it failed for no reason of its own. */
    readonly giveBack: (claim: Claim) => Effect.Effect<void, SchedulerUnavailable>
    /** How long until a task is due; nothing when there is none. */
    readonly untilDue: Effect.Effect<Duration.Duration | undefined, SchedulerUnavailable>
  }
>()("practice-data/deletions/Scheduler") {
  /**
   * Tasks in the table `deletion_tasks`.
   *
   * @param delay from receiving a delivery to running it
   */
  static readonly layer = (delay: Duration.Duration) => Layer.effect(Scheduler, Postgres.make(delay))

  /**
   * The fake: tasks in memory.
   *
   * @param delay from receiving a delivery to running it
   * @param perform what running a task does; by default nothing
   */
  static readonly layerMemory = (
    delay: Duration.Duration,
    perform?: (deletions: Deletions, task: Claim) => Effect.Effect<Outcome, TaskFailed>
  ) => Layer.effect(Scheduler, Memory.make(delay, perform))
}
