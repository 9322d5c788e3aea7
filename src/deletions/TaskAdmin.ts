/** Looking at the tasks that delete invoices, and replaying dead ones: for operators. */
import { Data, DateTime, Effect } from "effect"
import { TaskDatabase } from "../database/Database.ts"
import type { Deletions } from "./Delivery.ts"
import type { Outcome } from "./Task.ts"

/** What a task can be: waiting for its time or its next attempt, held by a worker, done, or left to an operator. */
export const states = ["scheduled", "running", "completed", "dead"] as const
export type State = (typeof states)[number]

/** A task in a list. */
export interface TaskSummary {
  readonly organization_id: string
  readonly id: string
  readonly state: State
  readonly scheduled_for: string
  readonly attempts: number
  readonly last_error: string | null
}

/** A task with all that is known of it. */
export interface Task extends TaskSummary {
  readonly idempotency_key: string
  readonly received_at: string
  /** When it next wants a worker: its time to run, or the end of its worker's lease. */
  readonly due_at: string | null
  readonly started_at: string | null
  readonly finished_at: string | null
  readonly invoices_count: number
  readonly invoice_lines_count: number
  readonly outcome: Outcome | null
  readonly payload: Deletions
}

/** Which task: its id, and its organization where that is known, which finds it faster. */
export interface Identity {
  readonly id: string
  readonly organization: string | undefined
}

/** What became of a replay. */
export type Replay = Data.TaggedEnum<{
  /** Due at once, with all its attempts before it. */
  Replayed: { readonly organization: string }
  /** Left as it is. */
  NotDead: { readonly state: State }
  NotFound: {}
}>
export const Replay = Data.taggedEnum<Replay>()

const owned = Effect.fnUntraced(function* (organization: string | undefined) {
  const sql = yield* TaskDatabase
  return organization === undefined ? sql`true` : sql`t.organization_id = ${organization}`
})

/** The tasks of a state, of an organization, or of all: those that were scheduled for the latest time first. */
export const list = Effect.fn("TaskAdmin.list")(function* (options: {
  readonly state: State | undefined
  readonly organization: string | undefined
  readonly limit: number
}) {
  const sql = yield* TaskDatabase
  return yield* sql<TaskSummary>`
    select t.organization_id, t.id, t.state, t.scheduled_for::text, t.attempts, t.last_error
    from deletion_tasks t
    where ${yield* owned(options.organization)}
      and ${options.state === undefined ? sql`true` : sql`t.state = ${options.state}`}
    order by t.scheduled_for desc, t.organization_id, t.id limit ${options.limit}`
})

/** Everything about a task; nothing when there is no such task. */
export const show = Effect.fn("TaskAdmin.show")(function* ({ id, organization }: Identity) {
  const sql = yield* TaskDatabase
  const [task] = yield* sql<Task>`
    select t.organization_id, t.id, t.idempotency_key, t.state, t.received_at::text, t.scheduled_for::text,
      t.due_at::text, t.started_at::text, t.finished_at::text, t.attempts, t.last_error,
      t.invoices_count, t.invoice_lines_count, t.outcome, t.payload
    from deletion_tasks t where ${yield* owned(organization)} and t.id = ${id}`
  return task
})

/** Makes a dead task due at once, with no attempt counted. Its last error stays until it completes. */
export const replay = Effect.fn("TaskAdmin.replay")(function* ({ id, organization }: Identity) {
  const sql = yield* TaskDatabase
  const now = DateTime.formatIso(yield* DateTime.now)
  const [replayed] = yield* sql<{ organization_id: string }>`
    update deletion_tasks t
    set state = 'scheduled', attempts = 0, due_at = ${now}, finished_at = null, claim_token = null
    where ${yield* owned(organization)} and t.id = ${id} and t.state = 'dead'
    returning t.organization_id`
  if (replayed !== undefined) return Replay.Replayed({ organization: replayed.organization_id })
  const task = yield* show({ id, organization })
  return task === undefined ? Replay.NotFound() : Replay.NotDead({ state: task.state })
})
