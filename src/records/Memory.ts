/** Reads records that are held in memory, by the same rules as the database. */
import { Array, Effect, Order } from "effect"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { RecordNotFound } from "../api/Errors.ts"
import type { Resource } from "../api/records/Resource.ts"
import { note } from "../observability/RequestFacts.ts"
import type { FeedSnapshot } from "./Cursor.ts"
import * as Feed from "./Feed.ts"
import { type Kind, ofResource } from "./FeedPages.ts"
import * as Pages from "./Pages.ts"
import type { AllChanges, Repository } from "./Repository.ts"
import type { Row } from "./Rows.ts"
import { conditionsOf, instantOf } from "./SearchQuery.ts"
import { byPlace, isAfter, rangesOf } from "./Walk.ts"

const byId = Order.make<Row>((left, right) => Buffer.compare(Buffer.from(left.id), Buffer.from(right.id)))

const inOrder = (column: string) =>
  Order.combine(
    Order.mapInput(Order.BigInt, (row: Row) => instantOf(row.columns[column]) ?? 0n),
    byId
  )

/** All records were written by one transaction, and nothing has changed since. */
const position = 0

const token = "00000000"

/** The clock of a store in which nothing changes. */
export const still: Feed.Store["clock"] = {
  hasMark: () => Effect.succeed(true),
  isOfRun: () => Effect.succeed(true),
  keep: Effect.void,
  lag: () => Effect.succeed(0),
  wait: (_, timeout) => Effect.as(Effect.sleep(timeout), false)
}

/** The changes of rows, by the name of their resource. */
export const makeChanges = (kind: Kind, rows: ReadonlyMap<string, ReadonlyArray<Row>>): AllChanges => {
  const changes = Array.sort(
    kind.resources.flatMap(({ name, table: branch }) =>
      (rows.get(name) ?? []).map(({ id, json, organization }) => {
        const record = Pages.fromText(json)
        return { position, id, branch, name, organization, record, removal: null }
      })
    ),
    byPlace
  )
  const tables = [kind.ordered, ...kind.resources.map(({ table }) => table)]
  const snapshot: Omit<FeedSnapshot, "organization"> = {
    base: 0,
    snapshot: "1:1:",
    inFlight: 0,
    isStandby: false,
    tokens: Object.fromEntries(tables.map((table) => [table, token])),
    mark: token,
    marked: 0,
    run: "",
    wal: 0,
    state: { isInPlace: true, isMarked: true, proven: null, durableUntil: null }
  }
  return Feed.make(kind, {
    check: Effect.void,
    largePage: Infinity,
    read: (walks, limit) =>
      Effect.map(CurrentOrganization.id, (organization) => {
        const found = walks.flatMap((walk) =>
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
        return { snapshot: { ...snapshot, organization }, rows: found.slice(0, limit + 1) }
      }),
    clock: still
  })
}

export const make = <R extends Resource>(resource: R, rows: ReadonlyArray<Row>): Repository<R> => {
  const ordered = Array.sort(rows, inOrder(resource.orderedBy))
  const owned = Effect.map(CurrentOrganization.id, (id) => ordered.filter((row) => row.organization === id))
  return {
    resource,
    search: (criteria, { limit, offset }) =>
      Effect.flatMap(owned, (all) => {
        const conditions = conditionsOf(resource, criteria)
        const matching = all.filter(({ columns }) => conditions.every(({ holds }) => holds(columns)))
        return Pages.searchPage(
          matching.slice(offset, offset + limit).map(({ json }) => ({ record: Pages.fromText(json) }))
        )
      }),
    get: (id) =>
      Effect.flatMap(owned, (all) => {
        const row = all.find((candidate) => candidate.id === id)
        return row === undefined
          ? Effect.fail(new RecordNotFound())
          : Effect.as(note({ rows: 1 }), Pages.fromText(row.json))
      }),
    changes: makeChanges(ofResource(resource), new Map([[resource.name, rows]]))
  }
}
