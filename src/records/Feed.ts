/** The state of a feed of changes on the server that reads it, and what it makes of a cursor. */
import { Data, Schema } from "effect"
import type { Constructor, Fragment } from "effect/sql/Statement"
import type { Resource } from "../api/records/Resource.ts"
import type { Cursor } from "./Cursor.ts"

/** A feed as the snapshot of a statement sees it. */
export const State = Schema.Struct({
  organization: Schema.String,
  token: Schema.String,
  /** Whether the table is where the order began. */
  isInPlace: Schema.Boolean,
  /** The timeline that the server writes; null on a standby. */
  timeline: Schema.NullOr(Schema.Int),
  /** The newest mark. */
  markedTimeline: Schema.NullOr(Schema.Int),
  mark: Schema.NullOr(Schema.String),
  /** What the mark of the cursor proves, if it is known here. */
  proven: Schema.NullOr(Schema.Int),
  /** The byte of the write-ahead log at which the timeline after the cursor's began, if it is known here. */
  forkedAt: Schema.NullOr(Schema.Int),
  /** The byte of the write-ahead log before which everything lies that the snapshot sees. */
  wal: Schema.Int,
  /** All changes below it are complete. */
  horizon: Schema.Int,
  /** No change that the snapshot sees is at or above it. */
  ceiling: Schema.Int,
  /** How many transactions have an id at or above the ceiling. */
  inFlight: Schema.Int
})
export type State = typeof State.Type

/** The SQL of the state of a resource's feed, for an owner: a row with its JSON. */
export const stateQuery = (sql: Constructor, owner: Fragment, { table }: Resource, cursor: Cursor | undefined) => {
  const name = sql.literal(`'${table}'`)
  return sql`
    select json_build_object(
      'organization', ${owner}::text, 'token', f.token, 'isInPlace', f.place = change_place(f.table_name),
      'timeline', change_timeline(), 'markedTimeline', m.timeline, 'mark', m.token,
      'proven', (select proven from change_marks where token = ${cursor?.mark ?? ""}),
      'forkedAt', (select change_wal(forked_at) from change_marks where timeline = ${cursor?.timeline ?? 0}::integer + 1),
      'wal', change_wal(case
        when not pg_is_in_recovery() then pg_current_wal_insert_lsn()
        when pg_last_wal_receive_lsn() >= pg_last_wal_replay_lsn() then pg_last_wal_receive_lsn()
        -- From an archive. What a record did is seen before it counts as replayed.
        else pg_last_wal_replay_lsn() + 16777216 end),
      'horizon', change_horizon(), 'ceiling', change_ceiling(), 'inFlight', change_in_flight()
    )::text
    from change_feeds f left join (select * from change_marks order by timeline desc limit 1) m on true
    where f.table_name = ${name}`
}

/** What a feed makes of a cursor. */
export type Verdict = Data.TaggedEnum<{
  /** Its changes are to be read from there on. */
  Readable: { readonly mark: string; readonly timeline: number }
  /** A standby has not yet what the reader has seen, or never will: its primary knows. */
  Behind: {}
  /** The order of the cursor has ended, or its reader has seen what did not survive a failover. */
  Expired: {}
  /** The order has to begin anew first, or the timeline has no mark yet. */
  Unsettled: {}
}>
export const Verdict = Data.taggedEnum<Verdict>()

/** What a feed makes of a cursor; without one, of a reader at its beginning. */
export const verdictOf = (state: State, cursor: Cursor | undefined): Verdict => {
  const { mark, markedTimeline, timeline } = state
  const isStandby = timeline === null
  const hasMark = mark !== null && markedTimeline !== null && (isStandby || timeline === markedTimeline)
  if (!state.isInPlace || !hasMark) return Verdict.Unsettled()
  const readable = Verdict.Readable({ mark, timeline: markedTimeline })
  if (cursor === undefined) return readable
  if (cursor.feed !== state.token) return Verdict.Expired()
  if (cursor.mark === mark) {
    // Only a database that was set back to an earlier state has not come to a position that a reader has seen.
    return !isStandby && cursor.position >= state.ceiling ? Verdict.Expired() : readable
  }
  if (state.proven !== null) {
    const hasSurvived = cursor.ceiling <= state.proven || (state.forkedAt !== null && cursor.wal <= state.forkedAt)
    return hasSurvived ? readable : Verdict.Expired()
  }
  return isStandby ? Verdict.Behind() : Verdict.Expired()
}
