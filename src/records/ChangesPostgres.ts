/** Reads the feed of changes of a resource from Postgres. */
import { Clock, Duration, Effect, Schema, Semaphore } from "effect"
import type { Fragment } from "effect/sql/Statement"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { ChangesNotServed, CursorExpired, CursorInvalid, RecordStoreDown } from "../api/Errors.ts"
import type { Resource } from "../api/records/Resource.ts"
import type { Database } from "../database/Database.ts"
import type { ChangeClock } from "./ChangeClock.ts"
import type { Query, Shaped } from "../keys/OrganizationReads.ts"
import { polling } from "../observability/RequestFacts.ts"
import * as Tracing from "../observability/Tracing.ts"
import * as ChangesPage from "./ChangesPage.ts"
import { changesQuery, type ChangeRow, placesOf } from "./ChangesQuery.ts"
import type { Seen } from "./ChangeWaiters.ts"
import * as Cursor from "./Cursor.ts"
import * as Feed from "./Feed.ts"
import type { Changes, ChangesRequest, ReadError } from "./Repository.ts"

/** How many readers that were woken read at once. */
const atOnce = 16

const cursorInvalid = new CursorInvalid()
const cursorExpired = new CursorExpired()

const notServed = new ChangesNotServed()

const decodeState = Schema.decodeEffect(Schema.fromJsonString(Feed.State))

/** What is asked for, and its cursor as it was given. */
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

/** A page of changes, and what its reader has seen then. */
interface Outcome {
  readonly page: Changes
  readonly seen: Seen
}

/**
 * The feed of a resource.
 *
 * @param read runs a query for the current organization
 * @param largePage the number of records above which a page is read on a connection of its own
 */
