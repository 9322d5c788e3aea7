/** The repositories of records. Between the store and the socket, nothing parses their JSON. */
import { Array, Context, Effect, Layer, Order, Schema } from "effect"
import { CurrentOrganization } from "../api/Authorization.ts"
import { ChangesNotServed, RecordNotFound, RecordStoreDown } from "../api/Errors.ts"
import { type Records, resources, searchable } from "../api/records/index.ts"
import type { Resource, Stored } from "../api/records/Resource.ts"
import type { Page } from "../api/records/Requests.ts"
import { type Database, RecordDatabase } from "../database/Database.ts"
import * as OrganizationReads from "../keys/OrganizationReads.ts"
import { note } from "../observability/RequestFacts.ts"
import * as Tracing from "../observability/Tracing.ts"
import { ChangeClock } from "./ChangeClock.ts"
import * as Cursor from "./Cursor.ts"
import * as Feed from "./Feed.ts"
import * as FeedQuery from "./FeedQuery.ts"
import * as Pages from "./Pages.ts"
import { type Row, rowsOf } from "./Rows.ts"
import { conditionsOf, type Criteria, getQuery, instantOf, searchQuery } from "./SearchQuery.ts"
import { byPlace, isAfter, rangesOf } from "./Walk.ts"

export type { Criteria, Page }

/** Reads the records of one resource for the current organization. */
export interface Repository<R extends Resource = Resource> {
  readonly resource: R
  /** A page: `{"body":[...]}`, the records in the resource's order. */
  readonly search: (
    criteria: Criteria<R>,
    page: Page
  ) => Effect.Effect<Pages.Json, RecordStoreDown, CurrentOrganization>
  readonly get: (id: string) => Effect.Effect<Pages.Json, RecordNotFound | RecordStoreDown, CurrentOrganization>
  readonly changes: Feed.Feed
}

export class Repositories extends Context.Service<Repositories>()("practice-data/records/Repository", {
  make: Effect.gen(function* () {
    const sql = yield* RecordDatabase
    const clock = yield* ChangeClock
    return {
      /** Makes the repository of a resource: call it when a layer is built, not for each request. */
      of: <R extends Resource>(resource: R) => make(sql, resource, clock),
      /** The changes of all resources. */
      changes: makeChanges(sql, Pages.ofAll(searchable), clock)
    }
  })
}) {
  /** Reads the resources' tables in the record database. */
  static readonly layer = Layer.effect(Repositories, Repositories.make)

  /**
   * The fake: records of any number of organizations, held in memory.
   *
   * @param sets records by the name of their resource; by default none
   */
  static readonly layerMemory = (...sets: ReadonlyArray<Partial<Records>>) =>
    Layer.effect(
      Repositories,
      Effect.gen(function* () {
        const stored: ReadonlyArray<Partial<Readonly<Record<string, ReadonlyArray<Stored>>>>> = sets
        const rows = new Map(
          yield* Effect.forEach(resources, (resource: Resource) => {
            const records = stored.flatMap((set) => set[resource.name] ?? [])
            return Effect.map(rowsOf(resource, records), (all) => [resource.name, all] as const)
          })
        )
        return Repositories.of({
          of: (resource) => makeMemory(resource, rows.get(resource.name) ?? []),
          changes: makeMemoryChanges(Pages.ofAll(searchable), rows)
        })
      })
    )
}

// Made once: a stack trace costs more than the rest of the response.
const notFound = new RecordNotFound()
const notServed = new ChangesNotServed()

const foundOrNot = (record: Pages.Json | undefined) =>
  record === undefined ? Effect.fail(notFound) : Effect.as(note({ rows: 1 }), record)

const spanned = (name: string, collection: string) => Tracing.spanned(name, { "db.collection.name": collection })

const decodeSnapshot = Schema.decodeEffect(Schema.fromJsonString(Cursor.FeedSnapshot))

