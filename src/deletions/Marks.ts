/**
 * The marks of rows that facts name. A statement changes at most 1,000 rows of a table, so that it holds them for a second at
 * most; it skips those that others hold, so that nobody waits. The views `deletion_rows` and `deletion_work` say which rows.
 */
import { Array, Effect, Number, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { rowsOf } from "../database/Columns.ts"
import type { Database } from "../database/Database.ts"
import { inTransaction, reasonOf } from "../database/SqlFailure.ts"
import { failureKind } from "./Retries.ts"

export const TaskId = Schema.Struct({ organization: Schema.String, taskId: Schema.String })
export type TaskId = typeof TaskId.Type

export const kinds = ["invoice", "line"] as const
export type Kind = (typeof kinds)[number]

/** The tables whose rows are marked: lines after their invoice, which another task may hold, so that both have one time. */
export const tables = ["invoices", "invoice_lines"] as const
export type Table = (typeof tables)[number]

/** A row to be changed, and the time of its deletion; null if its mark is to be taken away. */
const Row = Schema.Struct({
  table: Schema.Literals(tables),
  id: Schema.String,
  deletedAt: Schema.NullOr(Schema.String)
})
export type Row = typeof Row.Type

/** A row that the database did not change, though nobody holds it. */
export interface Refused {
  readonly row: Row
  readonly reason: string
}

/** The rows of a statement at most: the triggers of a row take up to a millisecond. */
export const mostRows = 1000

const rows = rowsOf(Row)
const changes = rowsOf(Schema.Struct({ id: Schema.String, isChanged: Schema.Boolean }))

/**
 * Settings of a transaction that marks rows. It looks rows up by their ids, however few or many the planner takes them for;
 * without the index by invoice, as in a first load, it reads the lines once. It keeps nobody waiting when its process is
 * paused. A mark has an `updated_at` of its own.
 */
export const settings = (sql: Database) => sql`
  select set_config('lock_timeout', '500ms', true), set_config('idle_in_transaction_session_timeout', '1s', true),
    set_config('enable_seqscan', 'off', true), set_config('enable_mergejoin', 'off', true),
    set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true),
    set_config('enable_hashjoin', case when to_regclass('invoice_lines_search_invoice') is null then 'on' else 'off' end, true),
    set_config('plan_cache_mode', 'force_generic_plan', true), set_config('practice_data.keep_times', 'on', true)`

/** Runs statements in a transaction with these settings. */
export const inMarking = <A, E>(sql: Database, statements: Effect.Effect<A, E>) =>
  inTransaction(sql, Effect.andThen(settings(sql), statements))

/** Notes that the facts of a task are to be applied again as open transactions end: see Sweep.ts. */
export const unsettle = (sql: Database, { organization, taskId }: TaskId) =>
  sql`insert into deletions_unsettled (organization_id, task_id) values (${organization}, ${taskId})`

/** The rows of a condition that a task deletes, and has not deleted yet: they may have been deleted before, by others. */
export const named = (sql: Database, { organization, taskId }: TaskId, condition: Fragment) =>
  rows(sql`
    select distinct table_name as table, coalesce(line, invoice) as id, deleted_at::text as "deletedAt" from deletion_rows
    where organization_id = ${organization} and task_id = ${taskId}::uuid and holds and undone_at is null
      and ${condition} and (not is_deleted or row_deleted_at is distinct from deleted_at)`)

/** The rows of a table that are to be marked, or whose mark is to be taken away, as the facts of a task are now. */
const left = (sql: Database, { organization, taskId }: TaskId, table: Table) =>
  rows(sql`
    select distinct table_name as table, coalesce(line, invoice) as id, case when to_mark then deleted_at::text end as "deletedAt"
    from deletion_work
    where organization_id = ${organization} and task_id = ${taskId}::uuid and table_name = ${table} and (to_mark or to_unmark)`)

/** Marks rows of a table, or takes their marks away. A row that was deleted before keeps its first time. */
const update = (
  sql: Database,
  organization: string,
  [{ deletedAt, table }]: Array.NonEmptyReadonlyArray<Row>,
  ids: ReadonlyArray<string>
) =>
  changes(sql`
    with free as materialized (
      select id from ${sql(table)} where organization_id = ${organization} and id = any (${ids}::text[])
      for no key update skip locked
    ),
    changed as (
      update ${sql(table)} t set
        is_deleted = ${deletedAt !== null},
        deleted_at = case when t.is_deleted and ${deletedAt !== null} then t.deleted_at else ${deletedAt}::timestamptz end,
        updated_at = greatest(
          now(), least(t.updated_at + interval '1 microsecond', timestamptz '9999-12-31 23:59:59.999999+00')
        )
      from free where t.organization_id = ${organization} and t.id = free.id
      returning t.id
    )
    select free.id, changed.id is not null as "isChanged" from free left join changed on changed.id = free.id`)

/** The rows that were not changed: the number that others hold, and those that the database refused. */
export interface Unchanged {
  readonly locked: number
  readonly refused: ReadonlyArray<Refused>
}

export const unchanged: Unchanged = { locked: 0, refused: [] }

export const together = (parts: ReadonlyArray<Unchanged>): Unchanged => ({
  locked: Number.sumAll(parts.map(({ locked }) => locked)),
  refused: parts.flatMap(({ refused }) => refused)
})

/** Rows by statement: of one table, all to be marked or all to be unmarked. */
const byStatement = (all: ReadonlyArray<Row>) =>
  Object.values(Array.groupBy(all, ({ deletedAt, table }) => `${table} ${deletedAt}`)).flatMap((same) =>
    Array.chunksOf(same, mostRows)
  )

/** Changes rows of a table. A trigger may drop the change of one that nobody holds. */
const changeSome = Effect.fnUntraced(function* (
  sql: Database,
  organization: string,
  some: Array.NonEmptyReadonlyArray<Row>
): Effect.fn.Return<Unchanged, SqlError> {
  const ids = some.map(({ id }) => id)
  const changed = yield* update(sql, organization, some, ids)
  const dropped = new Set(changed.flatMap(({ id, isChanged }) => (isChanged ? [] : [id])))
  return {
    locked: some.length - changed.length,
    refused: some
      .filter(({ id }) => dropped.has(id))
      .map((row) => ({ row, reason: "A trigger dropped the change of a row" }))
  }
})

/** Changes rows of a table, and finds those that the database refuses by halving. */
const bisect = (
  sql: Database,
  organization: string,
  some: Array.NonEmptyReadonlyArray<Row>
): Effect.Effect<Unchanged, SqlError> =>
  Effect.catchIf(inTransaction(sql, changeSome(sql, organization, some)), isRefused, (error) => {
    if (some.length === 1) return Effect.succeed({ locked: 0, refused: [{ row: some[0], reason: reasonOf(error) }] })
    const halves = Array.chunksOf(some, Math.ceil(some.length / 2))
    return Effect.map(
      Effect.forEach(halves, (half) => bisect(sql, organization, half)),
      together
    )
  })

const isRefused = (error: SqlError) => failureKind(error) === "permanent"

/**
 * Changes rows in a transaction of its own, by statements that get the change of rows. If the database refuses one, all is
 * done again, and the rows of each statement are halved until those that it refuses are found.
 */
export const changing = <A, R>(
  sql: Database,
  organization: string,
  statements: (change: (all: ReadonlyArray<Row>) => Effect.Effect<Unchanged, SqlError>) => Effect.Effect<A, SqlError, R>
) => {
  const changeBy = (some: typeof changeSome) => (all: ReadonlyArray<Row>) =>
    Effect.map(
      Effect.forEach(byStatement(all), (part) => some(sql, organization, part)),
      together
    )
  return Effect.catchIf(statements(changeBy(changeSome)), isRefused, () => statements(changeBy(bisect)))
}

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
    for (const some of byStatement(yield* inMarking(sql, left(sql, task, table)))) {
      const { locked, refused } = yield* changing(sql, task.organization, (change) => inMarking(sql, change(some)))
      count += locked + refused.length
    }
  }
  return count
})
