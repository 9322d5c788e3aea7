/** Reads the change feed of a resource from Postgres. */
import { Clock, Duration, Effect, Schema, Semaphore } from "effect"
import type { Constructor, Fragment } from "effect/sql/Statement"
import type { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { ChangesNotServed, CursorExpired, CursorInvalid, RecordStoreDown } from "../api/Errors.ts"
import type { Resource } from "../api/records/Resource.ts"
import type { Database } from "../database/Database.ts"
import { bytesOf } from "../database/Columns.ts"
import type { Query, Read, Shaped } from "../keys/OrganizationReads.ts"
import { polling } from "../observability/RequestFacts.ts"
import type { ChangeClock, Seen } from "./ChangeClock.ts"
import * as Cursor from "./Cursor.ts"
import { type ChangeRow, changesPage, changesResponse } from "./Pages.ts"
import type { Changes, ChangesRequest, ReadError } from "./Repository.ts"

const snapshotJson = (sql: Constructor, owner: Fragment, table: Fragment) => sql`
  json_build_object('token', f.token, 'mark', coalesce((select token from change_marks order by timeline desc limit 1), ''),
    'isStandby', pg_is_in_recovery(), 'run', concat_ws('|', pg_relation_filepath(${table}), pg_postmaster_start_time()),
    'horizon', change_horizon(), 'ceiling', change_ceiling(), 'inFlight', change_in_flight(),
    'wal', change_wal(case
      when not pg_is_in_recovery() then pg_current_wal_flush_lsn()
      when pg_last_wal_receive_lsn() >= pg_last_wal_replay_lsn() then pg_last_wal_receive_lsn()
      -- From an archive. What a record did is seen before it counts as replayed.
      else pg_last_wal_replay_lsn() + 16777216 end),
    'organization', ${owner}::text)`

/** The SQL of the snapshot of a resource's feed, for an owner: one row, JSON. */
export const snapshotQuery = (sql: Constructor, owner: Fragment, { table }: Resource) => {
  const name = sql.literal(`'${table}'`)
  return sql`select ${snapshotJson(sql, owner, name)}::text from change_feeds f where f.table_name = ${name}`
}

/** The SQL of the state of a resource's feed, for an owner: one row, JSON. */
const stateQuery = (sql: Constructor, owner: Fragment, { table }: Resource, cursor: Cursor.Cursor | undefined) => {
  const name = sql.literal(`'${table}'`)
  return sql`
    select json_build_object(
      'snapshot', ${snapshotJson(sql, owner, name)}, 'isInPlace', f.place = change_place(f.table_name),
      'isMarked', coalesce((
        select pg_is_in_recovery() or (timeline = change_timeline() and started_at = pg_postmaster_start_time())
        from change_marks order by timeline desc limit 1
      ), false),
      'proven', m.proven, 'durableUntil', change_wal(m.durable_until)
    )::text
    from change_feeds f left join change_marks m on m.token = ${cursor?.mark ?? ""} where f.table_name = ${name}`
}

const maximumBigint = "9223372036854775807"

/**
 * The values of `changesQuery` for a cursor: the place that records come after, and the place that removals come after.
 * Without a cursor, all records and no removals.
 */
export const placesOf = (cursor: Cursor.Cursor | undefined): ReadonlyArray<string> => {
  if (cursor === undefined) return [String(Cursor.start.position), Cursor.start.id, maximumBigint, ""]
  const { floor, id, position } = cursor
  const place = [String(position), id]
  return [...place, ...(floor > position ? [String(floor), ""] : place)]
}

/**
 * The query of up to `limit` changes, and one more if there are more. Both branches are read in the order of an index, and
 * merged as they are read.
 *
 * @param first the SQL of the first row, which has it as its `removal`, and no `position`
 * @param places the values of `placesOf`
 */
export const changesQuery = (
  sql: Constructor,
  owner: Fragment,
  resource: Resource,
  limit: number,
  first: Fragment,
  [position = "", id = "", removalPosition = "", removalId = ""]: ReadonlyArray<string>
): Query<ChangeRow> => {
  const table = sql.literal(resource.table)
  const name = sql.literal(`'${resource.table}'`)
  const bounds = sql.literal(`limit ${limit + 1}`)
  // Hidden from the planner, so that one plan serves all cursors.
  const isAfter = (place: string, of: string) =>
    sql`(t.change_position, t.id) > ((select ${place}::bigint), (select ${of}::text)) and t.change_position < change_horizon()`
  // In the snapshot of the page: another server, or a later moment, may have another answer. Not `exists`, for which a plan
  // may read all records of the owner.
  const existing = sql`(select '+' from ${table} t where t.organization_id = ${owner} and t.id = p.id)`
  return {
    isPlannedOnce: true,
    columns: ["record", "removal", "position"],
    statement: sql<ChangeRow>`
      select null::bpchar as record, s.text as removal, null::float8 as position
      from (${first}) s (text)
      union all
      select ${sql.literal(bytesOf("p.record"))}, case when p.record is null then coalesce(${existing}, '-') || p.id end,
        p.change_position::float8
      from (
        (
          select t.record, t.id, t.change_position from ${table} t
          where t.organization_id = ${owner} and ${isAfter(position, id)} order by t.change_position, t.id ${bounds}
        )
        union all
        (
          select null, t.id, t.change_position from removals t
          where t.organization_id = ${owner} and t.table_name = ${name} and ${isAfter(removalPosition, removalId)}
          order by t.change_position, t.id ${bounds}
        )
        order by change_position, id ${bounds}
      ) p`
  }
}

const cursorInvalid = new CursorInvalid()
const cursorExpired = new CursorExpired()
const notServed = new ChangesNotServed()

const decode = <S extends Schema.Codec<unknown, unknown>>(schema: S) => {
  const decodeText = Schema.decodeEffect(Schema.fromJsonString(schema))
  return (text: string) => Effect.orDie(decodeText(text))
}
const decodeSnapshot = decode(Cursor.FeedSnapshot)
const decodeState = decode(Cursor.FeedState)

const wokenAtOnce = 16

interface Asked {
  readonly given: string | undefined
  readonly cursor: Cursor.Cursor | undefined
  readonly limit: number
}

const askedOf = (given: string | undefined, limit: number): Asked => ({
  given,
  limit,
  cursor: given === undefined ? undefined : Cursor.decode(given)
})

/** Reads up to `limit` rows for the current organization. */
export type ReadRows = <Row extends object>(
  limit: number,
  queryOf: Read<Row>["queryOf"],
  shaped?: Shaped
) => Effect.Effect<ReadonlyArray<Row>, ReadError, CurrentOrganization>

/**
 * The feed of a resource.
 *
 * @param largePage the number of records above which a page is read on a dedicated connection
 */
export const make = (
  sql: Database,
  clock: ChangeClock["Service"],
  resource: Resource,
  read: ReadRows,
  largePage: number
) => {
  /** The snapshot of the feed when it was last examined. */
  let settled: Cursor.FeedSnapshot | undefined
  const turns = Semaphore.makeUnsafe(wokenAtOnce)

  /** Fails unless all records are on one server: a position in the order means nothing on another. */
  const requireSingle = Effect.gen(function* () {
    yield* sql.distribution.refresh
    const isDistributed = sql.distribution.isDistributed()
    if (isDistributed === undefined) return yield* new RecordStoreDown()
    if (isDistributed) return yield* notServed
  })

  const readSome = (limit: number, { cursor }: Asked) =>
    read(
      limit,
      (owner, places) => changesQuery(sql, owner, resource, limit, snapshotQuery(sql, owner, resource), places),
      { shape: `changes ${limit}`, values: placesOf(cursor) }
    )

  /** Reads changes. Most readers with a cursor have seen all: a short statement shows it at half the cost of a large page. */
  const readChanges = (asked: Asked) =>
    asked.cursor === undefined || asked.limit <= largePage
      ? readSome(asked.limit, asked)
      : Effect.filterOrElse(
          readSome(0, asked),
          (rows) => rows.length === 1,
          () => readSome(asked.limit, asked)
        )

  /** Reads changes behind the whole state of the feed. */
  const readWithState = ({ cursor, limit }: Asked) =>
    read(limit, (owner) =>
      changesQuery(sql, owner, resource, limit, stateQuery(sql, owner, resource, cursor), placesOf(cursor))
    )

  const ownerOf = ({ organization }: Cursor.FeedSnapshot) => ({ organization, resource: resource.name })

  const requireOwn = ({ given }: Asked, snapshot: Cursor.FeedSnapshot) =>
    given === undefined || Cursor.isOf(given, ownerOf(snapshot)) ? Effect.void : Effect.fail(cursorInvalid)

  /** A page, and the position that its reader has reached. */
  const outcome = (
    page: Changes,
    { horizon, organization }: Cursor.FeedSnapshot,
    { id, position, target }: Pick<Cursor.Cursor, "id" | "position" | "target">
  ): { readonly page: Changes; readonly seen: Seen } => ({
    page,
    seen: { table: resource.table, organization, horizon, position, id, target }
  })

  const respond = Effect.fnUntraced(function* (
    { cursor, given, limit }: Asked,
    snapshot: Cursor.FeedSnapshot,
    changes: ReadonlyArray<ChangeRow>
  ) {
    const page = changesPage(changes, limit)
    const next = Cursor.cursorAfter(cursor, page, snapshot)
    const isSameLoad = cursor === undefined || (cursor.target === next.target && cursor.floor === next.floor)
    // The reader of an empty page has seen nothing more that may not survive a failover: it keeps its cursor.
    const isSame = page.last === undefined && isSameLoad && cursor?.mark === next.mark
    const response = changesResponse(page, {
      cursor: given !== undefined && isSame ? given : Cursor.encode(next, ownerOf(snapshot)),
      isComplete: next.target === 0,
      lag: yield* clock.lag(snapshot)
    })
    return outcome({ ...response, isEmpty: response.isEmpty && isSameLoad }, snapshot, next)
  })

  /** The response of a standby that is behind the cursor: nothing yet. */
  const respondBehind = Effect.fnUntraced(function* ({ cursor, given = "" }: Asked, snapshot: Cursor.FeedSnapshot) {
    // A mark of a server that was promoted and is gone never arrives.
    if (cursor !== undefined && !(yield* clock.hasMark(cursor.mark))) return yield* cursorExpired
    const lag = Math.max(yield* clock.lag(snapshot), 1)
    const page = changesResponse(changesPage([], 0), { cursor: given, isComplete: cursor?.target === 0, lag })
    return outcome(page, snapshot, cursor ?? { ...Cursor.start, target: 0 })
  })

  /** Responds by the whole state of the feed. Undefined where it has to be settled first. */
  const examine = Effect.fnUntraced(function* (asked: Asked) {
    const [first, ...changes] = yield* readWithState(asked)
    if (first?.removal == null) return undefined
    const state = yield* decodeState(first.removal)
    yield* requireOwn(asked, state.snapshot)
    switch (Cursor.verdictOf(state, asked.cursor)) {
      case "Unsettled":
        return undefined
      case "Expired":
        return yield* cursorExpired
      case "Behind":
        return yield* respondBehind(asked, state.snapshot)
      case "Readable":
        settled = state.snapshot
        return yield* respond(asked, state.snapshot, changes)
    }
  })

  const next = Effect.fnUntraced(function* (asked: Asked) {
    if (settled !== undefined) {
      const [first, ...changes] = yield* readChanges(asked)
      const snapshot = first?.removal == null ? undefined : yield* decodeSnapshot(first.removal)
      if (snapshot !== undefined && Cursor.isUnchanged(settled, snapshot, asked.cursor)) {
        yield* requireOwn(asked, snapshot)
        return yield* respond(asked, snapshot, changes)
      }
    }
    const response = yield* examine(asked)
    if (response !== undefined) return response
    yield* Effect.timeoutOption(clock.keep, "3 seconds")
    return (yield* examine(asked)) ?? (yield* new RecordStoreDown({ detail: "The record store is busy" }))
  })

  return Effect.fnUntraced(function* ({ cursor, limit, wait = Duration.zero }: ChangesRequest) {
    if (sql.distribution.isDistributed() !== false) yield* requireSingle
    const asked = askedOf(cursor, limit)
    if (cursor !== undefined && asked.cursor === undefined) return yield* cursorInvalid
    const begun = Duration.isZero(wait) ? 0 : yield* Clock.currentTimeMillis
    let { page, seen } = yield* next(asked)
    while (page.isEmpty && !Duration.isZero(wait)) {
      const left = Duration.toMillis(wait) - ((yield* Clock.currentTimeMillis) - begun)
      if (left <= 0 || !(yield* polling(clock.wait(seen, Duration.millis(left))))) break
      // One change may wake all readers: each reads a small page, on a shared connection, in its turn.
      ;({ page, seen } = yield* turns.withPermit(next(askedOf(page.cursor, Math.min(limit, largePage)))))
    }
    return page
  })
}
