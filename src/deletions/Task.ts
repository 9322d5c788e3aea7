/** The tasks that delete invoices, as the intake, the store and the worker see them. */
import { Array, DateTime, type Duration, Effect, Schema } from "effect"
import type { Failure } from "../database/Store.ts"
import type { Delivery } from "./Delivery.ts"

/** The task store does not answer. The call may have had its effect; every call may be repeated. */
export class SchedulerUnavailable extends Schema.TaggedError<SchedulerUnavailable>()("SchedulerUnavailable", {
  message: Schema.String
}) {
  static readonly from = ({ reason }: Failure) => new SchedulerUnavailable({ message: reason })
}

/** A task failed for a reason of its own, which another attempt may meet again. */
export class TaskFailed extends Schema.TaggedError<TaskFailed>()("TaskFailed", { message: Schema.String }) {}

/** The part of a delivery that the row of its task keeps. */
export const Receipt = Schema.Struct({
  received_at: Schema.DateTimeUtcFromDate,
  scheduled_for: Schema.DateTimeUtcFromDate,
  invoices_count: Schema.Int,
  invoice_lines_count: Schema.Int
})
export type Receipt = typeof Receipt.Type

/** The receipt of a delivery that is received now. `delay`: from then to running it. */
export const receiptOf = (
  { invoiceLinesCount, invoicesCount }: Pick<Delivery, "invoicesCount" | "invoiceLinesCount">,
  delay: Duration.Duration
) =>
  Effect.map(DateTime.now, (now): Receipt => ({
    received_at: now,
    scheduled_for: DateTime.addDuration(now, delay),
    invoices_count: invoicesCount,
    invoice_lines_count: invoiceLinesCount
  }))

/**
 * The result of scheduling a delivery. `duplicate`: it was stored before, with this receipt. `key_reused`: its key was
 * used with another payload. `full`: the backlog of its organization is at its bound. These two store nothing.
 */
export type ScheduleOutcome =
  | { readonly status: "scheduled" | "duplicate"; readonly receipt: Receipt }
  | { readonly status: "key_reused" }
  | { readonly status: "full" }

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
