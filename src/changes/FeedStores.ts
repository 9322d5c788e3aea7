/** The stores that feeds of changes are read from: the tables of the records, or rows in memory. */
import { Array, Effect } from "effect"
import { CurrentOrganization } from "../api/Authorization.ts"
import { ChangesNotServed, RecordStoreDown } from "../api/Errors.ts"
import type { Database } from "../database/Database.ts"
import type { Json } from "../database/RecordJson.ts"
import * as OrganizationReads from "../keys/OrganizationReads.ts"
import * as Tracing from "../observability/Tracing.ts"
import * as Feed from "./Feed.ts"
import type { FeedDefinition } from "./FeedDefinition.ts"
import type { FeedSnapshot } from "./FeedSnapshot.ts"
import * as FeedQuery from "./FeedQuery.ts"
import { byPlace, isAfter, rangesOf } from "./Walk.ts"

// Made once: a stack trace costs more than the rest of the response.
const notServed = new ChangesNotServed()

/** A feed of the records in a database. */
export const databaseFeed = (sql: Database, definition: FeedDefinition, clock: Feed.Store["clock"]): Feed.Feed => {
  const read = OrganizationReads.make(sql)
  const query = FeedQuery.makeChangesQuery(definition)

  /** Fails unless all records are on one server: a position in the order means nothing on another. */
  const requireSingle = Effect.gen(function* () {
    if (sql.distribution.isDistributed() !== false) yield* sql.distribution.refresh
    const isDistributed = sql.distribution.isDistributed()
    if (isDistributed === undefined) return yield* new RecordStoreDown()
    if (isDistributed) return yield* notServed
  })

  const feed = Feed.make(definition, {
    clock,
    largePage: OrganizationReads.largePage,
    read: (walks, limit, mark) => Effect.flatMap(read(query(walks, limit, mark)), FeedQuery.decodeRows)
  })
  const span = Tracing.spanned("Records.changes", { "db.collection.name": definition.name })
  return (request) => span(Effect.andThen(requireSingle, feed(request)))
}

/** All records were written by one transaction, and nothing has changed since. */
const position = 0

const token = "00000000"

/** The clock of a store in which nothing changes. */
export const stillClock: Feed.Store["clock"] = {
  hasMark: () => Effect.succeed(true),
  isOfRun: () => Effect.succeed(true),
  keep: Effect.void,
  lag: () => Effect.succeed(0),
  wait: (_, timeout) => Effect.as(Effect.sleep(timeout), false)
}

interface StoredRow {
  readonly organization: string
  readonly id: string
  readonly record: Json
}

/** A feed of rows, by the name of their resource, which never change. */
export const memoryFeed = (
  definition: FeedDefinition,
  rows: ReadonlyMap<string, ReadonlyArray<StoredRow>>
): Feed.Feed => {
  const changes = Array.sort(
    definition.resources.flatMap(({ name, table: branch }) =>
      (rows.get(name) ?? []).map((row) => ({ ...row, position, branch, name }))
    ),
    byPlace
  )
  const tables = [definition.orderTable, ...definition.resources.map(({ table }) => table)]
  const snapshot: Omit<FeedSnapshot, "organization"> = {
    base: 0,
    snapshot: "1:1:",
    inFlight: 0,
    isStandby: false,
    tokens: Object.fromEntries(tables.map((table) => [table, token])),
    mark: token,
    marked: 0,
    keptFrom: 0,
    run: "",
    wal: 0,
    state: { isInPlace: true, isMarked: true, proven: null, durableUntil: null }
  }
  return Feed.make(definition, {
    largePage: Infinity,
    read: (walks, limit) =>
      Effect.map(CurrentOrganization.id, (organization) => {
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
      }),
    clock: stillClock
  })
}
