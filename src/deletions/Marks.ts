/**
 * The marks of rows that facts name. The views `deletion_rows` and `deletion_work` say which rows, and the functions
 * `mark_invoices` and `mark_invoice_lines` change them: at most 1,000 at once, so that they hold them for a second at most.
 */
import { Array, Effect, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { decodeRows } from "../database/Columns.ts"
import type { Database } from "../database/Database.ts"
import { inTransaction } from "../database/SqlFailure.ts"

export const TaskId = Schema.Struct({ organization: Schema.String, taskId: Schema.String })
export type TaskId = typeof TaskId.Type

/** Tasks of an organization. */
export interface Tasks {
  readonly organization: string
  readonly ids: ReadonlyArray<string>
}

/** The rows that are changed at once: the triggers of a row take up to a millisecond. */
const mostRows = 1000

/** A row to be marked at a time; an empty one takes its mark away. */
const Row = Schema.Struct({ id: Schema.String, time: Schema.String })

/** The number of rows that others hold, and those that the database refused. Null: another attempt has the task. */
const Change = Schema.Struct({
  locked: Schema.NullOr(Schema.Int),
  refused: Schema.NullOr(Schema.Array(Schema.String)),
  reason: Schema.NullOr(Schema.String)
})

const rows = decodeRows(Row)
const changes = decodeRows(Change)

/** Runs statements in a transaction that looks rows up by their ids. */
export const inMarking = <A, E>(sql: Database, statements: Effect.Effect<A, E>) =>
  inTransaction(sql, Effect.andThen(sql`select deletion_settings()::text`, statements))

/** Notes that the facts of a task are to be applied again as open transactions end: see Sweep.ts. */
export const unsettle = (sql: Database, { organization, taskId }: TaskId) =>
  sql`insert into deletions_unsettled (organization_id, task_id) values (${organization}, ${taskId})`

/**
 * Judges the facts of tasks whose row has come, by its mark if it has that of the fact. A writer of a line of its invoice
 * may have missed a fact that deletes from now on, so its task is settled once more.
 */
export const judge = (sql: Database, { ids, organization }: Tasks) =>
  inMarking(
    sql,
    sql`
    with judged as (
      update deletions d set verdict = w.verdict
      from (
        select task_id, kind, item, max(case when is_deleted and row_deleted_at = deleted_at then 'deleted' else fits end) as verdict
        from deletion_work where organization_id = ${organization} and task_id = any (${ids}::uuid[]) and to_judge
        group by task_id, kind, item
      ) w
      where d.organization_id = ${organization} and d.task_id = w.task_id and d.kind = w.kind and d.item = w.item
      returning d.task_id
    )
    insert into deletions_unsettled (organization_id, task_id) select distinct ${organization}, task_id from judged`
  )

/** The number of rows that others hold, and those that the database refused, with the first reason. */
interface Left {
  locked: number
  refused: Array<string>
  reason: string | null
}

/**
 * Marks the rows that the facts of tasks name, and takes away the marks of those that were undone: lines after their invoice,
 * which another task may hold, so that both have one time. Undefined if this is for an attempt, and another one has its task.
 */
export const apply = Effect.fnUntraced(function* (
  sql: Database,
  { ids, organization }: Tasks,
  attempt: Effect.Effect<Fragment> = Effect.succeed(sql`null, null, null`)
): Effect.fn.Return<Left | undefined, SqlError> {
  const left: Left = { locked: 0, refused: [], reason: null }
  for (const table of ["invoices", "invoice_lines"] as const) {
    const found = yield* inMarking(
      sql,
      rows(sql`
        select coalesce(line, invoice) as id, coalesce(min(deleted_at) filter (where to_mark)::text, '') as time from deletion_work
        where organization_id = ${organization} and task_id = any (${ids}::uuid[]) and table_name = ${table}
          and (to_mark or to_unmark)
        group by 1`)
    )
    for (const some of Array.chunksOf(found, mostRows)) {
      const [rowIds, times] = [some.map(({ id }) => id), some.map(({ time }) => time)]
      const [change] = yield* changes(sql`
        select * from ${sql.literal(`mark_${table}`)}(
          ${organization}, ${rowIds}::text[], array_replace(${times}::text[], '', null)::timestamptz[], ${yield* attempt}
        )`)
      if (change === undefined || change.locked === null) return undefined
      left.locked += change.locked
      left.refused.push(...(change.refused ?? []))
      left.reason ??= change.reason
    }
  }
  return left
})
