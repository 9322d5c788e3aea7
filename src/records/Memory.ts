/** Reads records that are held in memory, by the same rules as the database. */
import { Array, Effect, Order, Predicate } from "effect"
import { RecordNotFound } from "../api/Errors.ts"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { type Condition, conditionsOf } from "../api/records/Filter.ts"
import * as Instant from "../api/records/Instant.ts"
import type { Resource } from "../api/records/Resource.ts"
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
    case "IsFalse":
      return columns[condition.column] !== true
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
        const page = found.slice(offset, offset + limit)
        return `{"body":[${page.map((row) => row.json).join(",")}]}`
      }),
    get: (id) =>
      Effect.flatMap(owned, (all) => {
        const row = all.find((candidate) => candidate.id === id)
        return row === undefined ? Effect.fail(new RecordNotFound()) : Effect.succeed(row.json)
      })
  }
}
