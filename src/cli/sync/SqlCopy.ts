/**
 * A copy in a SQL database: a table for each resource, and beside it one for changes that are staged. They are invisible
 * to readers of the copy until their round ends. One transaction then moves them into the tables. A table is made when its
 * first round ends.
 */
import { DateTime, Effect, Schema } from "effect"
import { type Failed, Refused, Unavailable } from "../Usage.ts"
import type { Column, ColumnType, Table } from "./Table.ts"
import * as Target from "./Target.ts"

type Row = Readonly<Record<string, unknown>>

/** The differences between databases. Statements have parameters `$1`, `$2`, each once and in this order. */
export interface Dialect extends Target.Place {
  /** A table's name as it stands in a statement. */
  readonly quote: (table: string) => string
  readonly typeOf: (type: ColumnType) => string
  /** The type of a column that counts rows in their order. */
  readonly position: string
  /** Begins a transaction. A crash of the database may undo one that only stages changes, as a whole. */
  readonly begin: (isStaging: boolean) => Effect.Effect<unknown, Failed>
  readonly run: (statement: string, params?: ReadonlyArray<unknown>) => Effect.Effect<ReadonlyArray<Row>, Failed>
  /** The names of the columns of a table, each as `name`; none if there is nothing of this name. */
  readonly columnsOf: (table: string) => Effect.Effect<ReadonlyArray<Row>, Failed>
  /** Appends rows of the API's values to a table. */
  readonly append: (
    table: string,
    columns: ReadonlyArray<Column>,
    rows: ReadonlyArray<Row>
  ) => Effect.Effect<unknown, Failed>
  /**
   * Makes a table of the copy of one that has a staged record for each id, and no removal, without writing the rows again.
   * Returns false if it has others, or cannot.
   *
   * @param isSoft true if the table marks removed rows
   */
  readonly adopt: (staged: string, table: string, isSoft: boolean, now: string) => Effect.Effect<boolean, Failed>
  /** Empties tables that had the changes of many pages. */
  readonly truncate: (tables: ReadonlyArray<string>) => Effect.Effect<unknown, Failed>
  /** Marks rows as removed in place of deleting them. */
  readonly softDelete: boolean
}

const markTable = "_practice_data_sync"
const resourcesTable = "_practice_data_sync_resources"
const stagedTable = ({ name }: Table) => `_practice_data_sync_staged_${name}`

/** Of a staged change: true for a removal. A reset has neither this nor an id. */
const isRemoved: Column = { name: "_removed", type: "boolean" }

/** Quotes keep the capitals of a name. */
export const quoteName = (name: string) => `"${name.replaceAll('"', '""')}"`

export const namesOf = (columns: ReadonlyArray<Column>) => columns.map(({ name }) => quoteName(name)).join(", ")

const Mark = Schema.Struct({ format: Schema.Int, organization: Schema.String, url: Schema.String })

/** The committed state of the copy, and that of the pages staged after it. */
const Progress = Schema.fromJsonString(Schema.Struct({ ...Target.State.fields, staged: Schema.optional(Target.State) }))
type Progress = typeof Progress.Type

const beginning = '{"resources":[]}'

const decodeMark = Schema.decodeUnknownEffect(Mark)
const decodeProgress = Schema.decodeUnknownEffect(Progress)
const encodeProgress = Schema.encodeEffect(Progress)

/** The row of a staged change. */
const rowOf = (change: Target.Change): Row => {
  if ("record" in change) return { ...change.record, [isRemoved.name]: false }
  return "removed" in change ? { id: change.removed, [isRemoved.name]: true } : {}
}

