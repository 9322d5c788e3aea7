/** Reads records that are held in memory, by the same rules as the database. */
import { Array, Duration, Effect, Order } from "effect"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { CursorInvalid, RecordNotFound } from "../api/Errors.ts"
import type { Resource } from "../api/records/Resource.ts"
import { note } from "../observability/RequestFacts.ts"
import * as Cursor from "./Cursor.ts"
import * as Pages from "./Pages.ts"
import type { Repository } from "./Repository.ts"
import type { Row } from "./Rows.ts"
import { conditionsOf, instantOf } from "./SearchQuery.ts"

const encoder = new TextEncoder()
const byBytes = Order.mapInput(Order.Array(Order.Number), (text: string) => [...encoder.encode(text)])
const byId = Order.mapInput(byBytes, (row: Row) => row.id)

const inOrder = (column: string) =>
  Order.combine(
    Order.mapInput(Order.BigInt, (row: Row) => instantOf(row.columns[column]) ?? 0n),
    byId
  )

const recordOf = ({ json }: Row) => ({ record: Pages.fromText(json), removal: null, position: 0 })

/** The feed is every record, once, in the order of the ids: nothing changes here. */
const feed = { feed: "00000000", mark: "00000000", ceiling: 0, wal: 0, floor: 0 } as const

/** A repository over rows of any number of organizations. */
export const make = <R extends Resource>(resource: R, rows: ReadonlyArray<Row>): Repository<R> => {
  const ordered = Array.sort(rows, inOrder(resource.orderedBy))
  const owned = Effect.map(CurrentOrganization.id, (id) => ordered.filter((row) => row.organization === id))
  return {
    resource,
    search: (criteria, { limit, offset }) =>
      Effect.flatMap(owned, (all) => {
        const conditions = conditionsOf(resource, criteria)
        const matching = all.filter(({ columns }) => conditions.every(({ holds }) => holds(columns)))
        return Pages.searchPage(matching.slice(offset, offset + limit).map(recordOf))
      }),
    get: (id) =>
      Effect.flatMap(owned, (all) => {
        const row = all.find((candidate) => candidate.id === id)
        return row === undefined
          ? Effect.fail(new RecordNotFound())
          : Effect.as(note({ rows: 1 }), Pages.fromText(row.json))
      }),
    changes: Effect.fnUntraced(function* ({ cursor: given, limit, wait = Duration.zero }) {
      const owner = { organization: yield* CurrentOrganization.id, resource: resource.name }
      const cursor = given === undefined ? undefined : Cursor.decode(given)
      if (given !== undefined && (cursor === undefined || !Cursor.isOf(given, owner))) return yield* new CursorInvalid()
      const before = cursor ?? Cursor.start
      const after = Array.sort(yield* owned, byId).filter(({ id }) => Order.isGreaterThan(byBytes)(id, before.id))
      if (after.length === 0) yield* Effect.sleep(wait)
      const page = Pages.changesPage(after.slice(0, limit + 1).map(recordOf), limit)
      const target = page.hasMore && cursor?.target !== 0 ? 1 : 0
      const { id, position } = page.last ?? before
      return Pages.changesResponse(page, {
        cursor: Cursor.encode({ ...feed, target, id, position }, owner),
        isComplete: target === 0,
        lag: 0
      })
    })
  }
}
