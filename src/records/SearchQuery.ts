/** The statements that read records. */
import { Array, Predicate, Result } from "effect"
import type { Filter } from "../api/records/Filter.ts"
import * as Instant from "../api/records/Instant.ts"
import type { Resource } from "../api/records/Resource.ts"
import { asBytes, type Json } from "../database/Columns.ts"
import type { Query } from "../database/OrganizationReads.ts"
import type { Page } from "../api/records/Requests.ts"
import type { Columns } from "./Rows.ts"

/** The values of a resource's filters in a search. */
export type FilterValues<R extends Resource = Resource> = {
  readonly [Name in keyof R["filters"]]?: R["filters"][Name]["schema"]["Type"]
}

export interface RecordRow {
  readonly record: Json
}

/** The SQL of the value of a condition. */
type ValueOf = (type: "text" | "numeric" | "timestamptz") => string

/** A condition that the value of a filter puts on a row. */
interface Condition {
  /** The value that a statement is sent with; undefined if it needs none. */
  readonly value: string | undefined
  /** The use of an index: it finds exactly the value, it follows the order anyway, or neither. */
  readonly index: "value" | "order" | "none"
  /** The ranges of an index that hold the rows. Together they have every row that satisfies the condition, once. */
  readonly ranges: (valueOf: ValueOf) => ReadonlyArray<string>
  readonly holds: (row: Columns) => boolean
}

const never: Condition = {
  value: undefined,
  index: "none",
  ranges: () => ["false"],
  holds: () => false
}

/** The most significant digits that a column of numbers holds (`COLUMN_at_most_15_digits`): each such number is a double. */
const maxDigits = 15

/**
 * The number of a text: a decimal with or without an exponent; zeros may lead and trail. Undefined if no column can hold
 * it. Takes time in proportion to the text.
 */
