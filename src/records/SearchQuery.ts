/**
 * The statements that read records, for an owner: the SQL of an organization's id. Each returns rows of a record's JSON.
 */
import { type Constructor, type Fragment, join } from "effect/sql/Statement"
import { type Condition, conditionsOf } from "../api/records/Filter.ts"
import * as Instant from "../api/records/Instant.ts"
import type { Resource } from "../api/records/Resource.ts"
import { bytesOf } from "../database/TextBytes.ts"
import type { Query, Shaped } from "../keys/OrganizationReads.ts"
import type { Json } from "./Json.ts"
import type { Criteria, Page } from "./Repository.ts"

/** A row of a record: its JSON, as bytes. */
export interface Found {
  readonly record: Json | null
}

const and = join(" and ", false)
const unionAll = join(" union all ", false)

/** Whether one index is the best whatever the values: besides the order, it has to serve one exact value at most. */
const hasOneBestIndex = ({ orderedBy }: Resource, conditions: ReadonlyArray<Condition>) => {
  const others = conditions.filter(
    (condition) => condition._tag !== "Marked" && !(condition._tag === "AtLeast" && condition.column === orderedBy)
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

/** What a search asks for. Two searches of a resource that differ in the values alone have the same shape. */
export interface Asked extends Shaped {
  /** Each has one of the values, which is empty where it needs none. */
  readonly conditions: ReadonlyArray<Condition>
}

const valueOf = (condition: Condition): string => {
  switch (condition._tag) {
    case "Equals":
    case "NumberEquals":
      return condition.value
    case "AtLeast":
    case "Before":
      return Instant.toPostgres(condition.value)
    case "Marked":
    case "Never":
      return ""
  }
}

const shapeOf = (condition: Condition): string => {
  switch (condition._tag) {
    case "Equals":
      return `= ${condition.columns.join(",")}`
    case "Marked":
      return condition.isIncluded ? `? ${condition.column}` : `! ${condition.column}`
    case "Never":
      return "Never"
    default:
      return `${condition._tag} ${condition.column}`
  }
}

/** What a search asks for. */
export const askedOf = ({ filters }: Resource, criteria: Criteria, { limit, offset }: Page): Asked => {
  const conditions = conditionsOf(filters, criteria)
  return {
    conditions,
    values: conditions.map(valueOf),
    shape: conditions.reduce((shape, condition) => `${shape};${shapeOf(condition)}`, `${limit},${offset}`)
  }
}

/**
 * The query of a page. Where a filter has several ranges, each is read in order, and the results are merged. Limit and
 * offset are in the text, since a plan for any limit would sort the whole organization.
 *
 * @param deep the offset from which the records to skip are skipped in the index alone, and only the rows of the page
 *   are touched
 */
export const searchQuery = (
  sql: Constructor,
  owner: Fragment,
  resource: Resource,
  { conditions, values }: Pick<Asked, "conditions" | "values">,
  { limit, offset }: Page,
  deep = deepOffset
): Query<Found> => {
  const { orderedBy } = resource
  const isPlannedOnce = offset === 0 && hasOneBestIndex(resource, conditions)
  const column = (name: string) => sql.literal(`t.${name}`)

  /** A value, hidden from the planner of a plan for all values: otherwise Postgres replans for each of them. */
  const hidden = (value: string, type: "text" | "numeric" | "timestamptz") => {
    const cast = sql.literal(`::${type}`)
    return isPlannedOnce ? sql`(select ${value}${cast})` : sql`${value}${cast}`
  }

  /**
   * The ways in which a condition can hold, each one a range of one index. Together they cover every row that satisfies
   * the condition, and no row twice.
   */
  const rangesOf = (condition: Condition, given: string): ReadonlyArray<Fragment> => {
    switch (condition._tag) {
      case "Equals": {
        const value = hidden(given, "text")
        return condition.columns.map((name, index) =>
          and([
            sql`${column(name)} = ${value}`,
            ...condition.columns.slice(0, index).map((earlier) => `t.${earlier} is distinct from t.${name}`)
          ])
        )
      }
      case "NumberEquals":
        return [sql`${column(condition.column)} = ${hidden(given, "numeric")}`]
      case "AtLeast": {
        const value = hidden(given, "timestamptz")
        const isAtLeast = sql`${column(condition.column)} >= ${value}`
        if (condition.column === orderedBy) return [isAtLeast]
        // Nearly no row is changed before it is created, so the rows to return stand at the end of the order.
        return [
          sql`${isAtLeast} and ${column(orderedBy)} >= ${value}`,
          sql`${isAtLeast} and ${column(orderedBy)} < ${value} and ${column(orderedBy)} < ${column(condition.column)}`
        ]
      }
      case "Before":
        return [sql`${column(condition.column)} < ${hidden(given, "timestamptz")}`]
      case "Marked": {
        // Indexes have the marker before the order: who asks for both kinds has one range of each.
        const unmarked = sql.literal(`not t.${condition.column}`)
        return condition.isIncluded ? [unmarked, column(condition.column)] : [unmarked]
      }
      case "Never":
        return [sql.literal("false")]
    }
  }

  const isDeep = offset >= deep
  const table = sql.literal(resource.table)
  const order = sql.literal(`t.${orderedBy}, t.id`)
  const shown = isDeep ? order : sql.literal(bytesOf("t.record"))
  const bounds = sql.literal(offset === 0 ? `limit ${limit}` : `limit ${limit} offset ${offset}`)
  const branches = combinations(conditions.map((condition, index) => rangesOf(condition, values[index] ?? ""))).map(
    (ranges) => and([sql`t.organization_id = ${owner}`, ...ranges])
  )
  const select = (columns: Fragment, where: Fragment, bounded: Fragment) =>
    sql<Found>`select ${columns} from ${table} t where ${where} order by ${order} ${bounded}`
  const rows = () => {
    if (branches.length === 1) return select(shown, and(branches), bounds)
    const columns = isDeep ? order : sql`t.record, ${order}`
    const parts = branches.map((where) => sql`(${select(columns, where, sql.literal(`limit ${limit + offset}`))})`)
    return sql<Found>`select ${shown} from (${unionAll(parts)}) t order by ${order} ${bounds}`
  }
  return {
    columns: ["record"],
    isPlannedOnce,
    statement: isDeep
      ? sql`select ${sql.literal(bytesOf("t.record"))} from (${rows()}) p join ${table} t
            on t.organization_id = ${owner} and t.id = p.id order by ${order}`
      : rows()
  }
}

/** The query of a record. */
export const getQuery = (sql: Constructor, owner: Fragment, { table }: Resource, id: string): Query<Found> => ({
  statement: sql`select ${sql.literal(bytesOf("t.record"))} from ${sql.literal(table)} t where t.organization_id = ${owner} and t.id = ${id}`,
  columns: ["record"],
  isPlannedOnce: true
})
