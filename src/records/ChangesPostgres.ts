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

/** What a statement made of a cursor: a page, and what its reader has seen then. */
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
  /** None where the feed has to be settled first. */
  const attempt = Effect.fnUntraced(function* (given: string | undefined, limit: number) {
    const cursor = given === undefined ? undefined : Option.getOrUndefined(Cursor.decode(given))
    if (given !== undefined && cursor === undefined) return yield* cursorInvalid
    const [first, ...changes] = yield* read(limit, (owner) => changesQuery(sql, owner, resource, cursor, limit))
    if (first === undefined || first.record === null) return Option.none()
    const state = yield* Effect.orDie(decodeState(first.record))
    const { horizon, organization } = state
    const owner = { organization, resource: resource.name }
    if (cursor !== undefined && Cursor.encode(cursor, owner) !== given) return yield* cursorInvalid
    const lag = yield* clock.lag({ ...state, isStandby: state.timeline === null })
    const before = cursor ?? Cursor.start
    const outcome = (page: Changes) =>
      Option.some<Outcome>({ page, seen: { table: resource.table, organization, horizon, ...(page.last ?? before) } })
    const verdict = Feed.verdictOf(state, cursor)
    switch (verdict._tag) {
      case "Unsettled":
        return Option.none()
      case "Expired":
        return yield* cursorExpired
      case "Behind":
        // Of a server that was promoted and is gone, the standby would wait for ever.
        if (cursor !== undefined && !(yield* clock.hasMark(cursor.mark))) return yield* cursorExpired
        return outcome(pageOf([], limit, Math.max(lag, 1), () => given ?? ""))
      case "Readable": {
        const { mark, timeline } = verdict
        const ceiling = Math.max(state.ceiling, cursor?.ceiling ?? 0)
        const order = { feed: state.token, mark, timeline, ceiling, wal: Math.max(state.wal, cursor?.wal ?? 0) }
        return outcome(pageOf(changes, limit, lag, (last = before) => Cursor.encode({ ...order, ...last }, owner)))
      }
    }
  })

  /** Settles the feed where that is due. */
  const settled = Effect.fnUntraced(function* (cursor: string | undefined, limit: number) {
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
    let { page, seen } = yield* settled(cursor, limit)
    while (page.isEmpty) {
      const left = end - (yield* Clock.currentTimeMillis)
      if (left <= 0 || !(yield* clock.wait(seen, Duration.millis(left)))) break
      ;({ page, seen } = yield* settled(page.cursor, limit))
    }
    return page
  })
}
