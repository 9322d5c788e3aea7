/** What the operators' page knows of tasks, keys and transactions, and how much of it at once. */
import { Schema } from "effect"
import { Outcome, State } from "../api/DeletionTasks.ts"

/** It cannot be read. The message is for a person. */
export class Unreadable extends Schema.TaggedError<Unreadable>()("Unreadable", { message: Schema.String }) {}

/** More than this are not counted one by one. */
export const mostCounted = 10_000

/** How many rows a page of a list has. */
export const pageSize = 50

/** How many organizations are looked through for the tasks of all. */
export const mostOrganizations = 1000

/** How many of the items that a task names are shown. */
export const mostItems = 50

/** How many tasks there are. Counts above `mostCounted` mean that there are more than that. Times are ISO 8601 in UTC. */
export const TaskCounts = Schema.Struct({
  scheduled: Schema.Int,
  running: Schema.Int,
  dead: Schema.Int,
  /** When the task that has been due the longest, or is due next, became or becomes due. */
  oldest_due_at: Schema.NullOr(Schema.String),
  /** About how many there are in all; null where the database does not know yet. */
  estimated: Schema.NullOr(Schema.Finite)
})
export type TaskCounts = typeof TaskCounts.Type

/** A task in a list. */
export const ListedTask = Schema.Struct({
  organization_id: Schema.String,
  id: Schema.String,
  idempotency_key: Schema.String,
  state: State,
  received_at: Schema.String,
  scheduled_for: Schema.String,
  due_at: Schema.NullOr(Schema.String),
  finished_at: Schema.NullOr(Schema.String),
  attempts: Schema.Int,
  last_error: Schema.NullOr(Schema.String),
  outcome: Schema.NullOr(Outcome)
})
export type ListedTask = typeof ListedTask.Type

const Items = Schema.Array(Schema.Record(Schema.String, Schema.NullOr(Schema.String)))

/** A task with what it names, of which the first are shown, each id at its first 200 characters. */
export const ShownTask = Schema.Struct({
  ...ListedTask.fields,
  started_at: Schema.NullOr(Schema.String),
  invoices_count: Schema.Int,
  invoice_lines_count: Schema.Int,
  trace_parent: Schema.NullOr(Schema.String),
  invoices: Items,
  invoice_lines: Items
})
export type ShownTask = typeof ShownTask.Type

/** A transaction that has written and is open: no change after it is told until it ends. */
export const Transaction = Schema.Struct({
  pid: Schema.NullOr(Schema.Int),
  prepared: Schema.NullOr(Schema.String),
  database: Schema.NullOr(Schema.String),
  user: Schema.NullOr(Schema.String),
  application: Schema.NullOr(Schema.String),
  state: Schema.NullOr(Schema.String),
  since: Schema.NullOr(Schema.String)
})
export type Transaction = typeof Transaction.Type

/** Which tasks. */
export interface TaskFilter {
  readonly state: State | undefined
  readonly organization: string | undefined
}

/** Rows, and where to go on if there are more. */
export interface Page<A> {
  readonly rows: ReadonlyArray<A>
  /** For the next page; undefined on the last one. */
  readonly next: string | undefined
}

/** A page of tasks. */
export interface TaskPage extends Page<ListedTask> {
  /** Whether there are more organizations than were looked through. */
  readonly isPartial: boolean
}