/** Takes a database, and makes or checks the tables of the copy, all or none of them. */
export const open = Effect.fnUntraced(function* (dialect: Dialect, options: Target.OpenOptions) {
  const { columnsOf, elsewhere, name: databaseName, quote, run, softDelete } = dialect
  const [mark, resources] = [quote(markTable), quote(resourcesTable)]
  const instant = dialect.typeOf("timestamptz")

  const transaction = <A>(work: Effect.Effect<A, Failed>, isStaging: boolean) =>
    Effect.acquireUseRelease(
      dialect.begin(isStaging),
      () => work,
      (_, exit) => (exit._tag === "Success" ? run("commit") : Effect.ignore(run("rollback")))
    )

  const damaged = () =>
    new Refused({
      message: `The table ${markTable} in ${databaseName} does not have what practice-data writes. Choose ${elsewhere}.`
    })

  /** Makes a table, or adds the columns that it lacks. Returns the names of those that it had. */
  const ensure = Effect.fnUntraced(function* (table: string, columns: Readonly<Record<string, string>>) {
    const had = new Set((yield* columnsOf(table)).map(({ name }) => name))
    const missing = Object.entries(columns).filter(([name]) => !had.has(name))
    const declared = missing.map(([name, type]) => `${quoteName(name)} ${type}`)
    if (had.size === 0) yield* run(`create table ${quote(table)} (${declared.join(", ")})`)
    else for (const column of declared) yield* run(`alter table ${quote(table)} add column ${column}`)
    return had
  })

  const takeMark = Effect.gen(function* () {
    const { organization, url } = options.origin
    const text = "text not null"
    const had = yield* ensure(markTable, {
      format: "integer not null",
      organization: text,
      url: text,
      progress: "text"
    })
    const version = "integer not null default 0"
    yield* ensure(resourcesTable, { resource: "text primary key", in_step_at: instant, version })
    if (had.size === 0) {
      const values = [Target.formatVersion, organization, url, beginning]
      yield* run(`insert into ${mark} values ($1, $2, $3, $4)`, values)
    }
    const [row] = yield* run(`select format, organization, url from ${mark}`)
    const found = yield* Effect.mapError(decodeMark(row), damaged)
    yield* Target.checkMark(dialect, found, options)
    if (found.url !== url) yield* run(`update ${mark} set url = $1`, [url])
    if (found.format === Target.formatVersion) return
    // Each resource had a cursor: everything is loaded again, over the rows.
    yield* run(`update ${mark} set format = ${Target.formatVersion}, progress = '${beginning}'`)
    yield* run(`drop table ${quote("_practice_data_sync_seen")}`)
    for (const column of ["cursor", "is_reload"]) yield* run(`alter table ${resources} drop column ${column}`)
  })

  /** The resources whose tables mark removed rows, or have rows that an earlier run has marked. */
  const marking = new Set<string>()

  /** The resources whose tables are made when their first round ends. */
  const unmade = new Set<string>()

  const typesOf = ({ columns }: Table) =>
    Object.fromEntries(columns.map((column) => [column.name, dialect.typeOf(column.type)]))

  const ensureTable = (table: Table) =>
    ensure(table.name, {
      ...typesOf(table),
      id: "text primary key",
      ...(softDelete && { _removed_at: instant }),
      _synced_at: instant
    })

  const ensureStaged = (table: Table) =>
    ensure(stagedTable(table), {
      _position: dialect.position,
      ...typesOf(table),
      [isRemoved.name]: dialect.typeOf(isRemoved.type)
    })

  /**
   * Checks the table of a resource, and makes the one of its staged changes. Returns true if they have what the copy's
   * state says.
   *
   * @param isLoaded true if the table was made
   */
  const readyTable = Effect.fnUntraced(function* (table: Table, isLoaded: boolean) {
    const { columns, name, resource } = table
    const isOurs = (yield* run(`select 1 as one from ${resources} where resource = $1`, [resource])).length > 0
    const isMade = (yield* columnsOf(name)).length > 0
    if (isMade && !isOurs) return yield* Target.notOurs(`table ${name} in ${databaseName}`, dialect)
    const had = isMade ? yield* ensureTable(table) : undefined
    const hadStaged = yield* ensureStaged(table)
    if (softDelete || had?.has("_removed_at") === true) marking.add(resource)
    if (!isMade) unmade.add(resource)
    const isGone = isLoaded && !isMade
    if (isGone || !isOurs) {
      yield* run(
        `insert into ${resources} (resource) values ($1)
         on conflict (resource) do update set in_step_at = null, version = ${resources}.version + 1`,
        [resource]
      )
      yield* run(`delete from ${quote(stagedTable(table))}`)
    }
    return !isGone && columns.every((column) => had?.has(column.name) !== false && hadStaged.has(column.name))
  })

  /** Records the progress, if the copy is still at the one before. */
  const advance = Effect.fnUntraced(function* (before: Progress, after: Progress) {
    const texts = [yield* Effect.orDie(encodeProgress(after)), yield* Effect.orDie(encodeProgress(before))]
    const moved = yield* run(`update ${mark} set progress = $1 where progress = $2 returning format`, texts)
    if (moved.length > 0) return after
    return yield* new Refused({
      message: `Another process has changed the copy in ${databaseName}. Let only one keep it in step.`
    })
  })

  const opened = Effect.gen(function* () {
    yield* takeMark
    const [row] = yield* run(`select progress from ${mark}`)
    const found = yield* Effect.mapError(decodeProgress(row?.["progress"]), damaged)
    const changed = new Set<string>()
    for (const table of options.tables) {
      if (!(yield* readyTable(table, found.resources.includes(table.resource)))) changed.add(table.resource)
    }
    const without = (state: Target.State) => ({
      ...state,
      resources: state.resources.filter((resource) => !changed.has(resource))
    })
    const { staged } = found
    return yield* advance(found, { ...without(found), ...(staged && { staged: without(staged) }) })
  })
  let progress = yield* transaction(opened, false)

  const present = Effect.gen(function* () {
    const made = options.tables.filter(({ resource }) => !unmade.has(resource))
    for (const table of [markTable, resourcesTable, ...made.map(({ name }) => name)]) {
      if ((yield* columnsOf(table)).length > 0) continue
      return yield* new Unavailable({ message: `The table ${table} in ${databaseName} is gone` })
    }
  })

  /** Fails as unavailable if a table is gone. It is made again when the target is opened. */
  const orGone = <A>(work: Effect.Effect<A, Failed>) => Effect.tapErrorTag(work, "Refused", () => present)

  /** Moves the staged changes of a resource into its table. */
  const merge = Effect.fnUntraced(function* (table: Table, now: string) {
    const [copied, staged] = [quote(table.name), quote(stagedTable(table))]
    const count = run(`update ${resources} set version = version + 1 where resource = $1`, [table.resource])
    if (unmade.has(table.resource)) {
      if (yield* dialect.adopt(stagedTable(table), table.name, softDelete, now)) {
        yield* ensureStaged(table)
        return yield* count
      }
      yield* ensureTable(table)
    }
    const [row] = yield* run(
      `select count(*) as changes, count(id) - count(distinct id) as superseded,
         coalesce(max(case when id is null then _position end), 0) as reset from ${staged}`
    )
    const [changes = 0, superseded, reset = 0] = [row?.["changes"], row?.["superseded"], row?.["reset"]].map(Number)
    if (changes === 0) return []
    const latest =
      superseded === 0
        ? `${staged} where _position > ${reset} and`
        : `${staged} join (select max(_position) as _position from ${staged}
             where _position > ${reset} group by id) latest using (_position) where`
    const isEmpty = (yield* run(`select 1 as one from ${copied} limit 1`)).length === 0
    const gone =
      reset > 0
        ? `select id from ${copied} except select id from ${latest} not _removed`
        : `select id from ${latest} _removed`
    if (!isEmpty && softDelete) {
      yield* run(
        `update ${copied} set _removed_at = cast($1 as ${instant}), _synced_at = cast($2 as ${instant})
         where _removed_at is null and id in (${gone})`,
        [now, now]
      )
    } else if (!isEmpty) yield* run(`delete from ${copied} where id in (${gone})`)
    const names = namesOf(table.columns)
    const replaced = [...table.columns.slice(1).map(({ name }) => quoteName(name)), "_synced_at"]
    const sets = replaced.map((name) => `${name} = excluded.${name}`)
    if (marking.has(table.resource)) sets.push("_removed_at = null")
    yield* run(
      `insert into ${copied} (${names}, _synced_at) select ${names}, cast($1 as ${instant}) from ${latest} not _removed
       ${isEmpty ? "" : `on conflict (id) do update set ${sets.join(", ")}`}`,
      [now]
    )
    return yield* count
  })

  const apply = Effect.fnUntraced(function* (page: Target.Page, wanted: ReadonlyArray<string>) {
    const state: Target.State = { cursor: page.cursor, resources: wanted }
    const changes = Map.groupBy(page.body, ({ resource }) => resource)
    const { staged, ...committed } = progress
    const isLast = Target.endsRound(page)
    const next = yield* advance(progress, isLast ? state : { ...committed, staged: state })
    const touched = options.tables.filter(({ resource }) => changes.has(resource))
    for (const table of touched) {
      const given = changes.get(table.resource) ?? []
      // A reset of a table that is not made yet takes effect at once.
      const from = unmade.has(table.resource) ? given.findLastIndex((change) => "reset" in change) + 1 : 0
      if (from > 0) yield* run(`delete from ${quote(stagedTable(table))}`)
      const rows = given.slice(from).map(rowOf)
      if (rows.length > 0) yield* dialect.append(stagedTable(table), [...table.columns, isRemoved], rows)
    }
    if (!isLast) return next
    const now = yield* DateTime.now
    const moved = staged === undefined ? touched : options.tables
    for (const table of moved) yield* merge(table, DateTime.formatIso(now))
    const tables = moved.map((table) => quote(stagedTable(table)))
    if (staged !== undefined) yield* dialect.truncate(tables)
    else for (const table of tables) yield* run(`delete from ${table}`)
    if (!page.has_more) {
      const inStep = wanted.map((resource) => `'${resource}'`).join(", ")
      const at = Target.inStepAt(page, now)
      yield* run(`update ${resources} set in_step_at = cast($1 as ${instant}) where resource in (${inStep})`, [at])
    }
    return next
  })

  const copy: Target.Copy = {
    state: orGone(Effect.map(present, () => progress.staged ?? progress)),
    apply: (page, wanted) =>
      Effect.map(orGone(transaction(apply(page, wanted), !Target.endsRound(page))), (next) => {
        if (Target.endsRound(page)) for (const resource of wanted) unmade.delete(resource)
        progress = next
      }),
    finish: Effect.void
  }
  return copy
})