export const makeChanges = (sql: Database, kind: Pages.Kind, clock: Feed.Store["clock"]): Feed.Feed => {
  const read = OrganizationReads.make(sql)
  const [changesQuery, markedQuery] = [FeedQuery.makeChangesQuery(kind, false), FeedQuery.makeChangesQuery(kind, true)]

  /** Fails unless all records are on one server: a position in the order means nothing on another. */
  const requireSingle = Effect.gen(function* () {
    yield* sql.distribution.refresh
    const isDistributed = sql.distribution.isDistributed()
    if (isDistributed === undefined) return yield* new RecordStoreDown()
    if (isDistributed) return yield* notServed
  })

  const changes = Feed.make(kind, {
    clock,
    largePage: OrganizationReads.largePage,
    check: Effect.suspend(() => (sql.distribution.isDistributed() === false ? Effect.void : requireSingle)),
    read: (walks, limit, mark) => {
      const [rows, ranges] = [String(limit + 1), FeedQuery.rangesText(kind, walks)]
      const query = mark === undefined ? changesQuery(limit, [rows, ranges]) : markedQuery(limit, [rows, ranges, mark])
      return Effect.flatMap(read(query), ([first, ...found]) =>
        Effect.map(Effect.orDie(decodeSnapshot(first?.removal ?? "")), (snapshot) => ({ snapshot, rows: found }))
      )
    }
  })
  const span = spanned("Records.changes", kind.name)
  return (request) => span(changes(request))
}

/** @param deep as in `searchQuery` */
export const make = <R extends Resource>(
  sql: Database,
  resource: R,
  clock: Feed.Store["clock"],
  deep?: number
): Repository<R> => {
  const read = OrganizationReads.make(sql)
  const [asSearch, asGet] = [spanned("Records.search", resource.table), spanned("Records.get", resource.table)]
  return {
    resource,
    search: (criteria, page) =>
      asSearch(Effect.flatMap(read(searchQuery(resource, criteria, page, deep)), Pages.searchPage)),
    get: (id) => asGet(Effect.flatMap(read(getQuery(resource, id)), ([row]) => foundOrNot(row?.record))),
    changes: makeChanges(sql, Pages.ofResource(resource), clock)
  }
}

const inOrder = (column: string) =>
  Order.combine(
    Order.mapInput(Order.BigInt, (row: Row) => instantOf(row.columns[column]) ?? 0n),
    Order.make((left, right) => Buffer.compare(Buffer.from(left.id), Buffer.from(right.id)))
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
const makeMemoryChanges = (kind: Pages.Kind, rows: ReadonlyMap<string, ReadonlyArray<Row>>): Feed.Feed => {
  const changes = Array.sort(
    kind.resources.flatMap(({ name, table: branch }) =>
      (rows.get(name) ?? []).map((row) => ({ ...row, position, branch, name, removal: null }))
    ),
    byPlace
  )
  const tables = [kind.ordered, ...kind.resources.map(({ table }) => table)]
  const snapshot: Omit<Cursor.FeedSnapshot, "organization"> = {
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

export const makeMemory = <R extends Resource>(resource: R, rows: ReadonlyArray<Row>): Repository<R> => {
  const ordered = Array.sort(rows, inOrder(resource.orderedBy))
  const owned = Effect.map(CurrentOrganization.id, (id) => ordered.filter((row) => row.organization === id))
  return {
    resource,
    search: (criteria, { limit, offset }) =>
      Effect.flatMap(owned, (all) => {
        const conditions = conditionsOf(resource, criteria)
        const matching = all.filter(({ columns }) => conditions.every(({ holds }) => holds(columns)))
        return Pages.searchPage(matching.slice(offset, offset + limit))
      }),
    get: (id) => Effect.flatMap(owned, (all) => foundOrNot(all.find((row) => row.id === id)?.record)),
    changes: makeMemoryChanges(Pages.ofResource(resource), new Map([[resource.name, rows]]))
  }
}
