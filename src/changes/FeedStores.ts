/** The stores that the feed of changes is read from: the tables of the records, by one statement, or rows in memory. */
import { Array, Effect, Schema } from "effect"
import { CurrentOrganization } from "../api/Authorization.ts"
import { ChangesNotServed, RecordStoreDown } from "../api/Errors.ts"
import { maximumChanges } from "../api/records/Requests.ts"
import type { Resource } from "../api/records/Resource.ts"
import type { Database } from "../database/Database.ts"
import { asBytes, type Json } from "../database/Columns.ts"
import type { Query, Reader } from "../database/OrganizationReads.ts"
import * as Tracing from "../observability/Tracing.ts"
import { FeedSnapshot } from "./Cursor.ts"
import * as Feed from "./Feed.ts"
import { type ChangeRow, orderTable, removalMark } from "./FeedPage.ts"
import { byPlace, isAfter, toRanges, type Walk } from "./Walk.ts"

/** The SQL of the snapshot of a feed: one row, JSON. `$4` is the mark of a cursor. */
const snapshotText = (resources: ReadonlyArray<Resource>) => {
  const tables = [...new Set([orderTable, ...resources.map(({ table }) => table)])]
  return `
    select json_build_object('base', change_base(), 'snapshot', pg_current_snapshot()::text,
      'tokens', coalesce(f.tokens, '{}'),
      'mark', coalesce(n.token, ''), 'marked', coalesce(n.proven, 0), 'keptFrom', coalesce(n.kept_from, 0),
      -- A standby has no marks of its own run, so its snapshot is refused.
      'wal', case when pg_is_in_recovery() then 0 else pg_current_wal_flush_lsn() - '0/0'::pg_lsn end,
      'organization', $1::text,
      'isInPlace', coalesce(f.is_in_place, false),
      'isMarked', coalesce(n.timeline = change_timeline() and n.started_at = pg_postmaster_start_time(), false),
      'proven', m.proven, 'durableUntil', m.durable_until - '0/0'::pg_lsn)::text
    from (
      select json_object_agg(table_name, token) as tokens,
        bool_and(place = concat_ws('/', s.scope, to_regclass(table_name)::oid)) as is_in_place
      from (select change_scope()) s (scope), change_feeds
      where table_name in (${tables.map((table) => `'${table}'`).join(", ")})
    ) f left join lateral (
      select token, proven, kept_from, timeline, started_at from change_marks order by timeline desc limit 1
    ) n on true left join change_marks m on m.token = $4`
}

/** The ranges of walks as a JSON text. Each has the tables whose records and removals are read in it. */
const rangesText = (resources: ReadonlyArray<Resource>, walks: ReadonlyArray<Walk>): string =>
  JSON.stringify(
    walks.flatMap((walk) => {
      const read = resources.flatMap(({ name, table }, index) =>
        name in walk.feeds ? [{ table, bit: 2 ** index }] : []
      )
      const tables = read.reduce((sum, { bit }) => sum + bit, 0)
      const removed = read.map(({ table }) => table)
      return toRanges(walk).map(({ isLoad, ...range }) => ({ ...range, tables, removed: isLoad ? [] : removed }))
    })
  )

// In the snapshot of the page: another server, or a later moment, may have another answer. Not `exists`, for which a plan
// may read all records of the owner.
const existingIn = ({ table }: Resource) => `(select '+' from ${table} e where e.organization_id = $1 and e.id = c.id)`

const decodeSnapshot = Schema.decodeEffect(Schema.fromJsonString(FeedSnapshot))

/** Decodes the rows of a query, whose first one has the snapshot. */
const decodeRows = ([first, ...rows]: ReadonlyArray<ChangeRow>) =>
  Effect.map(Effect.orDie(decodeSnapshot(first?.detail ?? "")), (snapshot) => ({ snapshot, rows }))

/**
 * The text of a query of the first changes, in the order of the ranges. Each table is read in the order of an index, and
 * merged as it is read. A transaction that is still running is passed over.
 */
