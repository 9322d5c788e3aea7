/** Reads records that are held in memory, by the same rules as the database. */
import { Array, Effect, Order, Predicate } from "effect"
import { RecordNotFound } from "../api/Errors.ts"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import type * as Field from "../api/records/Field.ts"
import { type Condition, conditionsOf } from "../api/records/Filter.ts"
import * as Instant from "../api/records/Instant.ts"
import type { Repository } from "./Repository.ts"
import { type Filters, type Resource, type Row, rowsOf, type Stored } from "../api/records/Resource.ts"

const instantOf = (value: unknown) => (Predicate.isString(value) ? Instant.fromMillis(Date.parse(value)) : undefined)

const satisfies = ({ values }: Row, condition: Condition): boolean => {
  switch (condition._tag) {
    case "Equals":
      return condition.columns.some((column) => values[column] === condition.value)
    case "NumberEquals":
      return values[condition.column] === Number(condition.value)
    case "AtLeast": {
      const instant = instantOf(values[condition.column])
      return instant !== undefined && instant >= condition.value
    }
    case "Before": {
      const instant = instantOf(values[condition.column])
      return instant !== undefined && instant < condition.value
    }
    case "IsFalse":
      return values[condition.column] !== true
    case "Never":
      return false
  }
}

const encoder = new TextEncoder()
const byBytes = Order.mapInput(Order.Array(Order.Number), (text: string) => [...encoder.encode(text)])

const inOrder = (column: string) =>
  Order.combine(
    Order.mapInput(Order.BigInt, (row: Row) => instantOf(row.values[column]) ?? 0n),
    Order.mapInput(byBytes, (row: Row) => row.id)
  )

/** A repository over the given records. */
export const make = Effect.fnUntraced(function* <
  Name extends string,
  Fields extends Field.Fields,
  Hidden extends Field.Fields,
  F extends Filters
>(resource: Resource<Name, Fields, Hidden, F>, records: ReadonlyArray<Stored<Fields, Hidden>>) {
  const rows = Array.sort(yield* rowsOf(resource, records), inOrder(resource.orderedBy))
  const owned = Effect.map(CurrentOrganization.id, (id) => rows.filter((row) => row.organization === id))
  const repository: Repository = {
    search: (request, { limit, offset }) =>
      Effect.map(owned, (all) => {
        const conditions = conditionsOf(resource.filters, request)
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
  return repository
})
