/**
 * A copy in a SQL database: a table for each resource, and beside it one for changes that are staged. They are invisible
 * to readers of the copy until their round ends. One transaction then moves them into the tables. A table is made when its
 * first round ends.
 */
import { hash } from "node:crypto"
import { DateTime, Effect, Ref, Schema, type Scope } from "effect"
import { type Failed, refused, Unavailable } from "../Usage.ts"
import * as Target from "./Target.ts"

type Row = Readonly<Record<string, unknown>>

/** The differences between databases. Statements have parameters `$1`, `$2`, each once and in this order. */
export interface Dialect {
  readonly name: string
  readonly quote: (table: string) => string
  readonly typeOf: (type: Target.ColumnType) => string
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
  /** The names of the columns of a table, each as `name`; none if there is nothing of this name. */
  readonly columnsOf: (table: string) => Effect.Effect<ReadonlyArray<Row>, Failed>
  /** Inserts a list of JSON objects, whose members are columns. */
  readonly insert: (
    table: string,
    columns: ReadonlyArray<Target.Column>,
    rows: string
  ) => Effect.Effect<unknown, Failed>
  /** Marks rows as removed in place of deleting them. */
  readonly softDelete: boolean
}

const markTable = "_practice_data_sync"
const resourcesTable = "_practice_data_sync_resources"
const stagedTable = ({ name }: Target.Table) => `_practice_data_sync_staged_${name}`

/** Of a staged change: true for a removal. A reset has neither this nor an id. */
const isRemoved: Target.Column = { name: "_removed", type: "boolean" }

/** Quotes keep the capitals of a name. */
export const quoteName = (name: string) => `"${name.replaceAll('"', '""')}"`

export const columnList = (columns: ReadonlyArray<Target.Column>) =>
  columns.map(({ name }) => quoteName(name)).join(", ")

/** A resource as it stands in the progress, with a short text that differs for other columns of its rows. */
const markedResource = ({ columns, resource }: Target.Table) =>
  `${resource} ${hash("sha256", columns.map(({ name, type }) => `${name} ${type}`).join()).slice(0, 8)}`

const resourceIn = (marked: string) => marked.replace(/ .*/, "")

/** The committed state of the copy, and that of the pages staged after it; each resource is marked by `markedResource`. */
const Progress = Schema.fromJsonString(Schema.Struct({ ...Target.State.fields, staged: Schema.optional(Target.State) }))
type Progress = typeof Progress.Type

/** The row of the copy itself: its origin, and its progress. */
const Mark = Schema.Struct({ organization: Schema.String, url: Schema.String, progress: Progress })

const decodeMark = Schema.decodeUnknownEffect(Mark)
const encodeProgress = Schema.encodeEffect(Progress)
const encodeRows = Schema.encodeEffect(Schema.fromJsonString(Schema.Unknown))

const stagedRow = (change: Target.Change): Row => {
  if ("record" in change) return { ...change.record, [isRemoved.name]: false }
  return "removed" in change ? { id: change.removed, [isRemoved.name]: true } : {}
}