const parseNumber = (text: string): number | undefined => {
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

export const storedInstant = (value: unknown) =>
  Predicate.isString(value) ? Instant.fromMillis(Date.parse(value)) : undefined

const onTime = (given: string, onSuccess: (instant: Instant.Instant) => Condition): Condition =>
  Result.match(Instant.parse(given), { onFailure: () => never, onSuccess })

/** The condition that each kind of filter puts on a row. */
const comparisons: Readonly<
  Record<Filter["kind"], (columns: ReadonlyArray<string>, given: string, orderedBy: string) => Condition>
> = {
  equals: (columns, given) => ({
    value: given,
    index: "value",
    ranges: (valueOf) =>
      columns.map((name, index) => {
        const distinct = columns.slice(0, index).map((earlier) => ` and t.${earlier} is distinct from t.${name}`)
        return `t.${name} = ${valueOf("text")}${distinct.join("")}`
      }),
    holds: (row) => columns.some((name) => row[name] === given)
  }),
  numberEquals: ([name = ""], given) => {
    const number = parseNumber(given)
    if (number === undefined) return never
    return {
      value: String(number),
      index: "value",
      ranges: (valueOf) => [`t.${name} = ${valueOf("numeric")}`],
      holds: (row) => row[name] === number
    }
  },
  since: ([name = ""], given, orderedBy) =>
    onTime(given, (instant) => ({
      value: Instant.toPostgres(instant),
      index: name === orderedBy ? "order" : "none",
      ranges: (valueOf) => {
        const since = valueOf("timestamptz")
        if (name === orderedBy) return [`t.${name} >= ${since}`]
        // Nearly no row is changed before it is created, so the rows to return are at the end of the order.
        return [
          `t.${name} >= ${since} and t.${orderedBy} >= ${since}`,
          `t.${name} >= ${since} and t.${orderedBy} < ${since} and t.${orderedBy} < t.${name}`
        ]
      },
      holds: (row) => (storedInstant(row[name]) ?? -Infinity) >= instant
    })),
  before: ([name = ""], given) =>
    onTime(given, (instant) => ({
      value: Instant.toPostgres(instant),
      index: "none",
      ranges: (valueOf) => [`t.${name} < ${valueOf("timestamptz")}`],
      holds: (row) => (storedInstant(row[name]) ?? Infinity) < instant
    })),
  includeMarked: ([name = ""], given) => ({
    value: undefined,
    index: "order",
    // Indexes have the marker before the order: each kind of row is a range.
    ranges: () => (given === "true" ? [`not t.${name}`, `t.${name}`] : [`not t.${name}`]),
    holds: (row) => given === "true" || row[name] !== true
  })
}

export const toConditions = ({ filters, orderedBy }: Resource, values: FilterValues): ReadonlyArray<Condition> => {
  const conditions: Array<Condition> = []
  const given: Readonly<Record<string, unknown>> = values
  // Every search does this: with entries of the object it takes four times as long.
  for (const name in filters) {
    const filter = filters[name]
    const value = filter?.kind === "includeMarked" ? String(given[name] === true) : given[name]
    if (filter !== undefined && typeof value === "string")
      conditions.push(comparisons[filter.kind](filter.columns, value, orderedBy))
  }
  return conditions
}

/** The offset from which walking the index first is faster, measured (`npm run bench`). */
const deepOffset = 1500

/**
 * The query of a page. Where a filter has several ranges, each is read in order, and the results are merged. Limit and
 * offset are in the text, since a plan for any limit would sort the whole organization.
 *
 * @param deep the offset from which the records to skip are skipped in the index alone, and only the rows of the page
 *   are touched
 */
export const searchQuery = (
  resource: Resource,
  filters: FilterValues,
  { limit, offset }: Page,
  deep = deepOffset
): Query<RecordRow> => {
  const { orderedBy, table } = resource
  const conditions = toConditions(resource, filters)
  // One index is the best whatever the values: besides the order, it has to serve one exact value at most.
  const unordered = conditions.filter(({ index }) => index !== "order")
  const isPlannedOnce = offset === 0 && unordered.length <= 1 && unordered.every(({ index }) => index === "value")
  const values: Array<string> = []
  const branches = conditions.reduce<ReadonlyArray<string>>(
    (combined, { ranges, value }) => {
      if (value !== undefined) values.push(value)
      const place = `$${values.length + 1}`
      // Hidden from the planner of a plan for all values: otherwise Postgres replans for each of them.
      const valueOf: ValueOf = (type) => (isPlannedOnce ? `(select ${place}::${type})` : `${place}::${type}`)
      return Array.cartesianWith(combined, ranges(valueOf), (where, range) => `${where} and ${range}`)
    },
    ["t.organization_id = $1"]
  )

  const isDeep = offset >= deep
  const order = `t.${orderedBy}, t.id`
  const shown = isDeep ? order : asBytes("t.record")
  const bounds = offset === 0 ? `limit ${limit}` : `limit ${limit} offset ${offset}`
  const select = (columns: string, where: string, bounded: string) =>
    `select ${columns} from ${table} t where ${where} order by ${order} ${bounded}`
  const rows = () => {
    const [only] = branches.length === 1 ? branches : []
    if (only !== undefined) return select(shown, only, bounds)
    const columns = isDeep ? order : `t.record, ${order}`
    const parts = branches.map((where) => `(${select(columns, where, `limit ${limit + offset}`)})`)
    return `select ${shown} from (${parts.join(" union all ")}) t order by ${order} ${bounds}`
  }
  const text = isDeep
    ? `select ${asBytes("t.record")} from (${rows()}) p join ${table} t
        on t.organization_id = $1 and t.id = p.id order by ${order}`
    : rows()
  return { text, values, columns: ["record"], limit, isPlannedOnce }
}

export const getQuery = ({ table }: Resource, id: string): Query<RecordRow> => ({
  text: `select ${asBytes("t.record")} from ${table} t where t.organization_id = $1 and t.id = $2`,
  values: [id],
  columns: ["record"],
  limit: 1,
  isPlannedOnce: true
})
