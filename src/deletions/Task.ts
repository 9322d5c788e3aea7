/** The tasks that delete invoices, as the intake, the store and the worker see them. */
import { Array, Data, Schema } from "effect"
import type { Outcome } from "../api/DeletionTasks.ts"

/** The task store does not answer. The call may have had its effect; every call may be repeated. */
export class SchedulerUnavailable extends Schema.TaggedError<SchedulerUnavailable>()("SchedulerUnavailable", {
  message: Schema.String
}) {}

/** A task failed for a reason of its own, which another attempt may meet again. */
export class TaskFailed extends Schema.TaggedError<TaskFailed>()("TaskFailed", { message: Schema.String }) {}

/** The receipt of a delivery. */
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
  /** The backlog of the organization is at its bound. Nothing is stored. */
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
  /** The number of the attempt, from 1. */
  attempt: Schema.Int,
  /** True if the lease of another worker expired. */
  isTakeover: Schema.Boolean,
  /** The `traceparent` of the delivery, where it was sampled and this process traces. */
  traceParent: Schema.optionalKey(Schema.NullOr(Schema.String))
})
export type Claim = typeof Claim.Type

/** A task that was claimed, or that is dead because its attempts are used up. */
export const Taken = Schema.Struct({ ...Claim.fields, isDead: Schema.Boolean, reason: Schema.NullOr(Schema.String) })
export type Taken = typeof Taken.Type

/** The last error of a task whose workers never reported one. */
export const stopped = "The worker stopped during the attempt"

/**
 * The most tasks of each kind to claim; none by default. Those that have been due the longest come first, unless
 * organizations take turns.
 */
export interface ClaimLimits {
  /** Organizations whose due tasks are not claimed. The others take turns. */
  readonly except?: ReadonlySet<string>
  /** Tasks that are due for their first or another attempt. */
  readonly due?: number
  /** Tasks whose lease expired, and that may still run beside others. */
  readonly expired?: number
  /** Tasks whose lease expired too often for that. A worker that claims one must hold nothing else. */
  readonly alone?: number
}

/** The result of running a task. */
export type RunOutcome = Data.TaggedEnum<{
  /** Completed in one transaction with its effect. */
  Completed: { readonly outcome: Outcome }
  /** Another worker has the task. Nothing was changed. */
  Superseded: {}
}>
export const RunOutcome = Data.taggedEnum<RunOutcome>()

/** The attempts of a task, after which it is dead. */
export const maximumAttempts = 8

/**
 * The attempts that a task may have beside others. If its lease expires after that, it may be what ends its workers,
 * and is claimed alone: at most this many attempts of any other task end with such a worker.
 */
export const attemptsBesideOthers = 4

/** Groups by organization, in the given order. */
export const byOrganization = <A extends { readonly organization: string }>(
  all: ReadonlyArray<A>
): ReadonlyArray<Array.NonEmptyReadonlyArray<A>> =>
  // An organization may have the name of a property of every object.
  Object.values(Array.groupBy(all, ({ organization }) => `=${organization}`))
