/**
 * A copy in a SQL database: a table for each resource, and beside it one for changes that are staged. They are invisible
 * to readers of the copy until their round ends. One transaction then moves them into the tables. A table is made when its
 * first round ends.
 */
import { DateTime, Effect, Schema } from "effect"
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
  /** The statement that begins a transaction. A crash of the database may undo one that only stages changes, as a whole. */
  readonly begin: (isStaging: boolean) => string
  /** The beginning of the statement that empties a table. */
  readonly empty: string
  readonly run: (
    statement: string,
    params?: ReadonlyArray<string | number>
  ) => Effect.Effect<ReadonlyArray<Row>, Failed>
  /** The names of the columns of a table, each as `name`; none if there is nothing of this name. */
  readonly columnsOf: (table: string) => Effect.Effect<ReadonlyArray<Row>, Failed>
  readonly append: (
    table: string,
    columns: ReadonlyArray<Target.Column>,
    rows: ReadonlyArray<Row>
  ) => Effect.Effect<unknown, Failed>
  /** Makes a table of the copy of a staged one, without writing its rows again. False if an id has several, or a removal. */
  readonly adopt?: (staged: string, table: string, now: string) => Effect.Effect<boolean, Failed>
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

export const namesOf = (columns: ReadonlyArray<Target.Column>) => columns.map(({ name }) => quoteName(name)).join(", ")

/** The version of the tables beside those of the resources. */
const version = 2

/** A resource as it stands in the progress, with the shape of its rows. */
const markOf = ({ columns, resource }: Target.Table) => `${resource} ${Target.shapeOf(columns)}`

const resourceIn = (marked: string) => marked.replace(/ .*/, "")

/** The committed state of the copy, and that of the pages staged after it; each resource is marked by `markOf`. */
const Progress = Schema.fromJsonString(Schema.Struct({ ...Target.State.fields, staged: Schema.optional(Target.State) }))
type Progress = typeof Progress.Type

/** The row of the copy itself: its format and origin, and its progress. */
const Mark = Schema.Struct({
  format: Schema.Int,
  organization: Schema.String,
  url: Schema.String,
  progress: Progress
})

const decodeMark = Schema.decodeUnknownEffect(Mark)
const encodeProgress = Schema.encodeEffect(Progress)

const stagedRow = (change: Target.Change): Row => {
  if ("record" in change) return { ...change.record, [isRemoved.name]: false }
  return "removed" in change ? { id: change.removed, [isRemoved.name]: true } : {}
}

