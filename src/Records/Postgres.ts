/** Reads records from Postgres. */
import { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { reasonOf, RecordDatabase, within } from "../Database/Database.ts"
import { RecordNotFound, Unavailable } from "../Errors.ts"
import { CurrentOrganization } from "../Organization/CurrentOrganization.ts"
import { type Condition, conditionsOf } from "./Filter.ts"
import * as Instant from "./Instant.ts"
import type { Criteria, Repository } from "./Repository.ts"
import type { Resource } from "./Resource.ts"
import type { Page } from "./Search.ts"

interface Query {
  readonly text: string
  readonly values: ReadonlyArray<unknown>
}

/**
 * The ways in which a condition can hold, each one a range of one index. Together they cover every row that satisfies
 * the condition, and no row twice.
 */
const ranges = (condition: Condition, orderedBy: string, bind: (value: unknown) => string): ReadonlyArray<string> => {
  switch (condition._tag) {
    case "Equals": {
      const value = bind(condition.value)
      return condition.columns.map((column, index) =>
        [
          `t.${column} = ${value}`,
          ...condition.columns.slice(0, index).map((earlier) => `t.${earlier} is distinct from t.${column}`)
        ].join(" and ")
      )
    }
    case "NumberEquals":
      return [`t.${condition.column} = ${bind(condition.value)}::numeric`]
    case "AtLeast": {
      const value = `${bind(Instant.toPostgres(condition.value))}::timestamptz`
      if (condition.column === orderedBy) return [`t.${orderedBy} >= ${value}`]
      // Nearly no row is changed before it is created, so the rows to return stand at the end of the order.
      const { column } = condition
      return [
        `t.${column} >= ${value} and t.${orderedBy} >= ${value}`,
        `t.${column} >= ${value} and t.${orderedBy} < ${value} and t.${orderedBy} < t.${column}`
      ]
    }
    case "Before":
      return [`t.${condition.column} < ${bind(Instant.toPostgres(condition.value))}::timestamptz`]
    case "IsFalse":
      return [`not t.${condition.column}`]
    case "Never":
      return ["false"]
  }
}

const combinations = (sets: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<ReadonlyArray<string>> =>
  sets.reduce<ReadonlyArray<ReadonlyArray<string>>>(
    (combined, set) => combined.flatMap((chosen) => set.map((range) => [...chosen, range])),
    [[]]
  )

/** The query of a page. Where a filter has several ranges, each is read in order, and the results are merged. */
export const searchQuery = (resource: Resource, organization: string, criteria: Criteria, page: Page): Query => {
  const values: Array<unknown> = []
  const bind = (value: unknown) => `$${values.push(value)}`
  const owned = `t.organization_id = ${bind(organization)}`
  const order = `t.${resource.orderedBy}, t.id`
  const branches = combinations(
    conditionsOf(resource.filters, criteria).map((condition) => ranges(condition, resource.orderedBy, bind))
  )
  const limit = `limit ${page.limit}`
  const offset = page.offset === 0 ? "" : ` offset ${page.offset}`
  const select = (columns: string, where: ReadonlyArray<string>, limited: string) =>
    `select ${columns} from ${resource.table} t where ${[owned, ...where].join(" and ")} order by ${order} ${limited}`
  const [first = []] = branches
  const rows =
    branches.length === 1
      ? select("t.record", first, limit + offset)
      : `select t.record from (${branches
          .map((where) => `(${select(`t.record, ${order}`, where, `limit ${page.limit + page.offset}`)})`)
          .join(" union all ")}) t order by ${order} ${limit}${offset}`
  return { text: `select coalesce(string_agg(p.record, ','), '') as records from (${rows}) p`, values }
}

/** A repository over the table of a resource. */
export const make = Effect.fnUntraced(function* (resource: Resource) {
  const sql = yield* RecordDatabase
  const run = <A extends object>(query: Query) =>
    sql.unsafe<A>(query.text, query.values).pipe(
      within("8 seconds", () => Unavailable.records),
      Effect.catchTag("SqlError", (error: SqlError) =>
        Effect.andThen(
          Effect.logWarning("The record store did not answer", reasonOf(error)),
          Effect.fail(Unavailable.records)
        )
      )
    )
  const getText = `select record from ${resource.table} where organization_id = $1 and id = $2`
  const repository: Repository = {
    search: Effect.fn("Records.search", { attributes: { table: resource.table } })(function* (criteria, page) {
      const { id } = yield* CurrentOrganization
      const rows = yield* run<{ records: string }>(searchQuery(resource, id, criteria, page))
      return `{"body":[${rows[0]?.records ?? ""}]}`
    }),
    get: Effect.fn("Records.get", { attributes: { table: resource.table } })(function* (id) {
      const organization = yield* CurrentOrganization
      const rows = yield* run<{ record: string }>({ text: getText, values: [organization.id, id] })
      return rows[0] === undefined ? yield* RecordNotFound.error : rows[0].record
    })
  }
  return repository
})
