/**
 * The marks of rows that facts name. The views `deletion_rows` and `deletion_work` say which rows, and the function
 * `mark_rows` changes them: at most 1,000 at once, so that they hold them for a second at most.
 */
import { Array, Data, Effect, Schema, Struct } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { decodeRows } from "../database/Columns.ts"
import type { Database } from "../database/Database.ts"
import { inTransaction, safeReason } from "../database/SqlFailure.ts"
import { isPassing } from "./Retries.ts"

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
type Row = typeof Row.Type

/** The number of rows that others hold, and the ids of those whose change a trigger drops. Null: another attempt has the task. */
const Change = Schema.Struct({ locked: Schema.NullOr(Schema.Int), dropped: Schema.NullOr(Schema.Array(Schema.String)) })

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

/** The number of rows that others hold, and those that the database refused, each with its table, and the first reason. */
interface Left {
  readonly locked: number
  readonly refused: ReadonlyArray<string>
  readonly reason: string | null
}

const nothing: Left = { locked: 0, refused: [], reason: null }

const joined = (one: Left, another: Left): Left => ({
  locked: one.locked + another.locked,
  refused: [...one.refused, ...another.refused],
  reason: one.reason ?? another.reason
})

const refuse = (table: string, ids: ReadonlyArray<string>, reason: string): Left =>
  ids.length === 0 ? nothing : { locked: 0, refused: ids.map((id) => `${table} ${id}`), reason }

/** Another attempt has the task. */
export class Superseded extends Data.TaggedError("Superseded") {}

/**
 * Marks the rows that the facts of tasks name, and takes away the marks of those that were undone: lines after their invoice,
 * which another task may hold, so that both have one time. Rows that the database refuses are found by halving. Those that
 * were deleted before an attempt at a task are changed too, and keep their time.
 */
export const apply = Effect.fnUntraced(function* (
  sql: Database,
  { ids, organization }: Tasks,
  attempt?: Effect.Effect<Fragment>
) {
  const mark = Effect.fnUntraced(
    function* (table: string, some: ReadonlyArray<Row>): Effect.fn.Return<Left, SqlError | Superseded> {
      const [rowIds, times] = [some.map(({ id }) => id), some.map(({ time }) => time)]
      const [change] = yield* changes(sql`
        select * from mark_rows(
          ${organization}, ${table}, ${rowIds}::text[], array_replace(${times}::text[], '', null)::timestamptz[],
          ${attempt === undefined ? sql`null, null, null` : yield* attempt}
        )`)
      if (change?.locked == null) return yield* new Superseded()
      return { ...refuse(table, change.dropped ?? [], "A trigger dropped the change of a row"), locked: change.locked }
    },
    (marked, table, some) =>
      Effect.catchIf(
        marked,
        (error): error is SqlError => isSqlError(error) && !isPassing(error),
        (error) =>
          some.length > 1
            ? markEach(table, Array.split(some, 2))
            : Effect.succeed(refuse(table, Array.map(some, Struct.get("id")), safeReason(error)))
      )
  )

  const markEach = (
    table: string,
    parts: ReadonlyArray<ReadonlyArray<Row>>
  ): Effect.Effect<Left, SqlError | Superseded> =>
    Effect.map(
      Effect.forEach(parts, (part) => mark(table, part)),
      Array.reduce(nothing, joined)
    )

  const markAll = Effect.fnUntraced(function* (table: string) {
    const deletedBefore = sql`
        union
        select coalesce(line, invoice), min(deleted_at)::text from deletion_rows
        where organization_id = ${organization} and task_id = any (${ids}::uuid[]) and table_name = ${table}
          and holds and undone_at is null and is_next and is_deleted and row_updated_at < deleted_at
        group by 1`
    const found = yield* inMarking(
      sql,
      rows(sql`
        select coalesce(line, invoice) as id, coalesce(min(deleted_at) filter (where to_mark)::text, '') as time from deletion_work
        where organization_id = ${organization} and task_id = any (${ids}::uuid[]) and table_name = ${table}
          and (to_mark or to_unmark)
        group by 1 ${attempt === undefined ? sql`` : deletedBefore}`)
    )
    return yield* markEach(table, Array.chunksOf(found, mostRows))
  })

  return joined(yield* markAll("invoices"), yield* markAll("invoice_lines"))
})
