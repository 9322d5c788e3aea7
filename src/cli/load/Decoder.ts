/** From a row of a file to the columns of its table, by the schema of its resource, with all of its faults. */
import { Predicate, Result, Schema, SchemaIssue } from "effect"
import { columnOf } from "../../api/records/Field.ts"
import * as Instant from "../../api/records/Instant.ts"
import { PaymentIntent } from "../../api/records/Payments.ts"
import type { Resource } from "../../api/records/Resource.ts"
import { type ColumnType, typeOf } from "../sync/Target.ts"

type Values = Readonly<Record<string, unknown>>

/** A row, and the line on which it begins. The texts of a CSV stand for values of other types. */
export interface Row {
  readonly line: number
  readonly values: Values
  /** The organization beside a record, as in an export. */
  readonly organization?: unknown
  /** The reason why the line is no row. */
  readonly broken?: string
}

/** A fault of a row. Without a field, it is of the whole row. */
export interface Fault {
  readonly field?: string
  readonly reason: string
  readonly value?: unknown
}

const decimal = /^[+-]?(?=\.?\d)(\d*)\.?(\d*)(?:e[+-]?\d{1,3})?$/i

/** The reason why a decimal does not fit: JSON shows it as a double, with 15 digits. */
const decimalFault = (text: string) => {
  const digits = (decimal.exec(text) ?? []).slice(1).join("").replace(/^0+/, "").replace(/0+$/, "")
  if (digits.length > 15) return "has more than 15 significant digits"
  return Math.abs(Number(text)) < 1e21 ? undefined : "must be below 1e21"
}

/** Keeps a number of JSON as text where a double would change it. */
const exactNumber = (_: string, value: unknown, { source = "" }: { readonly source?: string } = {}) =>
  Predicate.isNumber(value) && decimalFault(source) !== undefined ? source : value

/** The value of a text of JSON. Any other text stays as it is. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text, exactNumber)
  } catch {
    return text
  }
}

const isTrue = /^(true|t|yes|y|on|1)$/i
const isFalse = /^(false|f|no|n|off|0)$/i

/** The value that a text stands for in a column. A text that stands for none stays, and its schema refuses it. */
const convert = (value: unknown, type: ColumnType | undefined): unknown => {
  if (!Predicate.isString(value)) return value
  if (type === "boolean") return isTrue.test(value) || (isFalse.test(value) ? false : value)
  if (type === "text[]" || type === "jsonb") return parseJson(value)
  const isNumber = (type === "integer" || type === "numeric") && decimal.test(value)
  return isNumber && decimalFault(value) === undefined ? Number(value) : value
}

/** The reason why the database would refuse a value that its schema accepts. */
const valueFault = (column: string, type: ColumnType, value: unknown, hasTimeZone: boolean) => {
  const text = Array.isArray(value) ? value.join("") : value
  if (!Predicate.isString(text)) return undefined
  if (text.includes("\0")) return "contains U+0000"
  if (!text.isWellFormed()) return "is not well-formed Unicode"
  if (column === "id" && text.trim() === "") return "is blank"
  if (type !== "date" && type !== "timestamptz") return undefined
  const instant = Instant.parse(text)
  if (Result.isFailure(instant)) return instant.failure
  if (type === "date" || hasTimeZone || /(Z|[+-]\d\d(:?\d\d)?)$/.test(text.slice(10))) return undefined
  return "has no time zone: add an offset, such as Z, or use --time-zone"
}

/** The columns with the time of the last change. */
export const lastChanges: ReadonlySet<string> = new Set(["updated_at", "modified_at"])

type Codec = Schema.Codec<unknown, unknown>

/** The fields of a record by their columns. Each field of the one object has a column; a composed name has none. */
const fieldsByColumn = ({ hidden, record }: Resource) => {
  const { payment_split: split, wellnes_plan_name: _, ...fields }: Readonly<Record<string, Codec>> = record.fields
  const portions = split === undefined ? {} : PaymentIntent.fields.payment_split.fields
  return new Map([
    ...Object.entries<Codec>({ ...hidden, ...fields }).map(([name, field]) => [columnOf(name), field] as const),
    ...Object.entries<Codec>(portions).map(([name, field]) => [`payment_split_${columnOf(name)}`, field] as const)
  ])
}

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