const changesText = (resources: ReadonlyArray<Resource>) => {
  // The plan is made for the largest page. A smaller one stops earlier: with a text for each limit, those that a connection
  // keeps prepared would take 100 MB.
  const bounds = `limit ${maximumChanges + 1}`
  // Hidden from the planner, which would plan anew for each value.
  const stop = "limit (select $2::bigint)"
  /** The changes of a table in a range of an index, in the order of the changes. */
  const changesIn = (columns: string, table: string, branch: string, isIn: string) => `
      select ${columns}, t.id, t.change_position, ${branch} as branch from ${table} t
      where t.organization_id = $1 and ${isIn}
        and (t.change_position, t.id, ${branch}) > (r.position, r.id, r.branch) and t.change_position < r.high
      order by t.change_position, t.id ${bounds}`
  const removals = changesIn(
    "null::text as record",
    "removals",
    `(d.name || '${removalMark}') collate "C"`,
    "t.table_name = d.name"
  )
  const branches = [
    ...resources.map(
      ({ table }, index) =>
        `(${changesIn("t.record", table, `'${table}'::text collate "C"`, `r.tables & ${2 ** index} <> 0`)})`
    ),
    // Each table has a range of its own: a list of tables would be a filter on all removals.
    `(
      select t.* from unnest(r.removed) d (name) cross join lateral (select * from (${removals}) t ${stop}) t
      order by change_position, id, branch ${bounds}
    )`
  ].join(" union all ")
  const existing = resources.map((resource) => `when '${resource.table}${removalMark}' then ${existingIn(resource)}`)
  return `
      select null::bpchar as record, s.text as detail, 0::float8 as position, '' as branch
      from (${snapshotText(resources)}) s (text)
      union all
      select ${asBytes("c.record")}, case when c.record is null then coalesce(
          case c.branch ${existing.join(" ")} end, '-') || c.id end,
        c.change_position::float8, c.branch
      from (select c.* from (
        select g.* from json_to_recordset($3::json)
          as g (position bigint, id text, branch text, high bigint, tables bigint, removed text[])
        where g.high > g.position + 1 or case
          when g.position < change_horizon() then true
          else pg_visible_in_snapshot((g.position - change_base())::text::xid8, pg_current_snapshot()) end
      ) r cross join lateral (
        ${branches} order by change_position, id, branch ${bounds}
      ) c ${stop}) c`
}

/** Makes the queries of a feed: of at most `limit` changes and one more, with the state of the feed for the mark of a cursor. */
export const makeChangesQuery = (resources: ReadonlyArray<Resource>) => {
  const text = changesText(resources)
  return (walks: ReadonlyArray<Walk>, limit: number, mark: string): Query<ChangeRow> => ({
    text,
    values: [String(limit + 1), rangesText(resources, walks), mark],
    columns: ["record", "detail", "position", "branch"],
    limit,
    isPlannedOnce: true,
    isCostly: true
  })
}

// Made once: a stack trace costs more than the rest of the response.
const notServed = new ChangesNotServed()

/** The feed of the records in a database, which is a primary. */
export const databaseFeed = <E, R>(
  sql: Database,
  read: Reader<E, R>,
  resources: ReadonlyArray<Resource>,
  polls: Feed.Polls
) => {
  const query = makeChangesQuery(resources)

  /** Fails unless all records are on one server: a position in the order means nothing on another. */
  const requireSingle = Effect.gen(function* () {
    if (sql.distribution.isDistributed() !== false) yield* sql.distribution.refresh
    const isDistributed = sql.distribution.isDistributed()
    if (isDistributed === undefined) return yield* new RecordStoreDown()
    if (isDistributed) return yield* notServed
  })

  const feed = Feed.make(resources, {
    polls,
    read: (walks, limit, mark) => Effect.flatMap(read(query(walks, limit, mark)), decodeRows)
  })
  return Effect.fnUntraced(
    function* (request: Feed.ChangesRequest) {
      yield* requireSingle
      return yield* feed(request)
    },
    Tracing.spanned("Records.changes", {})
  )
}

/** All records were written by one transaction, and nothing has changed since. */
const position = 0

const token = "00000000"

interface StoredRow {
  readonly organization: string
  readonly id: string
  readonly record: Json
}

/** The feed of rows, by the name of their resource, which never change. */
export const memoryFeed = (
  resources: ReadonlyArray<Resource>,
  rows: ReadonlyMap<string, ReadonlyArray<StoredRow>>,
  polls: Feed.Polls
): Feed.Feed => {
  const changes = Array.sort(
    resources.flatMap(({ name, table: branch }) =>
      (rows.get(name) ?? []).map((row) => ({ ...row, position, branch, name, detail: null }))
    ),
    byPlace
  )
  const snapshot: Omit<FeedSnapshot, "organization"> = {
    base: 0,
    snapshot: "1:1:",
    tokens: Object.fromEntries([orderTable, ...resources.map(({ table }) => table)].map((table) => [table, token])),
    mark: token,
    marked: 0,
    keptFrom: 0,
    wal: 0,
    isInPlace: true,
    isMarked: true,
    proven: null,
    durableUntil: null
  }
  return Feed.make(resources, {
    polls,
    read: Effect.fnUntraced(function* (walks, limit) {
      const organization = yield* CurrentOrganization.id
      const read = walks.flatMap((walk) =>
        toRanges(walk).flatMap((range) =>
          changes.filter(
            (change) =>
              change.organization === organization &&
              change.name in walk.feeds &&
              position < range.high &&
              isAfter(change, range)
          )
        )
      )
      return { snapshot: { ...snapshot, organization }, rows: read.slice(0, limit + 1) }
    })
  })
}
