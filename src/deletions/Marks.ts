/**
 * The marks of rows that facts name. The views `deletion_rows` and `deletion_work` say which rows, and the function
 * `mark_rows` changes them: at most 1,000 of a table at once, so that it holds them for a second at most.
 */
import { Array, Effect, Number, Schema } from "effect"
import type { Fragment } from "effect/sql/Statement"
import { rowsOf } from "../database/Columns.ts"
import type { Database } from "../database/Database.ts"
import { inTransaction } from "../database/SqlFailure.ts"

export const TaskId = Schema.Struct({ organization: Schema.String, taskId: Schema.String })
export type TaskId = typeof TaskId.Type

export const kinds = ["invoice", "line"] as const
export type Kind = (typeof kinds)[number]

/** The tables whose rows are marked: lines after their invoice, which another task may hold, so that both have one time. */
export const tables = ["invoices", "invoice_lines"] as const
export type Table = (typeof tables)[number]

/** Rows of a table to be changed, and the time of their deletion; null if their marks are to be taken away. */
export interface Rows {
  readonly table: Table
  readonly ids: ReadonlyArray<string>
  readonly deletedAt: string | null
}

/** What became of rows: the number of those that others hold, and the ids of those that the database refused. */
export interface Change extends Pick<Rows, "table"> {
  readonly locked: number
  readonly refused: ReadonlyArray<string>
  readonly reason: string | null
}

/** The rows that are changed at once: the triggers of a row take up to a millisecond. */
const mostRows = 1000

const rows = rowsOf(Schema.Struct({ id: Schema.String, deletedAt: Schema.NullOr(Schema.String) }))
const changes = rowsOf(
  Schema.Struct({ locked: Schema.Int, refused: Schema.Array(Schema.String), reason: Schema.NullOr(Schema.String) })
)

/** Runs statements in a transaction that looks rows up by their ids. */
export const inMarking = <A, E>(sql: Database, statements: Effect.Effect<A, E>) =>
  inTransaction(sql, Effect.andThen(sql`select deletion_settings()::text`, statements))

/** Notes that the facts of a task are to be applied again as open transactions end: see Sweep.ts. */
export const unsettle = (sql: Database, { organization, taskId }: TaskId) =>
  sql`insert into deletions_unsettled (organization_id, task_id) values (${organization}, ${taskId})`

/** The rows of a table that are to be marked, or whose mark is to be taken away, as the facts of a task are now. */
export const left = Effect.fnUntraced(function* (sql: Database, { organization, taskId }: TaskId, table: Table) {
  const found = yield* inMarking(
    sql,
    rows(sql`
      select distinct coalesce(line, invoice) as id, case when to_mark then deleted_at::text end as "deletedAt"
      from deletion_work
      where organization_id = ${organization} and task_id = ${taskId}::uuid and table_name = ${table} and (to_mark or to_unmark)`)
  )
  return Object.values(Array.groupBy(found, ({ deletedAt }) => `${deletedAt}`)).flatMap((same) =>
    Array.chunksOf(same, mostRows).map((some): Rows => ({
      table,
      ids: some.map(({ id }) => id),
      deletedAt: some[0].deletedAt
    }))
  )
})

/** Changes rows in a transaction of its own, if a condition holds. Otherwise undefined. */
export const change = Effect.fnUntraced(function* (
  sql: Database,
  organization: string,
  { deletedAt, ids, table }: Rows,
  condition: Fragment
) {
  const [changed] = yield* changes(sql`
    select m.* from (select ${condition} as holds) c
    cross join lateral mark_rows(
      ${organization}, ${table}, case when holds then ${ids}::text[] end, ${deletedAt}::timestamptz
    ) m where holds`)
  return changed && ({ table, ...changed } satisfies Change)
})

export const countLocked = (some: ReadonlyArray<Change>) => Number.sumAll(some.map(({ locked }) => locked))

/**
 * Judges the facts of a task whose row has come, by its mark if it has that of the fact. If a fact deletes from now on, a
 * writer of a line of its invoice may not have seen it, so the task is settled once more.
 */
export const judge = Effect.fnUntraced(function* (sql: Database, task: TaskId) {
  const { organization, taskId } = task
  const judged = yield* sql`
    update deletions d set verdict = w.verdict
    from (
      select kind, item, max(case when is_deleted and row_deleted_at = deleted_at then 'deleted' else fits end) as verdict
      from deletion_work where organization_id = ${organization} and task_id = ${taskId}::uuid and to_judge
      group by kind, item
    ) w
    where d.organization_id = ${organization} and d.task_id = ${taskId}::uuid and d.kind = w.kind and d.item = w.item
    returning 1`
  if (judged.length > 0) yield* unsettle(sql, task)
})

/** Applies the facts of a task to the rows that are there. Returns the number of rows that are left: others hold or refuse them. */
export const apply = Effect.fnUntraced(function* (sql: Database, task: TaskId) {
  yield* inMarking(sql, judge(sql, task))
  let count = 0
  for (const table of tables) {
    for (const some of yield* left(sql, task, table)) {
      const changed = yield* change(sql, task.organization, some, sql`true`)
      count += (changed?.locked ?? 0) + (changed?.refused.length ?? 0)
    }
  }
  return count
})
