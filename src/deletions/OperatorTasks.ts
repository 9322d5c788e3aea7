/**
 * Tasks as operators see them: one, a list, and their replay. The command line and the operators' page call this.
 */
import { Array, DateTime, Effect, Option, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import * as Uuid from "uuid"
import { Outcome, State } from "../api/DeletionTasks.ts"
import { type Database, TaskDatabase } from "../database/Database.ts"
import { isoTime, decodeRows, unionAll } from "../database/Columns.ts"

/** A task without its payload. Times are ISO 8601 in UTC. */
export const Task = Schema.Struct({
  organization_id: Schema.String,
  id: Schema.String,
  idempotency_key: Schema.String,
  state: State,
  received_at: Schema.String,
  scheduled_for: Schema.String,
  /** The time at which it runs. */
  due_at: Schema.NullOr(Schema.String),
  started_at: Schema.NullOr(Schema.String),
  finished_at: Schema.NullOr(Schema.String),
  attempts: Schema.Int,
  last_error: Schema.NullOr(Schema.String),
  outcome: Schema.NullOr(Outcome),
  /** The time of its deletion or undoing, while open transactions may bring rows; otherwise null. */
  unsettled_since: Schema.NullOr(Schema.String),
  invoices_count: Schema.Int,
  invoice_lines_count: Schema.Int
})
export type Task = typeof Task.Type

const times = ["received_at", "scheduled_for", "due_at", "started_at", "finished_at"].map((name) =>
  isoTime(`t.${name}`)
)

const columns = `t.organization_id, t.id, t.idempotency_key, t.state, ${times.join(", ")}, t.attempts, (
    select ${isoTime("u.since")} from deletions_unsettled u
    where u.organization_id = t.organization_id and u.task_id = t.id order by u.since limit 1
  ) as unsettled_since, left(t.last_error, 4000) as last_error, t.outcome, t.invoices_count, t.invoice_lines_count`

const ownedBy = (sql: Database, organization: string | undefined) =>
  organization === undefined ? sql`true` : sql`t.organization_id = ${organization}`

export type TaskFilter = Readonly<{ state: State | undefined; organization: string | undefined }>

/** The partial index of the tasks of each state, by its time. A task that has run or never will leaves it with its payload. */
const indexes: Readonly<Record<State, readonly [time: string, condition: string]>> = {
  scheduled: ["t.due_at", "t.state = 'scheduled'"],
  running: ["t.due_at", "t.state = 'running'"],
  completed: ["t.finished_at", "t.state = 'completed' and t.payload is not null"],
  dead: ["t.finished_at", "t.state = 'dead'"],
  cancelled: ["t.finished_at", "t.state = 'cancelled' and t.payload is not null"]
}

/**
 * At most `limit` tasks of a state and an organization, or of all, the latest first. Those of an organization have the
 * order of `scheduled_for`; those of all that of `due_at` or `finished_at`, and completed and cancelled ones are among
 * them as long as they have their payload. Each state is read in the order of an index, and they are merged.
 */
export const list = Effect.fnUntraced(function* ({ organization, state }: TaskFilter, limit: number) {
  const sql = yield* TaskDatabase
  const bounds = sql.literal(`limit ${limit}`)
  const parts = (state === undefined ? State.literals : [state]).map((each) => {
    const [time, condition] =
      organization === undefined ? indexes[each] : (["t.scheduled_for", `t.state = '${each}'`] as const)
    return sql`(
      select ${sql.literal(`${columns}, ${time} as place`)} from deletion_tasks t
      where ${ownedBy(sql, organization)} and ${sql.literal(condition)}
      order by ${sql.literal(`${time} desc, t.organization_id desc, t.id desc`)} ${bounds}
    )`
  })
  return yield* decodeRows(Task)(
    sql`
    select found.* from (${unionAll(parts)}) found
    order by place desc, organization_id desc, id desc ${bounds}`.unprepared
  )
})

/** The id of a task, and its organization where it is known, which finds it faster. */
export type Identity = Readonly<{ id: string; organization: string | undefined }>

const shown = decodeRows(Schema.Struct({ ...Task.fields, payload: Schema.Json }))

/** A task with its payload: the items of its delivery as they are stored. An id that is no UUID has none. */
export const show = Effect.fnUntraced(function* ({ id, organization }: Identity) {
  const sql = yield* TaskDatabase
  const given = Uuid.validate(id) ? id : null
  return Array.head(
    yield* shown(sql`
      select ${sql.literal(`${columns}, t.payload`)} from deletion_tasks t where ${ownedBy(sql, organization)} and t.id = ${given}`)
  )
})

/** A task is not in a state that allows a change of it. Without a state, there is no such task. */
export class NotChanged extends Schema.TaggedError<NotChanged>()("NotChanged", { state: Schema.UndefinedOr(State) }) {}

/** Changes a task by a statement that returns its row, in its organization: so is a distributed table. Returns the organization. */
export const change = Effect.fnUntraced(function* <R>(
  { id, organization }: Identity,
  statement: (owner: string) => Effect.Effect<ReadonlyArray<unknown>, SqlError, R>
) {
  const owner = organization ?? Option.getOrUndefined(yield* show({ id, organization }))?.organization_id
  if (owner !== undefined && (yield* statement(owner)).length > 0) return owner
  const task = Option.getOrUndefined(yield* show({ id, organization: owner }))
  return yield* new NotChanged({ state: task?.state })
})

const isDeadIn = (sql: Database, organization: string) => sql`t.state = 'dead' and t.organization_id = ${organization}`

/** Makes dead tasks due at once, with no attempt counted. Their last error stays until they complete. */
const revive = Effect.fnUntraced(function* (sql: Database, isChosen: Fragment) {
  return yield* sql`
    update deletion_tasks t set
      state = 'scheduled', attempts = 0, due_at = ${DateTime.formatIso(yield* DateTime.now)}, finished_at = null, claim_token = null
    where ${isChosen} returning 1`
})

/** Makes a dead task due at once, with all its attempts before it. Returns its organization. */
export const replay = Effect.fn("Tasks.replay")(function* (task: Identity) {
  const sql = yield* TaskDatabase
  return yield* change(task, (owner) => revive(sql, sql`${isDeadIn(sql, owner)} and t.id = ${task.id}`))
})

/** Counts the dead tasks of an organization. */
export const countDead = Effect.fnUntraced(function* (organization: string) {
  const sql = yield* TaskDatabase
  return (yield* sql`select from deletion_tasks t where ${isDeadIn(sql, organization)}`).length
})

/** Replays the dead tasks of an organization, and returns their number. */
export const replayDead = Effect.fn("Tasks.replayDead")(function* (organization: string) {
  const sql = yield* TaskDatabase
  return (yield* revive(sql, isDeadIn(sql, organization))).length
})
