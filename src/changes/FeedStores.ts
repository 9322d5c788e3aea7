/** The stores that the feed of changes is read from: the tables of the records, or rows in memory. */
import { Array, Effect } from "effect"
import { CurrentOrganization } from "../api/Authorization.ts"
import { ChangesNotServed, RecordStoreDown } from "../api/Errors.ts"
import type { Resource } from "../api/records/Resource.ts"
import type { Database } from "../database/Database.ts"
import type { Json } from "../database/Columns.ts"
import type { Reader } from "../keys/OrganizationReads.ts"
import * as Tracing from "../observability/Tracing.ts"
import * as Feed from "./Feed.ts"
import { orderTable } from "./FeedPage.ts"
import type { FeedSnapshot } from "./Cursor.ts"
import * as FeedQuery from "./FeedQuery.ts"
import { byPlace, isAfter, rangesOf } from "./Walk.ts"

// Made once: a stack trace costs more than the rest of the response.
const notServed = new ChangesNotServed()

/** A page of more changes is large: a short read first shows whether there are any. */
const largePage = 250

/** The feed of the records in a database, which is a primary. */
export const databaseFeed = <E, R>(
  sql: Database,
  read: Reader<E, R>,
  resources: ReadonlyArray<Resource>,
  polls: Feed.Polls
) => {
  const query = FeedQuery.makeChangesQuery(resources)

  /** Fails unless all records are on one server: a position in the order means nothing on another. */
  const requireSingle = Effect.gen(function* () {
    if (sql.distribution.isDistributed() !== false) yield* sql.distribution.refresh
    const isDistributed = sql.distribution.isDistributed()
    if (isDistributed === undefined) return yield* new RecordStoreDown()
    if (isDistributed) return yield* notServed
  })

  const feed = Feed.make(resources, {
    polls,
    largePage,
    read: Effect.fnUntraced(function* (walks, limit, mark) {
      return yield* FeedQuery.decodeRows(yield* read(query(walks, limit, mark)))
    })
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
      (rows.get(name) ?? []).map((row) => ({ ...row, position, branch, name }))
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
    largePage: Infinity,
    read: Effect.fnUntraced(function* (walks, limit) {
      const organization = yield* CurrentOrganization.id
      const read = walks.flatMap((walk) =>
        rangesOf(walk).flatMap((range) =>
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
