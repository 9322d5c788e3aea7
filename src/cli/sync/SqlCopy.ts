/** A copy in a SQL database: a table for each resource, and tables that say what the copy is of and how far it is. */
import { Effect, Predicate, Schema } from "effect"
import type { Column, ColumnType, Table } from "./Table.ts"
import * as Target from "./Target.ts"

type Row = Readonly<Record<string, unknown>>

/** What databases do differently. Statements have parameters `$1`, `$2`, each once and in this order. */
export interface Dialect {
  /** What the database is called in messages. */
  readonly name: string
  /** How to name another place for the copy. */
  readonly elsewhere: string
  /** A table's name as it stands in a statement. */
  readonly quote: (table: string) => string
  readonly typeOf: (type: ColumnType) => string
  /** The expression of this moment. */
  readonly now: string
  readonly run: (
    statement: string,
    params?: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<Row>, Target.TargetError>
  readonly transaction: <A>(work: Effect.Effect<A, Target.TargetError>) => Effect.Effect<A, Target.TargetError>
  /** The names of the columns of a table; undefined if there is nothing of this name. */
  readonly columnsOf: (table: string) => Effect.Effect<ReadonlyArray<string> | undefined, Target.TargetError>
  /** Rows with a column `id`, of a parameter that is a list of ids as JSON. */
  readonly idsIn: (param: string) => string
  /** Inserts or replaces records, no two of which have the same id. */
  readonly upsert: (table: Table, records: ReadonlyArray<Target.SyncRecord>) => Effect.Effect<void, Target.TargetError>
}

const markTable = "_practice_data_sync"
const statesTable = "_practice_data_sync_resources"
const seenTable = "_practice_data_sync_seen"

/** A name in quotes, which keep its capitals. */
export const quoteName = (name: string) => `"${name.replaceAll('"', '""')}"`

/** The names of columns, separated by commas. */
export const namesOf = (columns: ReadonlyArray<Column>) => columns.map(({ name }) => quoteName(name)).join(", ")

/** What an insert does with a row whose id is there. */
export const onConflict = ({ columns }: Table) => {
  const others = columns.filter(({ name }) => name !== "id").map(({ name }) => quoteName(name))
  return `on conflict (id) do update set ${others.map((name) => `${name} = excluded.${name}`).join(", ")}`
}

const listOf = (ids: ReadonlyArray<string>) => JSON.stringify(ids)

const decodeMark = Schema.decodeUnknownEffect(
  Schema.Struct({ format: Schema.Int, organization: Schema.String, url: Schema.String })
)

const declare = (dialect: Dialect) => (column: Column) =>
  column.name === "id" ? "id text primary key" : `${quoteName(column.name)} ${dialect.typeOf(column.type)}`

/** Takes a database, and makes or checks the tables of the copy, all or none of them. */
export const open = Effect.fnUntraced(function* (dialect: Dialect, options: Target.OpenOptions) {
  const { elsewhere, name: databaseName, quote, run } = dialect
  const [mark, states, seen] = [quote(markTable), quote(statesTable), quote(seenTable)]

  const checkMark = Effect.gen(function* () {
    const { organization, url } = options.origin
    if ((yield* dialect.columnsOf(markTable)) === undefined) {
      const instant = dialect.typeOf("timestamptz")
      yield* run(`create table ${mark} (format integer not null, organization text not null, url text not null)`)
      yield* run(
        `create table ${states} (resource text primary key, cursor text, is_reload integer not null, in_step_at ${instant})`
      )
      yield* run(`create table ${seen} (resource text not null, id text not null, primary key (resource, id))`)
      yield* run(`insert into ${mark} values ($1, $2, $3)`, [Target.formatVersion, organization, url])
      return
    }
    const [row] = yield* run(`select format, organization, url from ${mark}`)
    const found = yield* Effect.mapError(
      decodeMark(row),
      () =>
        new Target.TargetRefused({
          message: `The table ${markTable} in ${databaseName} does not have what practice-data writes. Choose ${elsewhere}.`
        })
    )
    const refusal = Target.refusalOf(databaseName, found, options, elsewhere)
    if (refusal !== undefined) return yield* refusal
    if (found.url !== url) yield* run(`update ${mark} set url = $1`, [url])
  })

  const restart = (table: Table) =>
    Effect.andThen(
      run(`delete from ${seen} where resource = $1`, [table.resource]),
      run(`update ${states} set cursor = null, is_reload = 1 where resource = $1`, [table.resource])
    )

  const readyTable = Effect.fnUntraced(function* (table: Table) {
    const isOurs = (yield* run(`select 1 as one from ${states} where resource = $1`, [table.resource])).length > 0
    const existing = yield* dialect.columnsOf(table.name)
    if (existing !== undefined && !isOurs) {
      return yield* new Target.TargetRefused({
        message: `There is a table ${table.name} in ${databaseName} that practice-data has not made. Choose ${elsewhere}.`
      })
    }
    if (existing === undefined) {
      const columns = table.columns.map(declare(dialect)).join(", ")
      yield* run(`create table ${quote(table.name)} (${columns})`)
      yield* run(`delete from ${states} where resource = $1`, [table.resource])
      yield* run(`delete from ${seen} where resource = $1`, [table.resource])
      yield* run(`insert into ${states} values ($1, null, 0, null)`, [table.resource])
      return
    }
    const missing = table.columns.filter(({ name }) => !existing.includes(name))
    for (const column of missing) {
      yield* run(`alter table ${quote(table.name)} add column ${declare(dialect)(column)}`)
    }
    if (missing.length > 0) yield* restart(table)
  })

  yield* dialect.transaction(Effect.andThen(checkMark, Effect.forEach(options.tables, readyTable, { discard: true })))

  /** Notes how far the copy is, if it is still where it was left. */
  const advance = Effect.fnUntraced(function* (table: Table, from: Target.State, to: Target.State, isInStep = false) {
    const inStepAt = isInStep ? `, in_step_at = ${dialect.now}` : ""
    const moved = yield* run(
      `update ${states} set cursor = $1, is_reload = $2${inStepAt}
       where resource = $3 and cursor is not distinct from $4 returning resource`,
      [to.cursor ?? null, to.load === "again" ? 1 : 0, table.resource, from.cursor ?? null]
    )
    if (moved.length === 0) {
      return yield* new Target.TargetRefused({
        message: `Another process has changed the copy of ${table.resource} in ${databaseName}. Let only one keep it in step.`
      })
    }
  })

  /** Fails if a table is gone. It is made anew when the target is opened again. */
  const present = (...tables: ReadonlyArray<string>) =>
    Effect.forEach(
      tables,
      Effect.fnUntraced(function* (table) {
        if ((yield* dialect.columnsOf(table)) !== undefined) return
        return yield* new Target.TargetUnavailable({ message: `The table ${table} in ${databaseName} is gone` })
      }),
      { discard: true }
    )

  const orGone = <A>({ name }: Table, work: Effect.Effect<A, Target.TargetError>) =>
    Effect.tapErrorTag(work, "TargetRefused", () => present(markTable, statesTable, seenTable, name))

  const copy: Target.Copy = {
    stateOf: (table) =>
      orGone(
        table,
        Effect.gen(function* () {
          yield* present(table.name)
          const [row] = yield* run(`select cursor, is_reload, in_step_at from ${states} where resource = $1`, [
            table.resource
          ])
          const cursor = row?.["cursor"]
          return {
            cursor: Predicate.isString(cursor) ? cursor : undefined,
            load: row?.["is_reload"] === 1 ? "again" : Predicate.isNullish(row?.["in_step_at"]) ? "first" : "done"
          }
        })
      ),
    apply: (table, state, page) => {
      const next = Target.after(state, page)
      const latest = [...new Map(page.records.map((record) => [record.id, record])).values()]
      const copied = quote(table.name)
      const isReload = state.load === "again"
      const applied = dialect.transaction(
        Effect.gen(function* () {
          yield* advance(table, state, next, Target.isInStep(next, page))
          if (page.removed.length > 0) {
            yield* run(`delete from ${copied} where id in (select id from ${dialect.idsIn("$1")})`, [
              listOf(page.removed)
            ])
          }
          if (latest.length > 0) yield* dialect.upsert(table, latest)
          if (isReload && latest.length > 0) {
            yield* run(
              `insert into ${seen} select $1, id from ${dialect.idsIn("$2")} where true on conflict do nothing`,
              [table.resource, listOf(latest.map(({ id }) => id))]
            )
          }
          if (isReload && next.load === "done") {
            yield* run(
              `delete from ${copied} where not exists
                (select 1 from ${seen} seen where seen.resource = $1 and seen.id = ${copied}.id)`,
              [table.resource]
            )
            yield* run(`delete from ${seen} where resource = $1`, [table.resource])
          }
          return next
        })
      )
      return orGone(table, applied)
    },
    restart: (table, state) =>
      orGone(
        table,
        dialect.transaction(
          Effect.gen(function* () {
            const next: Target.State = { cursor: undefined, load: "again" }
            yield* advance(table, state, next)
            yield* run(`delete from ${seen} where resource = $1`, [table.resource])
            return next
          })
        )
      ),
    finish: Effect.void
  }
  return copy
})