/** Makes the decoder of the rows of a resource. */
export const make = (
  resource: Resource,
  options: {
    /** The organization of all rows. Undefined: a column names it. */
    readonly organization: string | undefined
    readonly organizationColumn: string
    readonly isKnown: (organization: string) => boolean
    /** True if times may have no offset. */
    readonly hasTimeZone: boolean
    /** True if the times of the last changes are those of the file. */
    readonly keepsTimes: boolean
  }
) => {
  const { hasTimeZone, isKnown, keepsTimes, organization, organizationColumn } = options
  const fields = fieldsByColumn(resource)
  const types = new Map([...fields].map(([column, field]) => [column, typeOf(field)]))
  const isOrganizations = resource.table === "organizations"

  const checked = [...fields].map(([column, field]) => {
    const type = typeOf(field)
    // The schema's own form of a time is wider: text that `Date` accepts, in the zone of this process.
    const time = Schema.is(field)(null) ? Schema.NullOr(Schema.String) : Schema.String
    const own: Codec = type === "timestamptz" ? time : field
    const schema = own.check(Schema.makeFilter((value) => valueFault(column, type, value, hasTimeZone)))
    return [column, column === "id" ? schema : Schema.optionalKey(schema)] as const
  })
  const strictly = { errors: "all", onExcessProperty: "error" } as const
  const decode = Schema.decodeUnknownResult(Schema.Struct(Object.fromEntries(checked)), strictly)

  const reasonOf = (column: string, value: unknown, message: string) => {
    if (!fields.has(column)) return `is not a field of ${resource.name}`
    if (Predicate.isNullish(value)) return column === "id" ? "is missing" : "must have a value, or no column"
    const isLong = Predicate.isString(value) && types.get(column) === "numeric" && decimal.test(value)
    return (isLong ? decimalFault(value) : undefined) ?? message.replace(" | null", "")
  }

  const columnsOf = (values: Values): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries(values).flatMap(([name, value]) => {
        const column = columnOf(name)
        const split = column === "payment_split" ? convert(value ?? {}, "jsonb") : undefined
        if (Predicate.isReadonlyObject(split)) {
          return Object.entries<unknown>({ ...split }).map(([key, each]) => [`${column}_${columnOf(key)}`, each])
        }
        if (column === "wellnes_plan_name" && fields.has("plan_name")) {
          if ("plan_name" in values) return []
          return Object.entries({ plan_name: value, species: null, plan_header: null })
        }
        const isLeftOut =
          (name === organizationColumn && !fields.has(column)) || (!keepsTimes && lastChanges.has(column))
        return isLeftOut ? [] : [[column, convert(value, types.get(column))]]
      })
    )

  /** The columns of a row with its organization and id, and its faults. */
  return ({ broken, line, organization: beside, values }: Row) => {
    const columns = columnsOf(values)
    const owned = beside ?? values[organizationColumn] ?? undefined
    const owner = isOrganizations ? columns["id"] : (organization ?? owned)
    const ownerFault = (reason: string): Fault => ({ field: organizationColumn, reason, value: owned })
    const decoded = decode(columns)
    const issues = Result.isFailure(decoded) ? issuesOf(decoded.failure.issue).issues : []
    const faults = issues.map(({ message, path: [first] = [] }): Fault => {
      const field = Predicate.isString(first) ? first : "id"
      const value = columns[field]
      return { field, value, reason: reasonOf(field, value, message) }
    })
    if (owned !== undefined && owned !== owner) faults.push(ownerFault("is another organization"))
    else if (!isOrganizations && !Predicate.isString(owner)) faults.push(ownerFault("is missing"))
    else if (!isOrganizations && !isKnown(String(owner))) faults.push(ownerFault("is no organization"))
    const found = broken === undefined ? faults : [{ reason: broken }]
    return { line, columns, organization: String(owner), id: String(columns["id"]), faults: found }
  }
}