export const make = (
  sql: Database,
  clock: ChangeClock["Service"],
  resource: Resource,
  read: <Row extends object>(
    limit: number,
    queryOf: (owner: Fragment, values: ReadonlyArray<string>) => Query<Row>,
    shaped?: Shaped
  ) => Effect.Effect<ReadonlyArray<Row>, ReadError, CurrentOrganization>,
  largePage: number
) => {
  /** The key of the feed when it was settled. */
  let settled: string | undefined
  const turns = Semaphore.makeUnsafe(atOnce)

  /** Fails unless all records are on one server: a position in the order means nothing on another. */
  const requireSingle = Effect.gen(function* () {
    yield* sql.distribution.refresh
    const isDistributed = sql.distribution.isDistributed()
    if (isDistributed === undefined) return yield* new RecordStoreDown()
    if (isDistributed) return yield* notServed
  })

  /** Reads up to so many changes after a cursor, and whether there are more, behind a glance at the feed. */
  const upTo = (limit: number, { cursor }: Asked) =>
    read(
      limit,
      (owner, places) => changesQuery(sql, owner, resource, places, limit, Feed.glanceQuery(sql, owner, resource)),
      { shape: `changes ${limit}`, values: placesOf(cursor) }
    )

  /**
   * Reads the changes that are asked for, behind a glance at the feed. Most readers that have a cursor have seen all,
   * which a short statement finds out for less than half of what a large page costs.
   */
  const glanceAt = (asked: Asked) =>
    asked.cursor === undefined || asked.limit <= largePage
      ? upTo(asked.limit, asked)
      : Effect.filterOrElse(
          upTo(0, asked),
          (rows) => rows.length === 1,
          () => upTo(asked.limit, asked)
        )

  /** Reads changes behind the whole state of the feed. */
  const lookAt = ({ cursor, limit }: Asked) =>
    read(limit, (owner) => {
      const state = Feed.stateQuery(sql, owner, resource, cursor)
      return changesQuery(sql, owner, resource, placesOf(cursor), limit, state)
    })

  const ownerOf = ({ organization }: Feed.Glance) => ({ organization, resource: resource.name })

  const isOfAnother = ({ given }: Asked, glance: Feed.Glance) =>
    given !== undefined && !Cursor.isOf(given, ownerOf(glance))

  const outcomeOf = (
    { horizon, organization }: Feed.Glance,
    { id, position, target }: Pick<Cursor.Cursor, "id" | "position" | "target">,
    page: Changes
  ): Outcome => ({ page, seen: { table: resource.table, organization, horizon, position, id, target } })

  /** The page of these changes, and the cursor after it. */
  const told = Effect.fnUntraced(function* (
    { cursor, given, limit }: Asked,
    glance: Feed.Glance,
    [, ...changes]: ReadonlyArray<ChangeRow>
  ) {
    const page = ChangesPage.pageOf(changes, limit)
    const next = Feed.cursorAfter(cursor, page, glance)
    const isSameLoad = cursor === undefined || (cursor.target === next.target && cursor.floor === next.floor)
    // Where nothing is told, the reader has seen nothing more that may not survive a failover.
    const isSame = page.last === undefined && isSameLoad && cursor?.mark === next.mark
    const response = ChangesPage.responseOf(page, {
      cursor: given !== undefined && isSame ? given : Cursor.encode(next, ownerOf(glance)),
      isComplete: next.target === 0,
      lag: yield* clock.lag(glance)
    })
    return outcomeOf(glance, next, { ...response, isEmpty: response.isEmpty && isSameLoad })
  })

  /** Looks at the whole state of the feed. Undefined where it has to be settled first. */
  const examine = Effect.fnUntraced(function* (asked: Asked) {
    const { cursor, given } = asked
    const rows = yield* lookAt(asked)
    const text = rows[0]?.removal
    if (text == null) return undefined
    const state = yield* Effect.orDie(decodeState(text))
    const glance = Feed.glanceOf(state.glance)
    if (isOfAnother(asked, glance)) return yield* cursorInvalid
    const verdict = Feed.verdictOf(state, glance, cursor)
    switch (verdict._tag) {
      case "Unsettled":
        return undefined
      case "Expired":
        return yield* cursorExpired
      case "Behind": {
        // Of a server that was promoted and is gone, the standby would wait for ever.
        if (cursor !== undefined && !(yield* clock.hasMark(cursor.mark))) return yield* cursorExpired
        const lag = Math.max(yield* clock.lag(glance), 1)
        const isComplete = cursor?.target === 0
        const page = ChangesPage.responseOf(ChangesPage.empty, { cursor: given ?? "", isComplete, lag })
        return outcomeOf(glance, cursor ?? { ...Cursor.start, target: 0 }, page)
      }
      case "Readable":
        settled = glance.key
        return yield* told(asked, glance, rows)
    }
  })

  const next = Effect.fnUntraced(function* (asked: Asked) {
    if (settled !== undefined) {
      const rows = yield* glanceAt(asked)
      const glance = Feed.glanceOf(rows[0]?.removal ?? "")
      if (Feed.isUnchanged(settled, glance, asked.cursor)) {
        if (isOfAnother(asked, glance)) return yield* cursorInvalid
        return yield* told(asked, glance, rows)
      }
    }
    const first = yield* examine(asked)
    if (first !== undefined) return first
    yield* Effect.timeoutOption(clock.keep, "3 seconds")
    return (yield* examine(asked)) ?? (yield* new RecordStoreDown({ detail: "The record store is busy" }))
  })

  const changes = Effect.fnUntraced(function* ({ cursor, limit, wait = Duration.zero }: ChangesRequest) {
    if (sql.distribution.isDistributed() !== false) yield* requireSingle
    const asked = askedOf(cursor, limit)
    if (cursor !== undefined && asked.cursor === undefined) return yield* cursorInvalid
    const begun = Duration.isZero(wait) ? 0 : yield* Clock.currentTimeMillis
    let { page, seen } = yield* next(asked)
    while (page.isEmpty && !Duration.isZero(wait)) {
      const left = Duration.toMillis(wait) - ((yield* Clock.currentTimeMillis) - begun)
      if (left <= 0 || !(yield* polling(clock.wait(seen, Duration.millis(left))))) break
      // One change may wake all that wait: each asks for little, on a connection that is shared, and in its turn.
      ;({ page, seen } = yield* turns.withPermit(next(askedOf(page.cursor, Math.min(limit, largePage)))))
    }
    return page
  })

  const traced = Tracing.spanned("Records.changes", { "db.collection.name": resource.table })
  return (request: ChangesRequest) => traced(changes(request))
}
