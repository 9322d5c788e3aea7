/** The tasks that delete invoices: what is said of them between the intake, the store and the worker. */
import { Data, type DateTime, Schema } from "effect"

/** The store of tasks does not answer. Whatever was asked of it may or may not have happened; it is safe to ask again. */
export class SchedulerUnavailable extends Schema.TaggedError<SchedulerUnavailable>()("SchedulerUnavailable", {
  message: Schema.String
}) {}

/** A task failed for a reason of its own, which another attempt may meet again. */
export class TaskFailed extends Schema.TaggedError<TaskFailed>()("TaskFailed", { message: Schema.String }) {}

/** What a sender needs to know of a task. */
export interface Receipt {
  readonly taskId: string
  readonly scheduledFor: DateTime.Utc
  readonly receivedAt: DateTime.Utc
  readonly invoicesCount: number
  readonly invoiceLinesCount: number
}

/** What became of a delivery. */
export type ScheduleOutcome = Data.TaggedEnum<{
  /** Stored and committed. */
  Scheduled: { readonly receipt: Receipt }
  /** Stored before: the receipt of the first delivery. */
  Duplicate: { readonly receipt: Receipt }
  /** The key was used with another payload. Nothing is stored. */
  KeyReused: {}
}>
export const ScheduleOutcome = Data.taggedEnum<ScheduleOutcome>()

/** A task that a worker holds. */
export interface Claim {
  readonly organization: string
  readonly taskId: string
  readonly token: string
  /** Which attempt this is; the first is 1. */
  readonly attempt: number
}

/** How many items of a task were deleted, and how many were not, by the reason. */
export interface Outcome {
  readonly invoices: {
    readonly deleted: number
    readonly not_found: number
    readonly clinic_mismatch: number
    readonly client_mismatch: number
  }
  readonly invoice_lines: {
    readonly deleted: number
    readonly not_found: number
    readonly invoice_mismatch: number
    readonly clinic_mismatch: number
  }
  /** How many lines were deleted with their invoices. */
  readonly lines_of_invoices: number
}

/** What became of running a task. */
export type RunOutcome = Data.TaggedEnum<{
  /** Done, and marked so, in one transaction. */
  Completed: { readonly outcome: Outcome }
  /** Another worker has the task by now. Nothing was changed. */
  Superseded: {}
}>
export const RunOutcome = Data.taggedEnum<RunOutcome>()

/** How often a task is tried before it is left to an operator. */
export const maximumAttempts = 8

/**
 * How many attempts a task may have beside others. One whose lease expires after that may be what ends its workers, and
 * is claimed alone: so at most this many attempts of any other task end with such a worker.
 */
export const attemptsBesideOthers = 4
