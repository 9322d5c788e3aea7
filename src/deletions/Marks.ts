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

/** Rows of a table to be changed, and the times of their deletion by id; null where their mark is to be taken away. */
export interface Rows {
  readonly table: Table
  readonly ids: ReadonlyArray<string>
  readonly times: Readonly<Record<string, string | null>>
}

/** The result of a change of rows: the number of those that others hold, and the ids of those that the database refused. */
export interface Change extends Pick<Rows, "table"> {
  readonly locked: number
  readonly refused: ReadonlyArray<string>
  readonly reason: string | null
}

/** The rows that are changed at once: the triggers of a row take up to a millisecond. */
const mostRows = 1000

const rows = rowsOf(Schema.Struct({ id: Schema.String, time: Schema.NullOr(Schema.String) }))
const changes = rowsOf(
  Schema.Struct({
    locked: Schema.NullOr(Schema.Int),
    refused: Schema.NullOr(Schema.Array(Schema.String)),
    reason: Schema.NullOr(Schema.String)
  })
)

/** Runs statements in a transaction that looks rows up by their ids. */
export const inMarking = <A, E>(sql: Database, statements: Effect.Effect<A, E>) =>
  inTransaction(sql, Effect.andThen(sql`select deletion_settings()::text`, statements))

/** Notes that the facts of a task are to be applied again as open transactions end: see Sweep.ts. */
export const unsettle = (sql: Database, { organization, taskId }: TaskId) =>
  sql`insert into deletions_unsettled (organization_id, task_id) values (${organization}, ${taskId})`

/** Tasks of an organization. */
export interface Tasks {
  readonly organization: string
  readonly ids: ReadonlyArray<string>
}

/** The rows of a table that are to be marked, or whose mark is to be taken away, as the facts of tasks are now. */
export const left = Effect.fnUntraced(function* (sql: Database, { ids, organization }: Tasks, table: Table) {
  const found = yield* inMarking(
    sql,
    rows(sql`
      select coalesce(line, invoice) as id, min(deleted_at) filter (where to_mark)::text as time from deletion_work
      where organization_id = ${organization} and task_id = any (${ids}::uuid[]) and table_name = ${table}
        and (to_mark or to_unmark)
      group by 1`)
  )
  return Array.chunksOf(found, mostRows).map((some): Rows => ({
    table,
    ids: some.map(({ id }) => id),
    times: Object.fromEntries(some.map(({ id, time }) => [id, time]))
  }))
})

/** Changes rows in a transaction of its own; of an attempt, undefined if another one has its task. */
export const change = Effect.fnUntraced(function* (
  sql: Database,
  organization: string,
  { ids, table, times }: Rows,
  attempt?: Fragment
) {
  const some = sql`${table}, ${ids}::text[], ${sql.json(times)}::jsonb`
  const [changed] = yield* changes(
    attempt === undefined
      ? sql`select * from mark_rows(${organization}, ${some})`
      : sql`select * from mark_held(${attempt}, ${some})`
  )
  if (changed === undefined || changed.locked === null || changed.refused === null) return undefined
  return { table, locked: changed.locked, refused: changed.refused, reason: changed.reason } satisfies Change
})

export const countLocked = (some: ReadonlyArray<Change>) => Number.sumAll(some.map(({ locked }) => locked))

/**
 * Judges the facts of tasks whose row has come, by its mark if it has that of the fact. If a fact deletes from now on, a writer
 * of a line of its invoice may not have seen it, so its task is settled once more.
 */
export const judge = (sql: Database, { ids, organization }: Tasks) => sql`
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

/** Applies the facts of tasks to the rows that are there. Returns the number of rows that are left: others hold or refuse them. */
export const apply = Effect.fnUntraced(function* (sql: Database, some: Tasks) {
  yield* inMarking(sql, judge(sql, some))
  let count = 0
  for (const table of tables) {
    for (const part of yield* left(sql, some, table)) {
      const changed = yield* change(sql, some.organization, part)
      count += (changed?.locked ?? 0) + (changed?.refused.length ?? 0)
    }
  }
  return count
})
