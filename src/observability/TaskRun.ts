/** What became of an attempt to run a deletion task: for the log and the metrics. */
import { Context } from "effect"
import type { Outcome } from "../api/DeletionTasks.ts"

/** An attempt that ended. Times are in milliseconds. */
export interface TaskRun {
  readonly organization: string
  readonly taskId: string
  readonly idempotencyKey: string
  readonly attempt: number
  /** Whether the worker of the attempt before was lost. */
  readonly isTakeover: boolean
  /**
   * `completed`; `failed`: to be tried again; `dead`: not to be tried again; `superseded`: another worker has the task by
   * now, and nothing was changed; `released`: an outage or a stop ended the attempt, which does not count.
   */
  readonly result: "completed" | "failed" | "dead" | "superseded" | "released"
  /** What a completed task deleted. */
  readonly outcome?: Outcome
  /** Why an attempt failed. */
  readonly reason?: string
  /** How long the transaction ran that it was a part of. */
  readonly duration: number
  /** From when the task was scheduled for until it was done. */
  readonly late: number
}

/**
 * What looks at each attempt that ended. They are called one after the other, synchronously. By default, none.
 */
export const TaskObservers = Context.Reference<ReadonlyArray<(run: TaskRun) => void>>(
  "practice-data/observability/TaskObservers",
  { defaultValue: () => [] }
)