/** Takes a database, and makes or checks the tables of the copy, all or none of them. */
const open = Effect.fnUntraced(function* (dialect: Dialect, options: Target.OpenOptions) {
  const { columnsOf, name: databaseName, quote, run } = dialect
  const [mark, resources] = [quote(markTable), quote(resourcesTable)]
  const instant = dialect.typeOf("timestamptz")

  const transaction = <A>(work: Effect.Effect<A, Failed>) =>
    Effect.acquireUseRelease(
      run(dialect.begin),
      () => work,
      (_, exit) => (exit._tag === "Success" ? run("commit") : Effect.ignore(run("rollback")))
    )

  /** Makes a table, or adds the columns that it lacks. Returns the names of those that it had. */
  const ensure = Effect.fnUntraced(function* (table: string, columns: Readonly<Record<string, string>>) {
    const had = new Set((yield* columnsOf(table)).map(({ name }) => name))
    const missing = Object.entries(columns).filter(([name]) => !had.has(name))
    const declared = missing.map(([name, type]) => `${quoteName(name)} ${type}`)
    if (had.size === 0) yield* run(`create table ${quote(table)} (${declared.join(", ")})`)
    else for (const column of declared) yield* run(`alter table ${quote(table)} add column ${column}`)
    return had
  })

  const refuse = (reason: string) => refused(`The copy in ${databaseName} ${reason}, or choose another target.`)

  const notOurs = (table: string) =>
    refused(`The table ${table} in ${databaseName} exists, and practice-data did not create it. Choose another target.`)

  /** Makes the mark of the copy, or checks it. Returns the progress. */
  const takeMark = Effect.gen(function* () {
    const { organization, url } = options.origin
    const text = "text not null"
    const had = yield* ensure(markTable, { organization: "text primary key", url: text, progress: text })
    yield* ensure(resourcesTable, { resource: "text primary key", in_step_at: instant })
    if (had.size === 0) yield* run(`insert into ${mark} values ($1, $2, '{"resources":[]}')`, [organization, url])
    const [row] = yield* run(`select organization, url, progress from ${mark}`)
    const stored = yield* Effect.mapError(decodeMark(row), () => notOurs(markTable))
    if (stored.organization !== organization) {
      return yield* refuse(
        `belongs to the organization ${stored.organization}, but the API key to ${organization}. Use a key of ${stored.organization}`
      )
    }
    if (stored.url === url) return stored.progress
    if (!options.allowNewUrl) {
      return yield* refuse(
        `was made from ${stored.url}, but this is ${url}. If the service moved, run once with --allow-new-url`
      )
    }
    yield* run(`update ${mark} set url = $1`, [url])
    return stored.progress
  })

  const marks = new Map(options.tables.map((table) => [table.resource, markedResource(table)]))

  const columnTypes = ({ columns }: Target.Table) =>
    Object.fromEntries(columns.map((column) => [column.name, dialect.typeOf(column.type)]))

  const ensureTable = (table: Target.Table) =>
    ensure(table.name, { ...columnTypes(table), id: "text primary key", _removed_at: instant, _synced_at: instant })

  const ensureStaged = (table: Target.Table) =>
    ensure(stagedTable(table), {
      _position: dialect.position,
      ...columnTypes(table),
      [isRemoved.name]: dialect.typeOf(isRemoved.type)
    })

  /** Records the progress, if the copy is still at the one before. */
  const advance = Effect.fnUntraced(function* (before: Progress, after: Progress) {
    const texts = [yield* Effect.orDie(encodeProgress(after)), yield* Effect.orDie(encodeProgress(before))]
    const moved = yield* run(`update ${mark} set progress = $1 where progress = $2 returning url`, texts)
    if (moved.length > 0) return after
    return yield* refused(`Another process changed the copy in ${databaseName}. Run only one sync per copy.`)
  })

  /** Checks the tables of a resource, and makes that of its staged changes. True if they have all columns, as before. */
  const openTable = Effect.fnUntraced(function* (table: Target.Table, isOurs: boolean, isCopied: boolean) {
    const isMade = (yield* columnsOf(table.name)).length > 0
    if (isMade && !isOurs) return yield* notOurs(table.name)
    const had = isMade ? yield* ensureTable(table) : undefined
    const hadStaged = yield* ensureStaged(table)
    const isGone = isCopied && !isMade
    if (isGone || !isOurs) {
      yield* run(
        `insert into ${resources} (resource) values ($1) on conflict (resource) do update set in_step_at = null`,
        [table.resource]
      )
      yield* run(`${dialect.empty} ${quote(stagedTable(table))}`)
    }
    return !isGone && table.columns.every(({ name }) => had?.has(name) !== false && hadStaged.has(name))
  })

  /** Opens all tables. Keeps of the progress what they have. */
  const opened = Effect.gen(function* () {
    const taken = yield* takeMark
    const ours = new Set((yield* run(`select resource from ${resources}`)).map(({ resource }) => resource))
    const copied = new Set(taken.resources.map(resourceIn))
    const changed = new Set<string>()
    for (const table of options.tables) {
      const { resource } = table
      if (!(yield* openTable(table, ours.has(resource), copied.has(resource)))) changed.add(resource)
    }
    // A package that knows other fields may have written the rows.
    const isWhole = (each: string) => !changed.has(resourceIn(each)) && each === (marks.get(resourceIn(each)) ?? each)
    const without = (state: Target.State) => ({ ...state, resources: state.resources.filter(isWhole) })
    const { staged } = taken
    return yield* advance(taken, { ...without(taken), ...(staged && { staged: without(staged) }) })
  })
  const progress = yield* Ref.make(yield* transaction(opened))

  const isCopied = (at: Progress, { resource }: Target.Table) =>
    at.resources.some((each) => resourceIn(each) === resource)

  /** Fails as unavailable if a table is gone. It is made again when the target is opened. */
  const present = Effect.gen(function* () {
    const at = yield* Ref.get(progress)
    const made = options.tables.filter((table) => isCopied(at, table)).map(({ name }) => name)
    for (const table of [markTable, resourcesTable, ...made]) {
      if ((yield* columnsOf(table)).length > 0) continue
      return yield* new Unavailable({ message: `The table ${table} in ${databaseName} was dropped` })
    }
  })

  /** Moves the staged changes of a resource into its table. */
  const merge = Effect.fnUntraced(function* (table: Target.Table, now: string) {
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

  const apply = Effect.fnUntraced(function* (page: Target.ChangePage) {
    const before = yield* Ref.get(progress)
    const { staged, ...committed } = before
    const state = { cursor: page.cursor, resources: page.resources.map((each) => marks.get(each) ?? each) }
    const next = yield* advance(before, page.is_consistent ? state : { ...committed, staged: state })
    const changes = Map.groupBy(page.body, ({ resource }) => resource)
    const touched = options.tables.filter(({ resource }) => changes.has(resource))
    for (const table of touched) {
      const rows = yield* Effect.orDie(encodeRows(changes.get(table.resource)?.map(stagedRow)))
      yield* dialect.insert(stagedTable(table), [...table.columns, isRemoved], rows)
    }
    if (!page.is_consistent) return next
    const now = DateTime.formatIso(yield* DateTime.now)
    for (const table of staged === undefined ? touched : options.tables) {
      if (!isCopied(before, table)) yield* ensureTable(table)
      yield* merge(table, now)
    }
    if (!page.has_more) {
      const inStep = page.resources.map((resource) => `'${resource}'`).join(", ")
      const at = `cast('${DateTime.formatIso(page.requestedAt)}' as ${instant})`
      yield* run(`update ${resources} set in_step_at = ${at} where resource in (${inStep})`)
    }
    return next
  })

  return {
    state: Effect.gen(function* () {
      yield* present
      const { staged, ...committed } = yield* Ref.get(progress)
      const { cursor, resources: whole } = staged ?? committed
      return { ...(cursor !== undefined && { cursor }), resources: whole.map(resourceIn) }
    }),
    apply: (page: Target.ChangePage) =>
      transaction(apply(page)).pipe(
        Effect.tapErrorTag("Refused", () => present),
        Effect.flatMap((next) => Ref.set(progress, next))
      )
  } satisfies Target.Copy
})

/** The target of a database, whose dialect connects to it. */
export const target = (name: string, dialect: Effect.Effect<Dialect, Failed, Scope.Scope>): Target.Target => ({
  name,
  open: (options) => Effect.flatMap(dialect, (connected) => open(connected, options))
})
