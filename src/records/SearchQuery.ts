/**
 * The statements that read records, for an owner: the SQL of an organization's id. Each returns rows of a record's JSON.
 */
import type { PgClient } from "@effect/sql-pg"
import type { Fragment, Statement } from "effect/sql/Statement"
import { type Condition, conditionsOf } from "../api/records/Filter.ts"
import * as Instant from "../api/records/Instant.ts"
import type { Resource } from "../api/records/Resource.ts"
import type { Page } from "../api/records/Search.ts"
import { keyRow } from "../keys/KeyLookup.ts"
import type { Criteria } from "./Repository.ts"

/** A statement that reads records. */
export interface Query {
  readonly statement: Statement<{ readonly record: string }>
  /** Whether the plan does not depend on the values, so that it is made once. */
  readonly isPlannedOnce: boolean
}

/** Whether one index is the best whatever the values: besides the order, it has to serve one exact value at most. */
const hasOneBestIndex = ({ orderedBy }: Resource, conditions: ReadonlyArray<Condition>) => {
  const others = conditions.filter(
    (condition) => condition._tag !== "IsFalse" && !(condition._tag === "AtLeast" && condition.column === orderedBy)
  )
  return others.length <= 1 && others.every(({ _tag }) => _tag === "Equals" || _tag === "NumberEquals")
}

/** The offset from which walking the index first is faster, measured (`npm run bench`). */
const deepOffset = 1500

const combinations = (sets: ReadonlyArray<ReadonlyArray<Fragment>>): ReadonlyArray<ReadonlyArray<Fragment>> =>
  sets.reduce<ReadonlyArray<ReadonlyArray<Fragment>>>(
    (combined, set) => combined.flatMap((chosen) => set.map((range) => [...chosen, range])),
    [[]]
  )

/**
 * The query of a page. Where a filter has several ranges, each is read in order, and the results are merged. Limit and
 * offset are in the text, since a plan for any limit would sort the whole organization.
 *
 * @param deep the offset from which the records to skip are skipped in the index alone, and only the rows of the page
 *   are touched
 */
export const searchQuery = (
  sql: PgClient.PgClient,
  owner: Fragment,
  resource: Resource,
  criteria: Criteria,
  { limit, offset }: Page,
  deep = deepOffset
): Query => {
  const { orderedBy } = resource
  const conditions = conditionsOf(resource.filters, criteria)
  const isPlannedOnce = offset === 0 && hasOneBestIndex(resource, conditions)
  const text = sql.literal
  const join = sql.join(" and ", false)

  /** A value, hidden from the planner of a plan for all values: otherwise Postgres replans for each of them. */
  const valueOf = (value: string, type: string) =>
    isPlannedOnce ? sql`(select ${value}${text(`::${type}`)})` : sql`${value}${text(`::${type}`)}`

  /**
   * The ways in which a condition can hold, each one a range of one index. Together they cover every row that satisfies
   * the condition, and no row twice.
   */
  const rangesOf = (condition: Condition): ReadonlyArray<Fragment> => {
    switch (condition._tag) {
      case "Equals": {
        const value = valueOf(condition.value, "text")
        return condition.columns.map((column, index) =>
          join([
            sql`${text(`t.${column} = `)}${value}`,
            ...condition.columns.slice(0, index).map((earlier) => `t.${earlier} is distinct from t.${column}`)
          ])
        )
      }
      case "NumberEquals":
        return [sql`${text(`t.${condition.column} = `)}${valueOf(condition.value, "numeric")}`]
      case "AtLeast": {
        const { column } = condition
        const value = valueOf(Instant.toPostgres(condition.value), "timestamptz")
        const isFrom = (of: string) => sql`${text(`t.${of} >= `)}${value}`
        if (column === orderedBy) return [isFrom(column)]
        // Nearly no row is changed before it is created, so the rows to return stand at the end of the order.
        return [
          join([isFrom(column), isFrom(orderedBy)]),
          join([isFrom(column), sql`${text(`t.${orderedBy} < `)}${value}`, `t.${orderedBy} < t.${column}`])
        ]
      }
      case "Before":
        return [sql`${text(`t.${condition.column} < `)}${valueOf(Instant.toPostgres(condition.value), "timestamptz")}`]
      case "IsFalse":
        return [text(`not t.${condition.column}`)]
      case "Never":
        return [text("false")]
    }
  }

  const isDeep = offset >= deep
  const table = text(resource.table)
  const order = text(`t.${orderedBy}, t.id`)
  const shown = isDeep ? order : text("t.record")
  const bounds = text(offset === 0 ? `limit ${limit}` : `limit ${limit} offset ${offset}`)
  const branches = combinations(conditions.map(rangesOf)).map((ranges) =>
    join([sql`t.organization_id = ${owner}`, ...ranges])
  )
  const [where = text("true")] = branches
  const columns = isDeep ? order : sql`t.record, ${order}`
  const partOf = (branch: Fragment) =>
    sql`(select ${columns} from ${table} t where ${branch} order by ${order} ${text(`limit ${limit + offset}`)})`
  const rows =
    branches.length === 1
      ? sql<{ record: string }>`select ${shown} from ${table} t where ${where} order by ${order} ${bounds}`
      : sql<{ record: string }>`
          select ${shown} from (${sql.join(" union all ", false)(branches.map(partOf))}) t order by ${order} ${bounds}`
  return {
    isPlannedOnce,
    statement: isDeep
      ? sql`select t.record from (${rows}) p
            join ${table} t on t.organization_id = ${owner} and t.id = p.id order by ${order}`
      : rows
  }
}

/** The query of a record. */
export const getQuery = (sql: PgClient.PgClient, owner: Fragment, { table }: Resource, id: string): Query => ({
  statement: sql`select t.record from ${sql.literal(table)} t where t.organization_id = ${owner} and t.id = ${id}`,
  isPlannedOnce: true
})

/** The owner of a statement that is run `withKey`. */
export const ownerOfKey = "k.organization_id"

/** A row of a key with its records. A key that has none has one row. */
export interface KeyedRow {
  readonly is_first_use_today: boolean
  readonly record: string | null
}

/** The statement of a query, with a look-up of the key whose organization is its owner. An invalid key has no row. */
export const withKey = (sql: PgClient.PgClient, keyHash: Uint8Array, { statement }: Query) => sql<KeyedRow>`
  with k as materialized (${keyRow(sql, keyHash)})
  select k.is_first_use_today, r.record from k left join lateral (${statement}) r on true`
