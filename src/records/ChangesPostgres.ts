/** Reads the feed of changes of a resource from Postgres. */
import { Clock, Duration, Effect, Option, Schema } from "effect"
import type { Fragment } from "effect/sql/Statement"
import type { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { CursorExpired, CursorInvalid, RecordStoreDown } from "../api/Errors.ts"
import type { Resource } from "../api/records/Resource.ts"
import type { Database } from "../database/Database.ts"
import type { ChangeClock } from "./ChangeClock.ts"
import { pageOf } from "./ChangesPage.ts"
import { changesQuery, type ChangeRow } from "./ChangesQuery.ts"
import type { Seen } from "./ChangeWaiters.ts"
import * as Cursor from "./Cursor.ts"
import * as Feed from "./Feed.ts"
import type { Changes, ChangesRequest, ReadError } from "./Repository.ts"
import type { Query } from "./SearchQuery.ts"

const cursorInvalid = new CursorInvalid()
const cursorExpired = new CursorExpired()

const decodeState = Schema.decodeEffect(Schema.fromJsonString(Feed.State))

/** A page of changes, and what its reader has seen then. */
interface Outcome {
  readonly page: Changes
  readonly seen: Seen
}

/**
 * The feed of a resource.
 *
 * @param read runs a query for the current organization
 */
export const make = (
  sql: Database,
  clock: ChangeClock["Service"],
  resource: Resource,
  read: (
    limit: number,
    queryOf: (owner: Fragment) => Query<ChangeRow>
  ) => Effect.Effect<ReadonlyArray<ChangeRow>, ReadError, CurrentOrganization>
) => {
  let settled: Feed.Settled | undefined

  /** Reads changes, behind a first row of the feed itself. */
  const look = Effect.fnUntraced(function* (
    cursor: Cursor.Cursor | undefined,
    limit: number,
    first: (owner: Fragment) => Fragment
  ) {
    const [row, ...changes] = yield* read(limit, (owner) =>
      changesQuery(sql, owner, resource, cursor, limit, first(owner))
    )
    return { text: row?.record, changes }
  })

  /** None where the feed has to be settled first. */
  const attempt = Effect.fnUntraced(function* (given: string | undefined, limit: number) {
    const cursor = given === undefined ? undefined : Option.getOrUndefined(Cursor.decode(given))
    if (given !== undefined && cursor === undefined) return yield* cursorInvalid
    const before = cursor ?? Cursor.start

    const pageWith = Effect.fnUntraced(function* (
      glance: Feed.Glance,
      changes: ReadonlyArray<ChangeRow>,
      timeline: number
    ) {
      const { ceiling, horizon, mark, organization, token, wal } = glance
      const order = {
        feed: token,
        mark,
        timeline,
        ceiling: Math.max(ceiling, cursor?.ceiling ?? 0),
        wal: Math.max(wal, cursor?.wal ?? 0)
      }
      const owner = { organization, resource: resource.name }
      // Where nothing is told, the reader has seen nothing more that may not survive a failover.
      const cursorAt = (last: Cursor.Place | undefined) =>
        last === undefined && given !== undefined && cursor?.mark === mark
          ? given
          : Cursor.encode({ ...order, ...(last ?? before) }, owner)
      const page = pageOf(changes, limit, yield* clock.lag(glance), cursorAt)
      return Option.some<Outcome>({
        page,
        seen: { table: resource.table, organization, horizon, ...(page.last ?? before) }
      })
    })

    const isOfAnother = ({ organization }: Feed.Glance) =>
      cursor !== undefined && Cursor.encode(cursor, { organization, resource: resource.name }) !== given

    if (settled !== undefined) {
      const { changes, text } = yield* look(cursor, limit, (owner) => Feed.glanceQuery(sql, owner, resource))
      const glance = Feed.glanceOf(text ?? "")
      if (Feed.isUnchanged(settled, glance, cursor)) {
        return isOfAnother(glance) ? yield* cursorInvalid : yield* pageWith(glance, changes, settled.timeline)
      }
    }
    const { changes, text } = yield* look(cursor, limit, (owner) => Feed.stateQuery(sql, owner, resource, cursor))
    if (text == null) return Option.none()
    const state = yield* Effect.orDie(decodeState(text))
    const glance = Feed.glanceOf(state.glance)
    if (isOfAnother(glance)) return yield* cursorInvalid
    const verdict = Feed.verdictOf(state, glance, cursor)
    switch (verdict._tag) {
      case "Unsettled":
        return Option.none()
      case "Expired":
        return yield* cursorExpired
      case "Behind": {
        // Of a server that was promoted and is gone, the standby would wait for ever.
        if (cursor !== undefined && !(yield* clock.hasMark(cursor.mark))) return yield* cursorExpired
        const { horizon, organization } = glance
        const page = pageOf([], limit, Math.max(yield* clock.lag(glance), 1), () => given ?? "")
        return Option.some<Outcome>({ page, seen: { table: resource.table, organization, horizon, ...before } })
      }
      case "Readable":
        settled = { key: glance.key, timeline: verdict.timeline }
        return yield* pageWith(glance, changes, verdict.timeline)
    }
  })

  /** Settles the feed where that is due. */
  const settling = Effect.fnUntraced(function* (cursor: string | undefined, limit: number) {
    const first = yield* attempt(cursor, limit)
    if (Option.isSome(first)) return first.value
    yield* Effect.timeoutOption(clock.keep, "3 seconds")
    const second = yield* attempt(cursor, limit)
    if (Option.isSome(second)) return second.value
    return yield* new RecordStoreDown({ detail: "The record store is busy" })
  })

  return Effect.fn("Records.changes", { attributes: { table: resource.table } })(function* ({
    cursor,
    limit,
    wait = Duration.zero
  }: ChangesRequest) {
    const end = (yield* Clock.currentTimeMillis) + Duration.toMillis(wait)
    let { page, seen } = yield* settling(cursor, limit)
    while (page.isEmpty) {
      const left = end - (yield* Clock.currentTimeMillis)
      if (left <= 0 || !(yield* clock.wait(seen, Duration.millis(left)))) break
      ;({ page, seen } = yield* settling(page.cursor, limit))
    }
    return page
  })
}
