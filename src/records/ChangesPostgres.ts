/** Reads the feed of changes of a resource from Postgres. */
import { Clock, Duration, Effect, Schema } from "effect"
import type { Fragment } from "effect/sql/Statement"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { ChangesNotServed, CursorExpired, CursorInvalid, RecordStoreDown } from "../api/Errors.ts"
import type { Resource } from "../api/records/Resource.ts"
import type { Database } from "../database/Database.ts"
import type { ChangeClock } from "./ChangeClock.ts"
import { polling } from "../observability/RequestFacts.ts"
import * as Tracing from "../observability/Tracing.ts"
import { pageOf, removedFrom } from "./ChangesPage.ts"
import { changesQuery, type ChangeRow, existingQuery, placeOf } from "./ChangesQuery.ts"
import type { Seen } from "./ChangeWaiters.ts"
import * as Cursor from "./Cursor.ts"
import * as Feed from "./Feed.ts"
import type { Changes, ChangesRequest, ReadError } from "./Repository.ts"
import type { Query } from "./SearchQuery.ts"
import type { Shaped } from "./Templates.ts"

const cursorInvalid = new CursorInvalid()
const cursorExpired = new CursorExpired()

const notServed = new ChangesNotServed()

const none: Effect.Effect<ReadonlySet<string>> = Effect.succeed(new Set())

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
  let settled: Feed.Settled | undefined

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
      (owner, place) => changesQuery(sql, owner, resource, place, limit, Feed.glanceQuery(sql, owner, resource)),
      { shape: `changes ${limit}`, values: placeOf(cursor) }
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
      return changesQuery(sql, owner, resource, placeOf(cursor), limit, state)
    })

  const ownerOf = ({ organization }: Feed.Glance) => ({ organization, resource: resource.name })

  const isOfAnother = ({ cursor, given }: Asked, glance: Feed.Glance) =>
    cursor !== undefined && Cursor.encode(cursor, ownerOf(glance)) !== given

  const outcomeOf = ({ cursor }: Asked, glance: Feed.Glance, page: Changes): Outcome => {
    const { position, id } = page.last ?? cursor ?? Cursor.start
    const { horizon, organization } = glance
    return { page, seen: { table: resource.table, organization, horizon, position, id } }
  }

  /**
   * Of what was deleted, what exists again. It is looked up later than the page was read, below the page's horizon: what
   * came back since is told later, and may not survive a failover.
   */
  const existingOf = (glance: Feed.Glance, changes: ReadonlyArray<ChangeRow>) => {
    const removed = removedFrom(changes)
    if (removed.length === 0) return none
    return read(removed.length, (owner) => existingQuery(sql, owner, resource, removed, glance.horizon)).pipe(
      Effect.provideService(CurrentOrganization, CurrentOrganization.known(glance.organization)),
      Effect.map((rows): ReadonlySet<string> => new Set(rows.map(({ id }) => id ?? "")))
    )
  }

  /** The page of these changes, which are read on a server whose newest mark is of a timeline. */
  const told = Effect.fnUntraced(function* (
    asked: Asked,
    glance: Feed.Glance,
    [, ...changes]: ReadonlyArray<ChangeRow>,
    timeline: number
  ) {
    const { cursor, given, limit } = asked
    const { mark, token } = glance
    const cursorAt = (last: Cursor.Place | undefined) => {
      // Where nothing is told, the reader has seen nothing more that may not survive a failover.
      if (last === undefined && given !== undefined && cursor?.mark === mark) return given
      const { position, id } = last ?? cursor ?? Cursor.start
      const ceiling = Math.max(glance.ceiling, cursor?.ceiling ?? 0)
      const wal = Math.max(glance.wal, cursor?.wal ?? 0)
      return Cursor.encode({ feed: token, mark, timeline, ceiling, wal, position, id }, ownerOf(glance))
    }
    const existing = yield* existingOf(glance, changes)
    return outcomeOf(asked, glance, pageOf(changes, existing, limit, yield* clock.lag(glance), cursorAt))
  })

  /** Looks at the whole state of the feed. Undefined where it has to be settled first. */
  const examine = Effect.fnUntraced(function* (asked: Asked) {
    const { cursor, given, limit } = asked
    const rows = yield* lookAt(asked)
    const text = rows[0]?.id
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
        return outcomeOf(
          asked,
          glance,
          pageOf([], new Set(), limit, lag, () => given ?? "")
        )
      }
      case "Readable":
        settled = { key: glance.key, timeline: verdict.timeline }
        return yield* told(asked, glance, rows, verdict.timeline)
    }
  })

  const next = Effect.fnUntraced(function* (asked: Asked) {
    if (settled !== undefined) {
      const rows = yield* glanceAt(asked)
      const glance = Feed.glanceOf(rows[0]?.id ?? "")
      if (Feed.isUnchanged(settled, glance, asked.cursor)) {
        if (isOfAnother(asked, glance)) return yield* cursorInvalid
        return yield* told(asked, glance, rows, settled.timeline)
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
      ;({ page, seen } = yield* next(askedOf(page.cursor, limit)))
    }
    return page
  })

  const traced = Tracing.spanned("Records.changes", { "db.collection.name": resource.table })
  return (request: ChangesRequest) => traced(changes(request))
}
