/**
 * A copy in a SQL database: a table for each resource, and beside it one for changes that are staged. They are invisible
 * to readers of the copy until their round ends. One transaction then moves them into the tables. A table is made when its
 * first round ends.
 */
import { hash } from "node:crypto"
import { DateTime, Effect, Ref, Schema, type Scope } from "effect"
import { type Failed, refused, Unavailable } from "../Usage.ts"
import type { Change, ChangePage, Column, ColumnType, Table } from "./Tables.ts"

type Row = Readonly<Record<string, unknown>>

/** The differences between databases. Statements have parameters `$1`, `$2`, each once and in this order. */
export interface Dialect {
  readonly quote: (table: string) => string
  readonly typeOf: (type: ColumnType) => string
  /** The type of a column that counts rows in their order. */
  readonly position: string
  /** The statement that begins a transaction of this process alone. */
  readonly begin: string
  /** The beginning of the statement that empties a table. */
  readonly empty: string
  readonly run: (
    statement: string,
    params?: ReadonlyArray<string | number>
  ) => Effect.Effect<ReadonlyArray<Row>, Failed>
  /** True if there is a table, or anything else, of this name. */
  readonly exists: (table: string) => Effect.Effect<boolean, Failed>
  /** Inserts a list of JSON objects, whose members are columns. */
  readonly insert: (table: string, columns: ReadonlyArray<Column>, rows: string) => Effect.Effect<unknown, Failed>
  /** Marks rows as removed in place of deleting them. */
  readonly softDelete: boolean
}

export interface OpenOptions {
  /** The organization whose copy the target has, or is to have. */
  readonly organization: string
  readonly tables: ReadonlyArray<Table>
}

const markTable = "_practice_data_sync"
const stagedTable = ({ name }: Table) => `_practice_data_sync_staged_${name}`

/** True for a staged removal. A reset has neither this nor an id. */
const isRemoved: Column = { name: "_removed", type: "boolean" }

/** Quotes keep the capitals of a name. */
export const quoteName = (name: string) => `"${name.replaceAll('"', '""')}"`

export const columnList = (columns: ReadonlyArray<Column>) => columns.map(({ name }) => quoteName(name)).join(", ")

/** The cursor of the copy, and that of the pages staged after it. */
const Progress = Schema.fromJsonString(
  Schema.Struct({ cursor: Schema.optional(Schema.String), staged: Schema.optional(Schema.String) })
)
type Progress = typeof Progress.Type

/** The row of the copy itself: its organization, a short text that differs for other columns of its rows, and its progress. */
const Mark = Schema.Struct({
  organization: Schema.String,
  columns: Schema.String,
  progress: Progress
})

const decodeMark = Schema.decodeUnknownEffect(Mark)
const encodeProgress = Schema.encodeEffect(Progress)
const encodeRows = Schema.encodeEffect(Schema.fromJsonString(Schema.Unknown))

const stagedRow = (change: Change): Row => {
  if ("record" in change) return { ...change.record, [isRemoved.name]: false }
  return "removed" in change ? { id: change.removed, [isRemoved.name]: true } : {}
}

