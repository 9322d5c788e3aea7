/** A copy in a SQL database: a table for each resource, and tables that record the origin and the state of the copy. */
import { DateTime, Effect, Predicate, Schema } from "effect"
import type { AnyRecord } from "../../client/index.ts"
import { type Failed, Refused, Unavailable } from "../Usage.ts"
import type { Column, ColumnType, Table } from "./Table.ts"
import * as Target from "./Target.ts"

type Row = Readonly<Record<string, unknown>>

/** The differences between databases. Statements have parameters `$1`, `$2`, each once and in this order. */
export interface Dialect extends Target.Place {
  /** A table's name as it stands in a statement. */
  readonly quote: (table: string) => string
  readonly typeOf: (type: ColumnType) => string
  readonly run: (statement: string, params?: ReadonlyArray<unknown>) => Effect.Effect<ReadonlyArray<Row>, Failed>
  readonly transaction: <A>(work: Effect.Effect<A, Failed>) => Effect.Effect<A, Failed>
  /** The names of the columns of a table, each as `name`; none if there is nothing of this name. */
  readonly columnsOf: (table: string) => Effect.Effect<ReadonlyArray<Row>, Failed>
  /** Rows with a column `id`, of a parameter that is a list of ids as JSON. */
  readonly idsIn: (param: string) => string
  /** Inserts or replaces records, no two of which have the same id. */
  readonly upsert: (table: Table, records: ReadonlyArray<AnyRecord>) => Effect.Effect<unknown, Failed>
}

const markTable = "_practice_data_sync"
const statesTable = "_practice_data_sync_resources"
const seenTable = "_practice_data_sync_seen"

/** A name in quotes, which keep its capitals. */
export const quoteName = (name: string) => `"${name.replaceAll('"', '""')}"`

/** The names of columns, separated by commas. */
export const namesOf = (columns: ReadonlyArray<Column>) => columns.map(({ name }) => quoteName(name)).join(", ")

/** The clause of an insert that replaces a row with the same id. */
export const onConflict = ({ columns }: Table) => {
  const others = columns.filter(({ name }) => name !== "id").map(({ name }) => quoteName(name))
  return `on conflict (id) do update set ${others.map((name) => `${name} = excluded.${name}`).join(", ")}`
}

const listOf = (ids: Iterable<string>) => JSON.stringify([...ids])

const decodeMark = Schema.decodeUnknownEffect(
  Schema.Struct({ format: Schema.Int, organization: Schema.String, url: Schema.String })
)

