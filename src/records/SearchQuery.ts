/** The statements that read records, for an owner: the SQL of an organization's id. */
import { Array, Predicate, Result } from "effect"
import { type Constructor, type Fragment, join } from "effect/sql/Statement"
import type { Filter } from "../api/records/Filter.ts"
import * as Instant from "../api/records/Instant.ts"
import type { Resource } from "../api/records/Resource.ts"
import { bytesOf, unionAll } from "../database/Columns.ts"
import type { Query, Shaped } from "../keys/OrganizationReads.ts"
import type { Json } from "./Pages.ts"
import type { Page } from "../api/records/Requests.ts"
import type { Columns } from "./Rows.ts"

/** The criteria of a search: values of the resource's filters. */
export type Criteria<R extends Resource = Resource> = {
  readonly [Name in keyof R["filters"]]?: R["filters"][Name]["schema"]["Type"]
}

export interface Found {
  readonly record: Json
}

const and = join(" and ", false)

/** The SQL that the ranges of a condition consist of. */
interface Terms {
  readonly sql: Constructor
  readonly column: (name: string) => Fragment
  readonly value: (type: "text" | "numeric" | "timestamptz") => Fragment
}

/** A condition that the value of a filter puts on a row. */
interface Condition {
  /** The same for conditions that differ in the value alone. */
  readonly shape: string
  /** The value that a statement is sent with; empty if there is none. */
  readonly value: string
  /** The use of an index: it finds exactly the value, it follows the order anyway, or neither. */
  readonly index: "value" | "order" | "none"
  /** The ranges of an index that hold the rows. Together they have every row that satisfies the condition, once. */
  readonly ranges: (terms: Terms) => ReadonlyArray<Fragment>
  readonly holds: (row: Columns) => boolean
}

const never: Condition = {
  shape: "never",
  value: "",
  index: "none",
  ranges: ({ sql }) => [sql.literal("false")],
  holds: () => false
}

/** The most significant digits that a column of numbers holds (`COLUMN_at_most_15_digits`): each such number is a double. */
const maxDigits = 15

/**
 * The number of a text: a decimal with or without an exponent; zeros may lead and trail. Undefined if no column can hold
 * it. Takes time in proportion to the text.
 */
const numberOf = (text: string): number | undefined => {
  const [, decimal] = /^[+-]?(\d+(?:\.\d+)?)(?:e[+-]?\d+)?$/i.exec(text) ?? []
  if (decimal === undefined) return undefined
  // Without the look-behind, each zero of a run would look for the end of the run.
  const digits = decimal
    .replace(".", "")
    .replace(/^0+/, "")
    .replace(/(?<!0)0+$/, "")
  const number = Number(text)
  const isExact = digits.length <= maxDigits && Number.isFinite(number) && (number === 0) === (digits === "")
  return isExact ? number : undefined
}

export const instantOf = (value: unknown) =>
  Predicate.isString(value) ? Instant.fromMillis(Date.parse(value)) : undefined

const onTime = (given: string, onSuccess: (instant: Instant.Instant) => Condition): Condition =>
  Result.match(Instant.parse(given), { onFailure: () => never, onSuccess })

/** The condition that each kind of filter puts on a row. */
const comparisons: Readonly<
  Record<Filter["kind"], (columns: ReadonlyArray<string>, given: string, orderedBy: string) => Condition>
