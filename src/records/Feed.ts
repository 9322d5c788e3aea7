/** The state of a feed of changes on the server that reads it, and what it makes of a cursor. */
import { Data, Schema } from "effect"
import type { Constructor, Fragment } from "effect/sql/Statement"
import type { Resource } from "../api/records/Resource.ts"
import type { Page } from "./ChangesPage.ts"
import { type Cursor, start } from "./Cursor.ts"

/** What each page of a feed is read with: little to ask of the database. */
export interface Glance {
  readonly token: string
  /** The token of the newest mark; empty where there is none. */
  readonly mark: string
  readonly isStandby: boolean
  /** All of it that tells one table on one run of one server from another, tokens included. */
  readonly key: string
  /** All changes below it are complete. */
  readonly horizon: number
  /** No change that the snapshot sees is at or above it. */
  readonly ceiling: number
  /** How many transactions have an id at or above the ceiling. */
  readonly inFlight: number
  /** The byte of the write-ahead log before which everything lies that the snapshot sees. */
  readonly wal: number
  readonly organization: string
}

/** The glance of a text that `glanceQuery` made. */
export const glanceOf = (text: string): Glance => {
  const parts = text.split("|")
  const [token = "", mark = "", recovery, , , base, snapshot = "", inFlight, wal] = parts
  const [lowest, next] = snapshot.split(":")
  return {
    token,
    mark,
    isStandby: recovery === "t",
    key: parts.slice(0, 5).join("|"),
    horizon: Number(base) + Number(lowest),
    ceiling: Number(base) + Number(next),
    inFlight: Number(inFlight),
    wal: Number(wal),
    organization: parts.slice(9).join("|")
  }
}

const glance = (sql: Constructor, owner: Fragment, name: Fragment) => sql`
  concat_ws('|', f.token, coalesce((select token from change_marks order by timeline desc limit 1), ''),
    pg_is_in_recovery(), pg_relation_filepath(${name}), pg_postmaster_start_time(), change_base(), pg_current_snapshot(),
    change_in_flight(),
    change_wal(case
      when not pg_is_in_recovery() then pg_current_wal_flush_lsn()
      when pg_last_wal_receive_lsn() >= pg_last_wal_replay_lsn() then pg_last_wal_receive_lsn()
      -- From an archive. What a record did is seen before it counts as replayed.
      else pg_last_wal_replay_lsn() + 16777216 end),
    ${owner}::text)`

/** The SQL of a glance at a resource's feed, for an owner: a row with its text. */
export const glanceQuery = (sql: Constructor, owner: Fragment, { table }: Resource) => {
  const name = sql.literal(`'${table}'`)
  return sql`select ${glance(sql, owner, name)} from change_feeds f where f.table_name = ${name}`
}

/** A feed as the snapshot of a statement sees it. */
export const State = Schema.Struct({
  glance: Schema.String,
  /** Whether the table is where the order began. */
  isInPlace: Schema.Boolean,
  /** True if the newest mark is of this run of the server; on a standby, whether there is one. */
  isMarked: Schema.Boolean,
  /** What the mark of the cursor proves, if it is known here. */
  proven: Schema.NullOr(Schema.Int),
  /** The byte of the write-ahead log before which everything has survived with the mark of the cursor, if it is known here. */
  durableUntil: Schema.NullOr(Schema.Int)
})
export type State = typeof State.Type

/** The SQL of the state of a resource's feed, for an owner: a row with its JSON. */
export const stateQuery = (sql: Constructor, owner: Fragment, { table }: Resource, cursor: Cursor | undefined) => {
  const name = sql.literal(`'${table}'`)
  return sql`
    select json_build_object(
      'glance', ${glance(sql, owner, name)}, 'isInPlace', f.place = change_place(f.table_name),
      'isMarked', coalesce((
        select pg_is_in_recovery() or (timeline = change_timeline() and started_at = pg_postmaster_start_time())
        from change_marks order by timeline desc limit 1
      ), false),
      'proven', m.proven, 'durableUntil', change_wal(m.durable_until)
    )::text
    from change_feeds f left join change_marks m on m.token = ${cursor?.mark ?? ""} where f.table_name = ${name}`
}

/**
 * True if a glance is enough: all is as it was when the feed was settled, and the cursor is of this order and mark.
 *
 * @param settled the key of the glance then
 */
export const isUnchanged = (settled: string | undefined, seen: Glance, cursor: Cursor | undefined) =>
  settled === seen.key &&
  (cursor === undefined ||
    (cursor.feed === seen.token && cursor.mark === seen.mark && (seen.isStandby || cursor.position < seen.ceiling)))

/** What a feed makes of a cursor. */
export type Verdict = Data.TaggedEnum<{
  /** Its changes are to be read from there on. */
  Readable: {}
  /** A standby has not yet what the reader has seen, or never will: its primary knows. */
  Behind: {}
  /** The order of the cursor has ended, or its reader has seen what did not survive a failover or a restore. */
  Expired: {}
  /** The order has to begin anew first, or the run of the server has no mark yet. */
  Unsettled: {}
}>
export const Verdict = Data.taggedEnum<Verdict>()

/** What a feed makes of a cursor; without one, of a reader at its beginning. */
export const verdictOf = (state: State, seen: Glance, cursor: Cursor | undefined): Verdict => {
  const { durableUntil, isInPlace, isMarked, proven } = state
  const { isStandby, mark } = seen
  if (!isInPlace || !isMarked) return Verdict.Unsettled()
  const readable = Verdict.Readable()
  if (cursor === undefined) return readable
  if (cursor.feed !== seen.token) return Verdict.Expired()
  if (cursor.mark === mark) {
    // Only a database that was set back to an earlier state has not come to a position that a reader has seen.
    return !isStandby && cursor.position >= seen.ceiling ? Verdict.Expired() : readable
  }
  if (proven !== null) {
    const hasSurvived = cursor.ceiling <= proven || (durableUntil !== null && cursor.wal <= durableUntil)
    return hasSurvived ? readable : Verdict.Expired()
  }
  return isStandby ? Verdict.Behind() : Verdict.Expired()
}

/** The cursor of a reader that had one, or was at its beginning, and has read a page. */
export const cursorAfter = (
  before: Cursor | undefined,
  { hasMore, last }: Page,
  { ceiling, horizon, mark, token, wal }: Glance
): Cursor => {
  const had = before ?? { ...start, target: ceiling, floor: horizon, ceiling: 0, wal: 0 }
  const floor = last === undefined ? had.floor : Math.min(had.floor, horizon)
  const hasPassed = !hasMore && horizon >= floor
  const place = last ?? had
  return {
    feed: token,
    mark,
    ceiling: Math.max(ceiling, had.ceiling),
    wal: Math.max(wal, had.wal),
    target: !hasMore && horizon >= had.target ? 0 : had.target,
    floor: hasPassed ? 0 : floor,
    // A record at the last position below the floor whose id is not ASCII may come once more.
    ...(hasPassed && place.position < floor - 1
      ? { position: floor - 1, id: "~" }
      : { position: place.position, id: place.id })
  }
}