/** Takes a database, and makes or checks the tables of the copy, all or none of them. */
export const open = Effect.fnUntraced(function* (dialect: Dialect, options: Target.OpenOptions) {
  const { columnsOf, name: databaseName, quote, run } = dialect
  const [mark, resources] = [quote(markTable), quote(resourcesTable)]
  const instant = dialect.typeOf("timestamptz")

  const transaction = <A>(work: Effect.Effect<A, Failed>, isStaging = false) =>
    Effect.acquireUseRelease(
      run(dialect.begin(isStaging)),
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

  /** Makes the mark of the copy, or checks it. Returns the progress. */
  const takeMark = Effect.gen(function* () {
    const { organization, url } = options.origin
    const text = "text not null"
    const columns = { format: "integer primary key", organization: text, url: text, progress: "text" }
    const had = yield* ensure(markTable, columns)
    yield* ensure(resourcesTable, { resource: "text primary key", in_step_at: instant })
    if (had.size === 0) {
      yield* run(`insert into ${mark} values (${version}, $1, $2, '{"resources":[]}')`, [organization, url])
    }
    const [row] = yield* run(`select format, organization, url, progress from ${mark}`)
    const stored = yield* Effect.mapError(decodeMark(row), () =>
      Target.notOurs(`table ${markTable} in ${databaseName}`)
    )
    if (stored.format !== version) {
      return yield* refuse("was made by another version of practice-data. Use that version")
    }
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

  /** The resources whose tables are made when their first round ends. */
  const unmade = new Set<string>()

  const marks = new Map(options.tables.map((table) => [table.resource, markOf(table)]))

  const typesOf = ({ columns }: Target.Table) =>
    Object.fromEntries(columns.map((column) => [column.name, dialect.typeOf(column.type)]))

  const ensureTable = (table: Target.Table) =>
    ensure(table.name, { ...typesOf(table), id: "text primary key", _removed_at: instant, _synced_at: instant })

  const ensureStaged = (table: Target.Table) =>
    ensure(stagedTable(table), {
      _position: dialect.position,
      ...typesOf(table),
      [isRemoved.name]: dialect.typeOf(isRemoved.type)
    })

  /** Records the progress, if the copy is still at the one before. */
  const advance = Effect.fnUntraced(function* (before: Progress, after: Progress) {
    const texts = [yield* Effect.orDie(encodeProgress(after)), yield* Effect.orDie(encodeProgress(before))]
    const moved = yield* run(`update ${mark} set progress = $1 where progress = $2 returning format`, texts)
    if (moved.length > 0) return after
    return yield* refused(`Another process changed the copy in ${databaseName}. Run only one sync per copy.`)
  })

  /** Checks the tables of the resources, and makes those of their staged changes. Keeps of the progress what they have. */
  const opened = Effect.gen(function* () {
    const taken = yield* takeMark
    const ours = new Set((yield* run(`select resource from ${resources}`)).map(({ resource }) => resource))
    const changed = new Set<string>()
    for (const table of options.tables) {
      const { columns, name, resource } = table
      const isMade = (yield* columnsOf(name)).length > 0
      if (isMade && !ours.has(resource)) return yield* Target.notOurs(`table ${name} in ${databaseName}`)
      if (!isMade) unmade.add(resource)
      const had = isMade ? yield* ensureTable(table) : undefined
      const hadStaged = yield* ensureStaged(table)
      const isGone = !isMade && taken.resources.some((each) => resourceIn(each) === resource)
      if (isGone || !ours.has(resource)) {
        yield* run(
          `insert into ${resources} (resource) values ($1)
           on conflict (resource) do update set in_step_at = null`,
          [resource]
        )
        yield* run(`${dialect.empty} ${quote(stagedTable(table))}`)
      }
      const hasAll = columns.every((column) => had?.has(column.name) !== false && hadStaged.has(column.name))
      if (isGone || !hasAll) changed.add(resource)
    }
    // A package that knows other fields may have written the rows.
    const isWhole = (each: string) => !changed.has(resourceIn(each)) && each === (marks.get(resourceIn(each)) ?? each)
    const without = (state: Target.State) => ({ ...state, resources: state.resources.filter(isWhole) })
    const { staged } = taken
    return yield* advance(taken, { ...without(taken), ...(staged && { staged: without(staged) }) })
  })
  let progress = yield* transaction(opened)

  const present = Effect.gen(function* () {
    const made = options.tables.filter(({ resource }) => !unmade.has(resource))
    for (const table of [markTable, resourcesTable, ...made.map(({ name }) => name)]) {
      if ((yield* columnsOf(table)).length > 0) continue
      return yield* new Unavailable({ message: `The table ${table} in ${databaseName} was dropped` })
    }
  })

  /** Moves the staged changes of a resource into its table. */
  const merge = Effect.fnUntraced(function* (table: Target.Table, now: string) {
    const [copied, staged] = [quote(table.name), quote(stagedTable(table))]
    if (unmade.has(table.resource)) {
      if (dialect.adopt !== undefined && (yield* dialect.adopt(stagedTable(table), table.name, now))) {
        return yield* ensureStaged(table)
      }
      yield* ensureTable(table)
    }
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
    const names = namesOf(table.columns)
    const replaced = [...table.columns.slice(1).map(({ name }) => quoteName(name)), "_synced_at", "_removed_at"]
    yield* run(
      `insert into ${copied} (${names}, _synced_at) select ${names}, ${time} from ${latest} not _removed
       on conflict (id) do update set ${replaced.map((name) => `${name} = excluded.${name}`).join(", ")}`
    )
    return yield* run(`${dialect.empty} ${staged}`)
  })

  const apply = Effect.fnUntraced(function* (page: Target.ChangePage) {
    const state: Target.State = {
      cursor: page.cursor,
      resources: page.resources.map((each) => marks.get(each) ?? each)
    }
    const changes = Map.groupBy(page.body, ({ resource }) => resource)
    const { staged, ...committed } = progress
    const next = yield* advance(progress, page.is_consistent ? state : { ...committed, staged: state })
    const touched = options.tables.filter(({ resource }) => changes.has(resource))
    for (const table of touched) {
      const given = changes.get(table.resource) ?? []
      // A reset of a table that is not made yet takes effect at once, so that its staged records can be adopted.
      const from = unmade.has(table.resource) ? given.findLastIndex((change) => "reset" in change) + 1 : 0
      if (from > 0) yield* run(`${dialect.empty} ${quote(stagedTable(table))}`)
      const rows = given.slice(from).map(stagedRow)
      if (rows.length > 0) yield* dialect.append(stagedTable(table), [...table.columns, isRemoved], rows)
    }
    if (!page.is_consistent) return next
    const now = yield* DateTime.now
    for (const table of staged === undefined ? touched : options.tables) yield* merge(table, DateTime.formatIso(now))
    if (!page.has_more) {
      const inStep = page.resources.map((resource) => `'${resource}'`).join(", ")
      yield* run(
        `update ${resources} set in_step_at = cast('${DateTime.formatIso(page.requestedAt)}' as ${instant})
         where resource in (${inStep})`
      )
    }
    return next
  })

  /** Fails as unavailable if a table is gone. It is made again when the target is opened. */
  const orGone = <A>(work: Effect.Effect<A, Failed>) => Effect.tapErrorTag(work, "Refused", () => present)

  return {
    state: Effect.map(present, () => {
      const { cursor, resources: whole } = progress.staged ?? progress
      return { ...(cursor !== undefined && { cursor }), resources: whole.map(resourceIn) }
    }),
    apply: (page: Target.ChangePage) =>
      Effect.map(orGone(transaction(apply(page), !page.is_consistent)), (next) => {
        if (page.is_consistent) for (const resource of page.resources) unmade.delete(resource)
        progress = next
      })
  } satisfies Target.Copy
})
