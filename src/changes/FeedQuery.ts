/** The statements that read a feed of changes. */
import { Array } from "effect"
import type { Constructor } from "effect/sql/Statement"
import { maximumChanges } from "../api/records/Requests.ts"
import type { Resource } from "../api/records/Resource.ts"
import { bytesOf } from "../database/Columns.ts"
import type { Query } from "../keys/OrganizationReads.ts"
import { type ChangeRow, type FeedDefinition, removalMark } from "./FeedDefinition.ts"
import { lowestEnded, maximumRunning, rangesOf, type Snapshot, type Walk } from "./Walk.ts"

/** The SQL of the progress of a server: the members of a JSON object. */
export const progressMembers = `'base', change_base(), 'snapshot', pg_current_snapshot()::text,
  'inFlight', change_in_flight(), 'isStandby', pg_is_in_recovery()`

/** The SQL of the snapshot of a feed: one row, JSON. With the mark of a cursor, `$4`, the state of the feed is in it. */
const snapshotText = ({ orderTable, resources }: FeedDefinition, isMarked: boolean) => {
  const tables = [...new Set([orderTable, ...resources.map(({ table }) => table)])]
  const listed = (textOf: (table: string) => string) => tables.map(textOf).join(", ")
  const state = `, 'state', json_build_object(
    'isInPlace', coalesce(f.is_in_place, false),
    'isMarked', coalesce(
      pg_is_in_recovery() and n.token is not null
        or (n.timeline = change_timeline() and n.started_at = pg_postmaster_start_time()),
      false),
    'proven', m.proven, 'durableUntil', change_wal(m.durable_until))`
  return `
    select json_build_object(${progressMembers}, 'tokens', coalesce(f.tokens, '{}'),
      'mark', coalesce(n.token, ''), 'marked', coalesce(n.proven, 0), 'keptFrom', coalesce(n.kept_from, 0),
      'run', concat_ws('|', pg_postmaster_start_time(),
        -- Of a standby, also the connection to its primary, which may be started again.
        case when pg_is_in_recovery() then (select pid from pg_stat_get_wal_receiver()) end,
        ${listed((table) => `pg_relation_filepath('${table}')`)}),
      'wal', change_wal(case
        when not pg_is_in_recovery() then pg_current_wal_flush_lsn()
        when pg_last_wal_receive_lsn() >= pg_last_wal_replay_lsn() then pg_last_wal_receive_lsn()
        -- From an archive, or after a start. What a record did is seen before it counts as replayed.
        else pg_last_wal_replay_lsn() + 16777216 end),
      'organization', $1::text${isMarked ? state : ""})::text
    from (
      select json_object_agg(table_name, token) as tokens, bool_and(place = change_place(table_name)) as is_in_place
      from change_feeds where table_name in (${listed((table) => `'${table}'`)})
    ) f left join lateral (
      select token, proven, kept_from, timeline, started_at from change_marks order by timeline desc limit 1
    ) n on true${isMarked ? " left join change_marks m on m.token = $4" : ""}`
}

/** The ranges of walks as a JSON text. Each has the tables whose records and removals are read in it. */
export const rangesText = ({ resources }: FeedDefinition, walks: ReadonlyArray<Walk>): string =>
  JSON.stringify(
    walks.flatMap((walk) => {
      const read = resources.flatMap(({ name, table }, index) =>
        name in walk.feeds ? [{ table, bit: 2 ** index }] : []
      )
      const tables = read.reduce((sum, { bit }) => sum + bit, 0)
      const removed = read.map(({ table }) => table)
      return rangesOf(walk).map(({ isLoad, ...range }) => ({ ...range, tables, removed: isLoad ? [] : removed }))
    })
  )

// In the snapshot of the page: another server, or a later moment, may have another answer. Not `exists`, for which a plan
// may read all records of the owner.
const existingIn = ({ table }: Resource) => `(select '+' from ${table} e where e.organization_id = $1 and e.id = c.id)`

