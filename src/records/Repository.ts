/** The repositories of records. Between the store and the socket, nothing parses their JSON. */
import { Array, Context, Effect, Layer, Order } from "effect"
import { CurrentOrganization } from "../api/Authorization.ts"
import { RecordNotFound, RecordStoreDown } from "../api/Errors.ts"
import { type Records, resources, searchable } from "../api/records/index.ts"
import type { Resource, Stored } from "../api/records/Resource.ts"
import type { Page } from "../api/records/Requests.ts"
import { databaseFeed, memoryFeed } from "../changes/FeedStores.ts"
import { LongPolls } from "../changes/Feed.ts"
import { ChangeDatabase, RecordDatabase } from "../database/Database.ts"
import { concat, type Json } from "../database/Columns.ts"
import * as OrganizationReads from "../database/OrganizationReads.ts"
import { note } from "../observability/RequestFacts.ts"
import * as Tracing from "../observability/Tracing.ts"
import { type Row, toRows } from "./Rows.ts"
import { toConditions, type FilterValues, getQuery, storedInstant, searchQuery } from "./SearchQuery.ts"

export type { FilterValues }

/** Reads the records of one resource, by default for the current organization. */
export interface Repository<R extends Resource = Resource, E = RecordStoreDown, C = CurrentOrganization> {
  readonly resource: R
  /** A page: `{"body":[...]}`, the records in the resource's order. */
  readonly search: (filters: FilterValues<R>, page: Page) => Effect.Effect<Json, E, C>
  readonly get: (id: string) => Effect.Effect<Json, RecordNotFound | E, C>
}

export class Repositories extends Context.Service<Repositories>()("practice-data/records/Repository", {
  make: Effect.gen(function* () {
    const read = OrganizationReads.make(yield* RecordDatabase)
    const changed = yield* ChangeDatabase
    return {
      /** Makes the repository of a resource: call it when a layer is built, not for each request. */
      of: <R extends Resource>(resource: R) => make(read, resource),
      /** The changes of all resources. */
      changes: databaseFeed(changed, OrganizationReads.make(changed), searchable, yield* LongPolls)
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
            return Effect.map(toRows(resource, records), (all) => [resource.name, all] as const)
          })
        )
        return Repositories.of({
          of: (resource) => makeMemory(resource, rows.get(resource.name) ?? []),
          changes: memoryFeed(searchable, rows, yield* LongPolls.make)
        })
      })
    )
}

// Made once: a stack trace costs more than the rest of the response.
const notFound = new RecordNotFound()

const foundOrNot = Effect.fnUntraced(function* (record: Json | undefined) {
  if (record === undefined) return yield* notFound
  yield* note({ rows: 1 })
  return record
})

/** The page of a search: `{"body":[...]}`. */
const searchPage = Effect.fnUntraced(function* (rows: ReadonlyArray<{ readonly record: Json }>) {
  yield* note({ rows: rows.length })
  const records = rows.map(({ record }) => record)
  return concat('{"body":[', records, "]}")
})

const spanned = (name: string, collection: string) => Tracing.spanned(name, { "db.collection.name": collection })

/** @param deep as in `searchQuery` */
export const make = <R extends Resource, E, C>(
  read: OrganizationReads.Reader<E, C>,
  resource: R,
  deep?: number
): Repository<R, E, C> => ({
  resource,
  search: Effect.fnUntraced(
    function* (filters: FilterValues<R>, page: Page) {
      return yield* searchPage(yield* read(searchQuery(resource, filters, page, deep)))
    },
    spanned("Records.search", resource.table)
  ),
  get: Effect.fnUntraced(
    function* (id: string) {
      const [row] = yield* read(getQuery(resource, id))
      return yield* foundOrNot(row?.record)
    },
    spanned("Records.get", resource.table)
  )
})

const inOrder = (column: string) =>
  Order.combine(
    Order.mapInput(Order.BigInt, (row: Row) => storedInstant(row.columns[column]) ?? 0n),
    Order.make((left, right) => Buffer.compare(Buffer.from(left.id), Buffer.from(right.id)))
  )

export const makeMemory = <R extends Resource>(resource: R, rows: ReadonlyArray<Row>): Repository<R> => {
  const ordered = Array.sort(rows, inOrder(resource.orderedBy))
  const owned = Effect.map(CurrentOrganization.id, (id) => ordered.filter((row) => row.organization === id))
  return {
    resource,
    search: Effect.fnUntraced(function* (filters, { limit, offset }) {
      const conditions = toConditions(resource, filters)
      const matching = (yield* owned).filter(({ columns }) => conditions.every(({ holds }) => holds(columns)))
      return yield* searchPage(matching.slice(offset, offset + limit))
    }),
    get: Effect.fnUntraced(function* (id) {
      return yield* foundOrNot((yield* owned).find((row) => row.id === id)?.record)
    })
  }
}
