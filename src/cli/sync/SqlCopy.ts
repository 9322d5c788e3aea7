/**
 * A copy in a SQL database: a table for each resource, and beside it one for changes that are staged. They are invisible
 * to readers of the copy until their round ends. One transaction then moves them into the tables. A table is made when its
 * first round ends.
 */
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

/** The columns of the rows of a resource, which another version of this package may have otherwise. */
const fieldsText = ({ columns }: Target.Table) => columns.map(({ name, type }) => `${name} ${type}`).join()

/** The committed state of the copy, and that of the pages staged after it. */
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

  const exists = (table: string) => Effect.map(columnsOf(table), (columns) => columns.length > 0)

  const create = (table: string, columns: Readonly<Record<string, string>>) => {
    const declared = Object.entries(columns).map(([name, type]) => `${quoteName(name)} ${type}`)
    return run(`create table if not exists ${quote(table)} (${declared.join(", ")})`)
  }

  const refuse = (reason: string) => refused(`The copy in ${databaseName} ${reason}, or choose another target.`)

  const notOurs = (table: string) =>
    refused(`The table ${table} in ${databaseName} exists, and practice-data did not create it. Choose another target.`)

  /** Makes the mark of the copy, or checks it. Returns the progress. */
  const takeMark = Effect.gen(function* () {
    const { organization, url } = options.origin
    const text = "text not null"
    if (!(yield* exists(markTable))) {
      yield* create(markTable, { organization: "text primary key", url: text, progress: text })
      yield* run(`insert into ${mark} values ($1, $2, '{"resources":[]}')`, [organization, url])
    }
    yield* create(resourcesTable, { resource: "text primary key", fields: text, in_step_at: instant })
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

  const columnTypes = ({ columns }: Target.Table) =>
    Object.fromEntries(columns.map((column) => [column.name, dialect.typeOf(column.type)]))

  /** Records the progress, if the copy is still at the one before. */
  const advance = Effect.fnUntraced(function* (before: Progress, after: Progress) {
    const texts = [yield* Effect.orDie(encodeProgress(after)), yield* Effect.orDie(encodeProgress(before))]
    const moved = yield* run(`update ${mark} set progress = $1 where progress = $2 returning url`, texts)
    if (moved.length > 0) return after
    return yield* refused(`Another process changed the copy in ${databaseName}. Run only one sync per copy.`)
  })

  /** Checks the tables of a resource, and makes that of its staged changes. True if they are as they were left. */
  const openTable = Effect.fnUntraced(function* (table: Target.Table, recorded: unknown, isCopied: boolean) {
    const [fields, staged] = [fieldsText(table), stagedTable(table)]
    const [isMade, isStaged] = [yield* exists(table.name), yield* exists(staged)]
    if (isMade && recorded === undefined) return yield* notOurs(table.name)
    if (isMade && recorded !== fields) {
      return yield* refuse(`has other fields of ${table.resource}: another version made it. Drop its tables`)
    }
    if (isStaged && (isMade || !isCopied) && recorded === fields) return true
    yield* run(
      `insert into ${resources} (resource, fields) values ($1, $2)
       on conflict (resource) do update set fields = excluded.fields, in_step_at = null`,
      [table.resource, fields]
    )
    yield* run(`drop table if exists ${quote(staged)}`)
    const removed = dialect.typeOf(isRemoved.type)
    yield* create(staged, { _position: dialect.position, ...columnTypes(table), [isRemoved.name]: removed })
    return false
  })

  /** Opens all tables. Keeps of the progress what they have. */
  const opened = Effect.gen(function* () {
    const taken = yield* takeMark
    const known = yield* run(`select resource, fields from ${resources}`)
    const recorded = new Map(known.map(({ fields, resource }) => [resource, fields]))
    const lost = new Set<string>()
    for (const table of options.tables) {
      const { resource } = table
      const isWhole = yield* openTable(table, recorded.get(resource), taken.resources.includes(resource))
      if (!isWhole) lost.add(resource)
    }
    const without = (state: Target.State) => ({
      ...state,
      resources: state.resources.filter((each) => !lost.has(each))
    })
    const { staged } = taken
    return yield* advance(taken, { ...without(taken), ...(staged && { staged: without(staged) }) })
  })
  const progress = yield* Ref.make(yield* transaction(opened))

  /** Fails as unavailable if a table is gone. It is made again when the target is opened. */
  const present = Effect.gen(function* () {
    const copied = (yield* Ref.get(progress)).resources
    const made = options.tables.filter(({ resource }) => copied.includes(resource)).map(({ name }) => name)
    for (const table of [markTable, resourcesTable, ...made]) {
      if (yield* exists(table)) continue
      return yield* new Unavailable({ message: `The table ${table} in ${databaseName} was dropped` })
    }
  })

  /** Moves the staged changes of a resource into its table. */
  const merge = Effect.fnUntraced(function* (table: Target.Table, now: string) {
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

  const apply = Effect.fnUntraced(function* (page: Target.ChangePage) {
    const before = yield* Ref.get(progress)
    const { staged, ...committed } = before
    const state = { cursor: page.cursor, resources: page.resources }
    const next = yield* advance(before, page.is_consistent ? state : { ...committed, staged: state })
    const changes = Map.groupBy(page.body, ({ resource }) => resource)
    const touched = options.tables.filter(({ resource }) => changes.has(resource))
    for (const table of touched) {
      const rows = yield* Effect.orDie(encodeRows(changes.get(table.resource)?.map(stagedRow)))
      yield* dialect.insert(stagedTable(table), [...table.columns, isRemoved], rows)
    }
    if (!page.is_consistent) return next
    const now = DateTime.formatIso(yield* DateTime.now)
    for (const table of staged === undefined ? touched : options.tables) yield* merge(table, now)
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
      return staged ?? committed
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