/** Takes a database, and makes or checks the tables of the copy, all or none of them. */
const open = Effect.fnUntraced(function* (databaseName: string, dialect: Dialect, options: OpenOptions) {
  const { exists, quote, run } = dialect
  const mark = quote(markTable)
  const instant = dialect.typeOf("timestamptz")

  const transaction = <A>(work: Effect.Effect<A, Failed>) =>
    Effect.acquireUseRelease(
      run(dialect.begin),
      () => work,
      (_, exit) => (exit._tag === "Success" ? run("commit") : Effect.ignore(run("rollback")))
    )

  const create = (table: string, columns: Readonly<Record<string, string>>) => {
    const declared = Object.entries(columns).map(([name, type]) => `${quoteName(name)} ${type}`)
    return run(`create table if not exists ${quote(table)} (${declared.join(", ")})`)
  }

  const columnTypes = ({ columns }: Table) =>
    Object.fromEntries(columns.map((column) => [column.name, dialect.typeOf(column.type)]))

  const refuse = (reason: string) => refused(`The copy in ${databaseName} ${reason}, or choose another target.`)

  const notOurs = (table: string) =>
    refused(`The table ${table} in ${databaseName} exists, and practice-data did not create it. Choose another target.`)

  const { organization } = options
  const ownColumns = options.tables.flatMap(({ columns, name }) =>
    columns.map((column) => [name, column.name, column.type])
  )
  const columnsHash = hash("sha256", ownColumns.join()).slice(0, 8)

  const makeMark = Effect.gen(function* () {
    for (const { name } of options.tables) if (yield* exists(name)) return yield* notOurs(name)
    const text = "text not null"
    const columns = { organization: "text primary key", columns: text, progress: text, in_step_at: instant }
    yield* create(markTable, columns)
    const given = [organization, columnsHash]
    yield* run(`insert into ${mark} (organization, columns, progress) values ($1, $2, '{}')`, given)
  })

  /** Checks the mark of the copy. Returns the progress. */
  const checkMark = Effect.gen(function* () {
    const [row] = yield* run(`select * from ${mark}`)
    const stored = yield* Effect.mapError(decodeMark(row), () => notOurs(markTable))
    if (stored.organization !== organization) {
      return yield* refuse(
        `belongs to the organization ${stored.organization}, but the API key to ${organization}. Use a key of ${stored.organization}`
      )
    }
    if (stored.columns !== columnsHash) {
      return yield* refuse("has other columns, as another version made it. Drop its tables, and sync again")
    }
    return stored.progress
  })

  /** Records the progress, if the copy is still at the one before. */
  const advance = Effect.fnUntraced(function* (before: Progress, after: Progress) {
    const texts = [yield* Effect.orDie(encodeProgress(after)), yield* Effect.orDie(encodeProgress(before))]
    const moved = yield* run(`update ${mark} set progress = $1 where progress = $2 returning organization`, texts)
    if (moved.length > 0) return after
    return yield* refused(`Another process changed the copy in ${databaseName}. Run only one sync per copy.`)
  })

  /** The tables that are missing of a copy with this progress. */
  const missing = (at: Progress) => {
    const copied = at.cursor === undefined ? [] : options.tables.map(({ name }) => name)
    return Effect.filter([markTable, ...copied, ...options.tables.map(stagedTable)], (table) =>
      Effect.map(exists(table), (isThere) => !isThere)
    )
  }

  /** Opens the copy. One that lacks a table is loaded again. */
  const opened = Effect.gen(function* () {
    if (!(yield* exists(markTable))) yield* makeMark
    const taken = yield* checkMark
    if ((yield* missing(taken)).length === 0) return taken
    const removed = dialect.typeOf(isRemoved.type)
    for (const table of options.tables) {
      const staged = { _position: dialect.position, ...columnTypes(table), [isRemoved.name]: removed }
      yield* create(stagedTable(table), staged)
      yield* run(`${dialect.empty} ${quote(stagedTable(table))}`)
    }
    return yield* advance(taken, {})
  })
  const progress = yield* Ref.make(yield* transaction(opened))

  /** Fails as unavailable if a table is gone. It is made again when the target is opened. */
  const present = Effect.gen(function* () {
    const [table] = yield* missing(yield* Ref.get(progress))
    if (table === undefined) return
    return yield* new Unavailable({ message: `The table ${table} in ${databaseName} was dropped` })
  })

  /** Moves the staged changes of a resource into its table. */
  const merge = Effect.fnUntraced(function* (table: Table, now: string) {
    const own = { id: "text primary key", _removed_at: instant, _synced_at: instant }
    yield* create(table.name, { ...columnTypes(table), ...own })
    const [copied, staged] = [quote(table.name), quote(stagedTable(table))]
    const [row] = yield* run(`select coalesce(max(case when id is null then _position end), 0) as reset from ${staged}`)
    const reset = Number(row?.["reset"])
    const latest = `${staged} where _position in
      (select max(_position) from ${staged} where _position > ${reset} group by id) and`
    const gone =
      reset > 0
        ? `select id from ${copied} except select id from ${latest} not _removed`
        : `select id from ${latest} _removed`
    const time = `cast('${now}' as ${instant})`
    yield* run(
      dialect.softDelete
        ? `update ${copied} set _removed_at = ${time}, _synced_at = ${time} where _removed_at is null and id in (${gone})`
        : `delete from ${copied} where id in (${gone})`
    )
    const names = columnList(table.columns)
    const replaced = [...table.columns.slice(1).map(({ name }) => quoteName(name)), "_synced_at", "_removed_at"]
    yield* run(
      `insert into ${copied} (${names}, _synced_at) select ${names}, ${time} from ${latest} not _removed
       on conflict (id) do update set ${replaced.map((name) => `${name} = excluded.${name}`).join(", ")}`
    )
    yield* run(`${dialect.empty} ${staged}`)
  })

  const apply = Effect.fnUntraced(function* ({ body, cursor, has_more, is_consistent, requestedAt }: ChangePage) {
    const before = yield* Ref.get(progress)
    // Without a cursor, the copy is loaded: its own cursor has expired.
    const staged = cursor === undefined ? {} : { ...before, staged: cursor }
    const next = yield* advance(before, is_consistent ? { cursor } : staged)
    const changes = Map.groupBy(body, ({ resource }) => resource)
    const touched = options.tables.filter(({ resource }) => changes.has(resource))
    for (const table of touched) {
      const rows = yield* Effect.orDie(encodeRows(changes.get(table.resource)?.map(stagedRow)))
      yield* dialect.insert(stagedTable(table), [...table.columns, isRemoved], rows)
    }
    if (!is_consistent) return next
    const now = DateTime.formatIso(yield* DateTime.now)
    const isAlone = before.cursor !== undefined && before.staged === undefined
    for (const table of isAlone ? touched : options.tables) yield* merge(table, now)
    if (!has_more)
      yield* run(`update ${mark} set in_step_at = cast('${DateTime.formatIso(requestedAt)}' as ${instant})`)
    return next
  })

  return {
    /** The start of the next page. Undefined: the feed is to be read from the beginning. */
    cursor: Effect.gen(function* () {
      yield* present
      const { cursor, staged } = yield* Ref.get(progress)
      return staged ?? cursor
    }),
    /** Applies a page with its cursor, or nothing; fails if another process changed the copy. */
    apply: (page: ChangePage) =>
      transaction(apply(page)).pipe(
        Effect.tapErrorTag("Refused", () => present),
        Effect.flatMap((next) => Ref.set(progress, next))
      )
  }
})

export type Copy = Effect.Success<ReturnType<typeof open>>

/** The place of a copy. It survives a kill at any point. The dialect connects to its database until the scope closes. */
export const target = (name: string, dialect: Effect.Effect<Dialect, Failed, Scope.Scope>) => ({
  /** Its name in messages, without any secret. */
  name,
  open: (options: OpenOptions) => Effect.flatMap(dialect, (connected) => open(name, connected, options))
})

export type Target = ReturnType<typeof target>