/** The values of a query of changes: the number of rows, the ranges as `rangesText` makes them, and the mark of a cursor. */
type Values = readonly [rows: string, ranges: string, mark?: string]

/**
 * The query of the first changes, in the order of the ranges. Each table is read in the
 * order of an index, and merged as it is read. A standby, and a server with very many running transactions, is read below
 * its horizon. A transaction that is still running is passed over. The `removal` of the first row, which has no `position`,
 * is the snapshot.
 *
 * @param isMarked there is the mark of a cursor
 */
export const makeChangesQuery = (definition: FeedDefinition, isMarked: boolean) => {
  const { resources } = definition
  // The plan is made for the largest page. A smaller one stops earlier: with a text for each limit, those that a connection
  // keeps prepared would take 100 MB.
  const bounds = `limit ${maximumChanges + 1}`
  // Hidden from the planner, which would plan anew for each value.
  const stop = "limit (select $2::bigint)"
  const [only] = resources.length === 1 ? resources : []
  const also = (column: string) => (only === undefined ? `, ${column}` : "")
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
  const existing =
    only === undefined
      ? `case c.branch ${resources
          .map((resource) => `when '${resource.table}${removalMark}' then ${existingIn(resource)}`)
          .join(" ")} end`
      : existingIn(only)
  const text = `
      select null::bpchar as record, s.text as removal, null::float8 as position${also("null::text as branch")}
      from (${snapshotText(definition, isMarked)}) s (text)
      union all
      select ${bytesOf("c.record")}, case when c.record is null then coalesce(${existing}, '-') || c.id end,
        c.change_position::float8${also("c.branch")}
      from (select c.* from (
        select g.position, g.id, g.branch, g.tables, g.removed,
          case when b.is_held_back then least(g.high, change_horizon()) else g.high end as high
        from (
          select pg_is_in_recovery()
            or (select count(*) from pg_snapshot_xip(pg_current_snapshot())) > ${maximumRunning}
        ) b (is_held_back), json_to_recordset($3::json)
          as g (position bigint, id text, branch text, high bigint, tables bigint, removed text[])
        where g.high > g.position + 1 or case
          when g.position < change_horizon() then true
          else pg_visible_in_snapshot((g.position - change_base())::text::xid8, pg_current_snapshot()) end
      ) r cross join lateral (
        ${branches} order by change_position, id${also("branch")} ${bounds}
      ) c ${stop}) c`
  const columns = ["record", "removal", "position", ...(only === undefined ? ["branch" as const] : [])] as const
  return (limit: number, values: Values): Query<ChangeRow> => ({ text, columns, values, limit, isPlannedOnce: true })
}

/** The changes that a reader who waits has seen. */
export interface Seen {
  readonly organization: string
  readonly tables: ReadonlyArray<string>
  /** The transactions of which there is nothing more. */
  readonly snapshot: Snapshot
}

/** The indexes of the readers with a change in a transaction that ended since they read, or began after. */
export const wokenQuery = (sql: Constructor, readers: ReadonlyArray<Seen>, now: Snapshot) => {
  const tables = Array.dedupe(readers.flatMap((reader) => reader.tables)).toSorted()
  const bitsOf = (reader: Seen) => reader.tables.reduce((sum, table) => sum + 2 ** tables.indexOf(table), 0)
  const isNew = sql`t.organization_id = w.organization and t.change_position >= w.lowest and t.change_position < ${now.next}`
  const hasChanges = tables.map(
    (table, index) => sql`(w.tables & ${2 ** index}::bigint <> 0 and (
      exists (select from ${sql.literal(table)} t where ${isNew})
      or exists (select from removals t where ${isNew} and t.table_name = ${table})))`
  )
  return sql`
    select (w.number - 1)::int as index
    from unnest(
      ${readers.map(({ organization }) => organization)}::text[],
      ${readers.map(({ snapshot }) => lowestEnded(snapshot, now))}::bigint[],
      ${readers.map(bitsOf)}::bigint[]
    ) with ordinality as w (organization, lowest, tables, number)
    where ${sql.or(hasChanges)}`
}
