/** Looking at the tasks that delete invoices, and replaying dead ones: for operators. */
import { Data, DateTime, Effect, Option, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { Outcome, State } from "../api/DeletionTasks.ts"
import { type Database, TaskDatabase } from "../database/Database.ts"
import { isoTime } from "../database/Time.ts"

/** A task in a list. Times are ISO 8601 in UTC. */
export const TaskSummary = Schema.Struct({
  organization_id: Schema.String,
  id: Schema.String,
  idempotency_key: Schema.String,
  state: State,
  scheduled_for: Schema.String,
  attempts: Schema.Int,
  last_error: Schema.NullOr(Schema.String),
  outcome: Schema.NullOr(Outcome)
})
export type TaskSummary = typeof TaskSummary.Type

/** Everything about a task. */
export const Task = Schema.Struct({
  organization_id: Schema.String,
  id: Schema.String,
  idempotency_key: Schema.String,
  state: State,
  received_at: Schema.String,
  scheduled_for: Schema.String,
  /** When it is next due: its time to run, or the end of its worker's lease. */
  due_at: Schema.NullOr(Schema.String),
  started_at: Schema.NullOr(Schema.String),
  finished_at: Schema.NullOr(Schema.String),
  attempts: Schema.Int,
  last_error: Schema.NullOr(Schema.String),
  invoices_count: Schema.Int,
  invoice_lines_count: Schema.Int,
  outcome: Schema.NullOr(Outcome),
  payload: Schema.Unknown
})
export type Task = typeof Task.Type

/** Which task: its id, and its organization where that is known, which finds it faster. */
const Identity = Schema.Struct({ id: Schema.String, organization: Schema.UndefinedOr(Schema.String) })
export type Identity = typeof Identity.Type

/** The result of a replay. */
export type Replay = Data.TaggedEnum<{
  /** Due at once, with all its attempts before it. */
  Replayed: { readonly organization: string }
  /** Left as it is. */
  NotDead: { readonly organization: string; readonly state: State }
  NotFound: {}
}>
export const Replay = Data.taggedEnum<Replay>()

const ownedBy = (sql: Database, organization: string | undefined) =>
  organization === undefined ? sql`true` : sql`t.organization_id = ${organization}`

/** The tasks of a state, of an organization, or of all: those that were scheduled for the latest time first. */
export const list = SqlSchema.findAll({
  Request: Schema.Struct({
    state: Schema.UndefinedOr(State),
    organization: Schema.UndefinedOr(Schema.String),
    limit: Schema.Int
  }),
  Result: TaskSummary,
  execute: ({ limit, organization, state }) =>
    Effect.flatMap(
      TaskDatabase,
      (sql) => sql`
        select t.organization_id, t.id, t.idempotency_key, t.state, ${sql.literal(isoTime("t.scheduled_for"))},
          t.attempts, t.last_error, t.outcome
        from deletion_tasks t
        where ${ownedBy(sql, organization)} and ${state === undefined ? sql`true` : sql`t.state = ${state}`}
        order by t.scheduled_for desc, t.organization_id, t.id limit ${limit}`
    )
})

const times = ["t.received_at", "t.scheduled_for", "t.due_at", "t.started_at", "t.finished_at"].map(isoTime).join(", ")

/** Everything about a task; nothing when there is no such task. */
export const show = SqlSchema.findOneOption({
  Request: Identity,
  Result: Task,
  execute: ({ id, organization }) =>
    Effect.flatMap(
      TaskDatabase,
      (sql) => sql`
        select t.organization_id, t.id, t.idempotency_key, t.state, ${sql.literal(times)}, t.attempts, t.last_error,
          t.invoices_count, t.invoice_lines_count, t.outcome, t.payload
        from deletion_tasks t where ${ownedBy(sql, organization)} and t.id = ${id}`
    )
})

/** Makes a dead task due at once, with no attempt counted. Its last error stays until it completes. */
export const replay = Effect.fn("TaskAdmin.replay")(function* ({ id, organization }: Identity) {
  const sql = yield* TaskDatabase
  // A change is of one organization's tasks, also where only the id is given.
  const owner = organization ?? Option.getOrUndefined(yield* show({ id, organization }))?.organization_id
  if (owner === undefined) return Replay.NotFound()
  const replayed = yield* sql`
    update deletion_tasks t
    set state = 'scheduled', attempts = 0, due_at = ${DateTime.formatIso(yield* DateTime.now)}, finished_at = null,
      claim_token = null
    where t.organization_id = ${owner} and t.id = ${id} and t.state = 'dead'
    returning 1`
  if (replayed.length > 0) return Replay.Replayed({ organization: owner })
  return Option.match(yield* show({ id, organization: owner }), {
    onNone: () => Replay.NotFound(),
    onSome: ({ state }) => Replay.NotDead({ organization: owner, state })
  })
})
