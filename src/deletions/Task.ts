/** The tasks that delete invoices, as the intake, the store and the worker see them. */
import { Data, Schema } from "effect"
import type { Outcome } from "../api/DeletionTasks.ts"

/**
 * The store of tasks does not answer. What it was asked may or may not have happened; every call may be repeated.
 */
export class SchedulerUnavailable extends Schema.TaggedError<SchedulerUnavailable>()("SchedulerUnavailable", {
  message: Schema.String
}) {}

/** A task failed for a reason of its own, which another attempt may meet again. */
export class TaskFailed extends Schema.TaggedError<TaskFailed>()("TaskFailed", { message: Schema.String }) {}

/** What a sender needs to know of a task. */
export const Receipt = Schema.Struct({
  taskId: Schema.String,
  receivedAt: Schema.DateTimeUtcFromDate,
  scheduledFor: Schema.DateTimeUtcFromDate,
  invoicesCount: Schema.Int,
  invoiceLinesCount: Schema.Int
})
export type Receipt = typeof Receipt.Type

/** The result of scheduling a delivery. */
export type ScheduleOutcome = Data.TaggedEnum<{
  /** Stored and committed. */
  Scheduled: { readonly receipt: Receipt }
  /** Stored before: the receipt of the first delivery. */
  Duplicate: { readonly receipt: Receipt }
  /** The key was used with another payload. Nothing is stored. */
  KeyReused: {}
  /** The organization has as much pending as it may. Nothing is stored. */
  Full: {}
}>
export const ScheduleOutcome = Data.taggedEnum<ScheduleOutcome>()

/** A task that a worker holds. */
export const Claim = Schema.Struct({
  organization: Schema.String,
  taskId: Schema.String,
  idempotencyKey: Schema.String,
  scheduledFor: Schema.DateTimeUtcFromDate,
  token: Schema.String,
  /** Which attempt this is; the first is 1. */
  attempt: Schema.Int,
  /** Whether another worker had it, and its lease expired. */
  isTakeover: Schema.Boolean,
  /** The `traceparent` of the delivery, where that was sampled and traces are made here too. */
  traceParent: Schema.optionalKey(Schema.NullOr(Schema.String))
})
export type Claim = typeof Claim.Type

/**
 * How many tasks of each kind to claim at most; none by default. Those that have been due the longest come first, unless
 * organizations take turns.
 */
export interface ClaimLimits {
  /** Organizations whose due tasks to leave. The others take turns. */
  readonly except?: ReadonlySet<string>
  /** Tasks that are due for their first or another attempt. */
  readonly due?: number
  /** Tasks whose lease expired, and that may still run beside others. */
  readonly expired?: number
  /** Tasks whose lease expired too often for that. The worker that claims one must hold nothing else. */
  readonly alone?: number
}

/** The result of running a task. */
export type RunOutcome = Data.TaggedEnum<{
  /** Done, and marked so, in one transaction. */
  Completed: { readonly outcome: Outcome }
  /** Another worker has the task by now. Nothing was changed. */
  Superseded: {}
}>
export const RunOutcome = Data.taggedEnum<RunOutcome>()

/** How many attempts a task has before it is dead. */
export const maximumAttempts = 8

/**
 * How many attempts a task may have beside others. If its lease expires after that, it may be what ends its workers and
 * is claimed alone: so at most this many attempts of any other task end with such a worker.
 */
export const attemptsBesideOthers = 4
