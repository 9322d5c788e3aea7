/** Reads records that are held in memory, by the same rules as the database. */
import { Array, Duration, Effect, Order, Predicate } from "effect"
import { CursorInvalid, RecordNotFound } from "../api/Errors.ts"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { type Condition, conditionsOf } from "../api/records/Filter.ts"
import * as Instant from "../api/records/Instant.ts"
import type { Resource } from "../api/records/Resource.ts"
import { note } from "../observability/RequestFacts.ts"
import { pageOf, responseOf } from "./ChangesPage.ts"
import * as Cursor from "./Cursor.ts"
import * as Json from "./Json.ts"
import type { Repository } from "./Repository.ts"
import type { Row } from "./Row.ts"

const instantOf = (value: unknown) => (Predicate.isString(value) ? Instant.fromMillis(Date.parse(value)) : undefined)

const satisfies = ({ columns }: Row, condition: Condition): boolean => {
  switch (condition._tag) {
    case "Equals":
      return condition.columns.some((column) => columns[column] === condition.value)
    case "NumberEquals":
      return columns[condition.column] === Number(condition.value)
    case "AtLeast": {
      const instant = instantOf(columns[condition.column])
      return instant !== undefined && instant >= condition.value
    }
    case "Before": {
      const instant = instantOf(columns[condition.column])
      return instant !== undefined && instant < condition.value
    }
    case "Marked":
      return condition.isIncluded || columns[condition.column] !== true
    case "Never":
      return false
  }
}

const encoder = new TextEncoder()
const byBytes = Order.mapInput(Order.Array(Order.Number), (text: string) => [...encoder.encode(text)])

const inOrder = (column: string) =>
  Order.combine(
    Order.mapInput(Order.BigInt, (row: Row) => instantOf(row.columns[column]) ?? 0n),
    Order.mapInput(byBytes, (row: Row) => row.id)
  )

/** Nothing changes here: the feed is every record, once, in the order of the ids. */
const feed = { feed: "00000000", mark: "00000000", ceiling: 0, wal: 0, floor: 0 } as const

/** A repository over rows of any number of organizations. */
export const make = <R extends Resource>(resource: R, rows: ReadonlyArray<Row>): Repository<R> => {
  const ordered = Array.sort(rows, inOrder(resource.orderedBy))
  const owned = Effect.map(CurrentOrganization.id, (id) => ordered.filter((row) => row.organization === id))
  return {
    resource,
    search: (criteria, { limit, offset }) =>
      Effect.map(owned, (all) => {
        const conditions = conditionsOf(resource.filters, criteria)
        const found = all.filter((row) => conditions.every((condition) => satisfies(row, condition)))
        return found.slice(offset, offset + limit)
      }).pipe(
        Effect.tap((page) => note({ rows: page.length })),
        Effect.map((page) =>
          Json.list(
            '{"body":[',
            page.map(({ json }) => Json.fromText(json)),
            "]}"
          )
        )
      ),
    get: (id) =>
      Effect.flatMap(owned, (all) => {
        const row = all.find((candidate) => candidate.id === id)
        return row === undefined
          ? Effect.fail(new RecordNotFound())
          : Effect.as(note({ rows: 1 }), Json.fromText(row.json))
      }),
    changes: Effect.fnUntraced(function* ({ cursor: given, limit, wait = Duration.zero }) {
      const owner = { organization: yield* CurrentOrganization.id, resource: resource.name }
      const cursor = given === undefined ? undefined : Cursor.decode(given)
      if (given !== undefined && (cursor === undefined || !Cursor.isOf(given, owner))) return yield* new CursorInvalid()
      const before = cursor ?? Cursor.start
      const inOrderOfIds = Order.mapInput(byBytes, (row: Row) => row.id)
      const after = Array.sort(yield* owned, inOrderOfIds).filter(({ id }) =>
        Order.isGreaterThan(byBytes)(id, before.id)
      )
      const found = after
        .slice(0, limit + 1)
        .map(({ json }) => ({ record: Json.fromText(json), removal: null, position: 0 }))
      if (found.length === 0) yield* Effect.sleep(wait)
      const page = pageOf(found, limit)
      const target = page.hasMore && cursor?.target !== 0 ? 1 : 0
      const { id, position } = page.last ?? before
      return responseOf(page, {
        cursor: Cursor.encode({ ...feed, target, id, position }, owner),
        isComplete: target === 0,
        lag: 0
      })
    })
  }
}