/** Takes a database, and makes or checks the tables of the copy, all or none of them. */
export const open = Effect.fnUntraced(function* (dialect: Dialect, options: Target.OpenOptions) {
  const { columnsOf, elsewhere, name: databaseName, quote, run, transaction } = dialect
  const [mark, states, seen] = [quote(markTable), quote(statesTable), quote(seenTable)]
  const declare = ({ name, type }: Column) =>
    name === "id" ? "id text primary key" : `${quoteName(name)} ${dialect.typeOf(type)}`
  const forget = (table: Table) => run(`delete from ${seen} where resource = $1`, [table.resource])

  const takeMark = Effect.gen(function* () {
    const { organization, url } = options.origin
    if ((yield* columnsOf(markTable)).length === 0) {
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
    const message = `The table ${markTable} in ${databaseName} does not have what practice-data writes. Choose ${elsewhere}.`
    const found = yield* Effect.mapError(decodeMark(row), () => new Refused({ message }))
    yield* Target.checkMark(dialect, found, options)
    if (found.url !== url) yield* run(`update ${mark} set url = $1`, [url])
  })

  const readyTable = Effect.fnUntraced(function* (table: Table) {
    const { columns, name, resource } = table
    const isOurs = (yield* run(`select 1 as one from ${states} where resource = $1`, [resource])).length > 0
    const existing = new Set((yield* columnsOf(name)).map((column) => column["name"]))
    if (existing.size === 0) {
      yield* run(`create table ${quote(name)} (${columns.map(declare).join(", ")})`)
      yield* run(`delete from ${states} where resource = $1`, [resource])
      yield* forget(table)
      yield* run(`insert into ${states} values ($1, null, 0, null)`, [resource])
      return
    }
    if (!isOurs) return yield* Target.notOurs(`table ${name} in ${databaseName}`, dialect)
    const missing = columns.filter((column) => !existing.has(column.name))
    for (const column of missing) yield* run(`alter table ${quote(name)} add column ${declare(column)}`)
    if (missing.length > 0) {
      yield* forget(table)
      yield* run(`update ${states} set cursor = null, is_reload = 1 where resource = $1`, [resource])
    }
  })

  yield* transaction(Effect.andThen(takeMark, Effect.forEach(options.tables, readyTable, { discard: true })))

  /** Records the next state, if the copy is still at the one before. */
  const advance = Effect.fnUntraced(function* (table: Table, from: Target.State, to: Target.State, isInStep: boolean) {
    const inStepAt = isInStep ? DateTime.formatIso(yield* DateTime.now) : null
    const moved = yield* run(
      `update ${states} set cursor = $1, is_reload = $2, in_step_at = coalesce($3, in_step_at)
       where resource = $4 and cursor is not distinct from $5 returning resource`,
      [to.cursor ?? null, to.load === "again" ? 1 : 0, inStepAt, table.resource, from.cursor ?? null]
    )
    if (moved.length === 0) {
      return yield* new Refused({
        message: `Another process has changed the copy of ${table.resource} in ${databaseName}. Let only one keep it in step.`
      })
    }
  })

  /** Fails if a table is gone. It is made again when the target is opened. */
  const present = Effect.fnUntraced(function* (table: string) {
    if ((yield* columnsOf(table)).length > 0) return
    return yield* new Unavailable({ message: `The table ${table} in ${databaseName} is gone` })
  })

  const orGone = <A>({ name }: Table, work: Effect.Effect<A, Failed>) =>
    Effect.tapErrorTag(work, "Refused", () =>
      Effect.forEach([markTable, statesTable, seenTable, name], present, { discard: true })
    )

  const stateOf = Effect.fnUntraced(function* (table: Table): Effect.fn.Return<Target.State, Failed> {
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

  const apply = Effect.fnUntraced(function* (table: Table, state: Target.State, page: Target.Page) {
    const next = Target.after(state, page)
    const copied = quote(table.name)
    const isReload = state.load === "again"
    const latest = new Map(page.body.map((record) => [String(record["id"]), record]))
    yield* advance(table, state, next, Target.isInStep(next, page))
    if (page.removed.length > 0) {
      const ids = dialect.idsIn("$1")
      yield* run(`delete from ${copied} where id in (select id from ${ids})`, [listOf(page.removed)])
    }
    if (latest.size > 0) yield* dialect.upsert(table, [...latest.values()])
    if (isReload && latest.size > 0) {
      yield* run(`insert into ${seen} select $1, id from ${dialect.idsIn("$2")} where true on conflict do nothing`, [
        table.resource,
        listOf(latest.keys())
      ])
    }
    if (isReload && next.load === "done") {
      yield* run(
        `delete from ${copied} where not exists
           (select 1 from ${seen} seen where seen.resource = $1 and seen.id = ${copied}.id)`,
        [table.resource]
      )
      yield* forget(table)
    }
    return next
  })

  const copy: Target.Copy = {
    stateOf: (table) => orGone(table, stateOf(table)),
    apply: (table, state, page) => orGone(table, transaction(apply(table, state, page))),
    restart: (table, state) => {
      const restarted = Effect.andThen(advance(table, state, Target.reload, false), forget(table))
      return orGone(table, Effect.as(transaction(restarted), Target.reload))
    },
    finish: Effect.void
  }
  return copy
})