> = {
  equals: (columns, given) => ({
    shape: `= ${columns.join(",")}`,
    value: given,
    index: "value",
    ranges: ({ column, sql, value }) =>
      columns.map((name, index) =>
        and([
          sql`${column(name)} = ${value("text")}`,
          ...columns.slice(0, index).map((earlier) => `t.${earlier} is distinct from t.${name}`)
        ])
      ),
    holds: (row) => columns.some((name) => row[name] === given)
  }),
  numberEquals: ([name = ""], given) => {
    const number = numberOf(given)
    if (number === undefined) return never
    return {
      shape: `number ${name}`,
      value: String(number),
      index: "value",
      ranges: ({ column, sql, value }) => [sql`${column(name)} = ${value("numeric")}`],
      holds: (row) => row[name] === number
    }
  },
  since: ([name = ""], given, orderedBy) =>
    onTime(given, (instant) => ({
      shape: `>= ${name}`,
      value: Instant.toPostgres(instant),
      index: name === orderedBy ? "order" : "none",
      ranges: ({ column, sql, value }) => {
        const isSince = sql`${column(name)} >= ${value("timestamptz")}`
        if (name === orderedBy) return [isSince]
        // Nearly no row is changed before it is created, so the rows to return are at the end of the order.
        const order = column(orderedBy)
        return [
          sql`${isSince} and ${order} >= ${value("timestamptz")}`,
          sql`${isSince} and ${order} < ${value("timestamptz")} and ${order} < ${column(name)}`
        ]
      },
      holds: (row) => (instantOf(row[name]) ?? -Infinity) >= instant
    })),
  before: ([name = ""], given) =>
    onTime(given, (instant) => ({
      shape: `< ${name}`,
      value: Instant.toPostgres(instant),
      index: "none",
      ranges: ({ column, sql, value }) => [sql`${column(name)} < ${value("timestamptz")}`],
      holds: (row) => (instantOf(row[name]) ?? Infinity) < instant
    })),
  includeMarked: ([name = ""], given) => ({
    shape: `${given} ${name}`,
    value: "",
    index: "order",
    // Indexes have the marker before the order: each kind of row is a range.
    ranges: ({ column, sql }) => {
      const unmarked = sql.literal(`not t.${name}`)
      return given === "true" ? [unmarked, column(name)] : [unmarked]
    },
    holds: (row) => given === "true" || row[name] !== true
  })
}

export const conditionsOf = ({ filters, orderedBy }: Resource, criteria: Criteria): ReadonlyArray<Condition> => {
  const found: Array<Condition> = []
  const given: Readonly<Record<string, unknown>> = criteria
  // Every search does this: with entries of the object it takes four times as long.
  for (const name in filters) {
    const filter = filters[name]
    const value = filter?.kind === "includeMarked" ? String(given[name] === true) : given[name]
    if (filter !== undefined && typeof value === "string")
      found.push(comparisons[filter.kind](filter.columns, value, orderedBy))
  }
  return found
}

/** The offset from which walking the index first is faster, measured (`npm run bench`). */
const deepOffset = 1500

/** A search by its conditions. Two searches of a resource that differ in the values alone have the same shape. */
export interface Asked extends Shaped {
  /** Each has one of the values. */
  readonly conditions: ReadonlyArray<Condition>
}

export const askedOf = (resource: Resource, criteria: Criteria, { limit, offset }: Page): Asked => {
  const conditions = conditionsOf(resource, criteria)
  return {
    conditions,
    values: conditions.map(({ value }) => value),
    shape: conditions.reduce((shape, condition) => `${shape};${condition.shape}`, `${limit},${offset}`)
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
  const column = (name: string) => sql.literal(`t.${name}`)
  // One index is the best whatever the values: besides the order, it has to serve one exact value at most.
  const unordered = conditions.filter(({ index }) => index !== "order")
  const isPlannedOnce = offset === 0 && unordered.length <= 1 && unordered.every(({ index }) => index === "value")
  /** A value, hidden from the planner of a plan for all values: otherwise Postgres replans for each of them. */
  const cast = (value: string) => (type: string) => {
    const typed = sql`${value}${sql.literal(`::${type}`)}`
    return isPlannedOnce ? sql`(select ${typed})` : typed
  }
  const branches = conditions.reduce<ReadonlyArray<Fragment>>(
    (combined, { ranges }, index) =>
      Array.cartesianWith(combined, ranges({ sql, column, value: cast(values[index] ?? "") }), (where, range) =>
        and([where, range])
      ),
    [sql`t.organization_id = ${owner}`]
  )

  const isDeep = offset >= deep
  const table = sql.literal(resource.table)
  const order = sql.literal(`t.${orderedBy}, t.id`)
  const shown = isDeep ? order : sql.literal(bytesOf("t.record"))
  const bounds = sql.literal(offset === 0 ? `limit ${limit}` : `limit ${limit} offset ${offset}`)
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

export const getQuery = (sql: Constructor, owner: Fragment, { table }: Resource, id: string): Query<Found> => ({
  statement: sql`select ${sql.literal(bytesOf("t.record"))} from ${sql.literal(table)} t where t.organization_id = ${owner} and t.id = ${id}`,
  columns: ["record"],
  isPlannedOnce: true
})
