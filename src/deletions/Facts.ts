/**
 * The facts of deletions as operators see them: of an id, of a task, and undone. A fact that is undone deletes no row from then
 * on. The worker takes the marks of its rows back as it sets them: at once, and again as the transactions that were open at
 * the undoing end (see Sweep.ts). The command line calls this.
 */
import { DateTime, Effect, Schema } from "effect"
import { isoTime, decodeRows, decodeTexts } from "../database/Columns.ts"
import { type Database, TaskDatabase } from "../database/Database.ts"
import { unsettle } from "./Marks.ts"
import * as Tasks from "./OperatorTasks.ts"

const Kind = Schema.Literals(["invoice", "line"])

/** A fact: an item of a task, and what became of it. Times are ISO 8601 in UTC. */
export const Fact = Schema.Struct({
  organization_id: Schema.String,
  task_id: Schema.String,
  kind: Kind,
  id: Schema.String,
  verdict: Schema.String,
  deleted_at: Schema.String,
  undone_at: Schema.NullOr(Schema.String),
  // What the item says of its row.
  clinic_id: Schema.NullOr(Schema.String),
  client_id: Schema.NullOr(Schema.String),
  invoice_id: Schema.NullOr(Schema.String)
})
export type Fact = typeof Fact.Type

const columns = `d.organization_id, d.task_id, d.kind, d.id, d.verdict, ${isoTime("d.deleted_at")},
  ${isoTime("d.undone_at")}, d.clinic_id, d.client_id, d.invoice_id`

/** The facts of an id. */
const hasId = (sql: Database, organization: string, id: string) =>
  sql`d.organization_id = ${organization} and d.id = ${id}
    and deletion_key(d.organization_id, d.id) = deletion_key(${organization}, ${id})`

/** The newest facts of an id: of an invoice, or of a line. */
export const list = Effect.fnUntraced(function* (organization: string, id: string, limit: number) {
  const sql = yield* TaskDatabase
  return yield* decodeRows(Fact)(
    sql`
    select ${sql.literal(columns)} from deletions d where ${hasId(sql, organization, id)}
    order by d.deleted_at desc, d.task_id, d.kind, d.item ${sql.literal(`limit ${limit}`)}`.unprepared
  )
})

/** The number of items of a task by kind, and by verdict or `undone`. */
const Count = Schema.Struct({ kind: Kind, verdict: Schema.String, items: Schema.Int })

/** The first facts of a task, and the numbers of all. Items that were not deleted have none once TASK_RETENTION is over. */
export const ofTask = Effect.fnUntraced(function* (organization: string, task: string, limit: number) {
  const sql = yield* TaskDatabase
  const counts = yield* decodeRows(Count)(sql`
    select kind, case when undone_at is null then verdict else 'undone' end as verdict, count(*)::integer as items
    from deletions where organization_id = ${organization} and task_id = ${task} group by 1, 2 order by 1, 2`)
  const items = yield* decodeRows(Fact)(
    sql`
    select ${sql.literal(columns)} from deletions d where d.organization_id = ${organization} and d.task_id = ${task}
    order by d.kind, d.item ${sql.literal(`limit ${limit}`)}`.unprepared
  )
  return { counts, items }
})

/** The facts to undo: those of a task, or those about a record in all tasks of its organization. */
export type Target =
  | { readonly organization: string; readonly task: string }
  | { readonly organization: string; readonly kind: typeof Kind.Type; readonly id: string }

const isTarget = (sql: Database, target: Target) => {
  const named =
    "task" in target
      ? sql`d.organization_id = ${target.organization} and d.task_id = ${target.task}`
      : sql`d.kind = ${target.kind} and ${hasId(sql, target.organization, target.id)}`
  return sql`${named} and d.undone_at is null and (d.holds or d.verdict = 'not_found')`
}

/** The number of facts that can be undone: they delete rows, or are remembered. */
export const countUndoable = Effect.fnUntraced(function* (target: Target) {
  const sql = yield* TaskDatabase
  return (yield* sql`select from deletions d where ${isTarget(sql, target)}`).length
})

/** Undoes facts, and returns their number. Not on its own: see Commands.ts. */
export const undo = Effect.fn("Facts.undo")(function* (target: Target) {
  const sql = yield* TaskDatabase
  const undone = yield* decodeTexts(sql`
    update deletions d set undone_at = now() where ${isTarget(sql, target)} returning d.task_id as text`)
  const { organization } = target
  yield* Effect.forEach(new Set(undone), (taskId) => unsettle(sql, { organization, taskId }), { discard: true })
  return undone.length
})

/** Cancels a task that is scheduled or dead: it never runs. A repeated delivery stays a duplicate. Undoes the facts of its attempts. */
export const cancel = Effect.fn("Facts.cancel")(function* (task: Tasks.Identity) {
  const sql = yield* TaskDatabase
  const now = DateTime.formatIso(yield* DateTime.now)
  const organization = yield* Tasks.change(
    task,
    (owner) => sql`
      update deletion_tasks set state = 'cancelled', due_at = null, claim_token = null, finished_at = ${now}
      where organization_id = ${owner} and id = ${task.id} and state in ('scheduled', 'dead') returning 1`
  )
  return { organization, undone: yield* undo({ organization, task: task.id }) }
})
