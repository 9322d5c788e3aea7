/** From a row of a file to the columns of its table, by the schema of its resource, with all of its faults. */
import { Predicate, Record, Result, Schema, SchemaIssue } from "effect"
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

/** True if a double has the decimal exactly: JSON shows it as one, with 15 digits. */
const isExact = (text: string) => {
  const digits = (decimal.exec(text) ?? [])
    .slice(1)
    .join("")
    .replace(/^0+|0+$/g, "")
  return digits.length <= 15 && Math.abs(Number(text)) < 1e21
}

const inexact = "must be below 1e21, with at most 15 significant digits"

/** Keeps a number of JSON as text where a double would change it. */
const exactNumber = (_: string, value: unknown, { source = "" }: { readonly source?: string } = {}) =>
  Predicate.isNumber(value) && !isExact(source) ? source : value

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
  return isNumber && isExact(value) ? Number(value) : value
}

/** The reason why the database would refuse a value that its schema accepts. */
const valueFault = (column: string, type: ColumnType, value: unknown, hasTimeZone: boolean) => {
  const texts = [value].flat().filter(Predicate.isString)
  if (texts.some((each) => each.includes("\0"))) return "contains U+0000"
  if (texts.some((each) => !each.isWellFormed())) return "is not well-formed Unicode"
  const [text] = texts
  if (text === undefined) return undefined
  if (column === "id" && text.trim() === "") return "is blank"
  if (type !== "date" && type !== "timestamptz") return undefined
  const instant = Instant.parse(text)
  if (Result.isFailure(instant)) return instant.failure
  if (type === "date" || hasTimeZone || /(Z|[+-]\d\d(:?\d\d)?)$/.test(text.slice(10))) return undefined
  return "has no time zone: add an offset, such as Z, or use --time-zone"
}

const noPortions = Record.map(PaymentIntent.fields.payment_split.fields, () => null)

/** The columns with the time of the last change. */
export const lastChanges: ReadonlySet<string> = new Set(["updated_at", "modified_at"])

type Codec = Schema.Codec<unknown, unknown>

/** The fields of a record by their columns. Each field of the one object has a column; a composed name has none. */
export const fieldsByColumn = ({ hidden, record }: Resource) => {
  const { payment_split: split, wellnes_plan_name: _, ...fields }: Readonly<Record<string, Codec>> = record.fields
  const portions = split === undefined ? {} : PaymentIntent.fields.payment_split.fields
  return new Map([
    ...Object.entries<Codec>({ ...hidden, ...fields }).map(([name, field]) => [columnOf(name), field] as const),
    ...Object.entries<Codec>(portions).map(([name, field]) => [`payment_split_${columnOf(name)}`, field] as const)
  ])
}

const letters = (name: string) => name.replace(/[^a-z]/g, "")

const formatIssues = SchemaIssue.makeFormatterStandardSchemaV1()

interface Options {
  /** The organization of all rows. Undefined: their `organization_id` names it. */
  readonly organization: string | undefined
  readonly isKnown: (organization: string) => boolean
  /** True if times may have no offset. */
  readonly hasTimeZone: boolean
  /** True if the times of the last changes are those of the file. */
  readonly keepsTimes: boolean
}

/** Makes the decoder of the rows of a resource. */
export const make = (resource: Resource, options: Options) => {
  const { hasTimeZone, isKnown, keepsTimes, organization } = options
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

  const explain = (column: string, value: unknown, message: string) => {
    if (!fields.has(column)) {
      const [names, given] = [[...fields.keys()], letters(column)]
      const near = names.find((name) => letters(name).startsWith(given) || given.startsWith(letters(name)))
      const hint = near === undefined || given === "" ? `, which has ${names.join(", ")}` : `: did you mean ${near}?`
      return `is not a field of ${resource.name}${hint}`
    }
    if (Predicate.isNullish(value)) return column === "id" ? "is missing" : "must have a value, or no column"
    const [text, type = ""] = [Predicate.isString(value) ? value : "", types.get(column)]
    if (type === "numeric" && decimal.test(text)) return inexact
    const isOtherDate = (type === "date" || type === "timestamptz") && /^\d\d?[/.-]\d\d?[/.-]\d{4}/.test(text)
    return isOtherDate ? "must be written YYYY-MM-DD" : message.replace(" | null", "")
  }

  /** The columns of a value. An object and a composed name are kept by their parts. */
  const toColumns =
    (values: Values) =>
    ([name, value]: readonly [string, unknown]): Array<readonly [string, unknown]> => {
      const column = columnOf(name)
      if (!fields.has(column) && name === "organization_id") return []
      if (!keepsTimes && lastChanges.has(column)) return []
      if (column === "wellnes_plan_name" && fields.has("plan_name")) {
        return "plan_name" in values ? [] : Object.entries({ plan_name: value, species: null, plan_header: null })
      }
      const split = column === "payment_split" ? convert(value ?? {}, "jsonb") : undefined
      return Predicate.isReadonlyObject(split)
        ? Object.entries<unknown>({ ...noPortions, ...split }).map(([part, each]) => [
            `${column}_${columnOf(part)}`,
            each
          ])
        : [[column, convert(value, types.get(column))]]
    }

  /** The faults of the organization of a row, which a column may name. */
  const ownerFault = (owner: unknown, named: unknown) => {
    if (named !== undefined && named !== owner) return "is another organization"
    if (isOrganizations) return undefined
    if (!Predicate.isString(owner)) return "is missing"
    return isKnown(owner) ? undefined : "is no organization"
  }

  /** The columns of a row with its organization and id, and its faults. */
  return ({ broken, line, values }: Row) => {
    const columns: Record<string, unknown> = Object.fromEntries(Object.entries(values).flatMap(toColumns(values)))
    const named = values["organization_id"] ?? undefined
    const owner = isOrganizations ? columns["id"] : (organization ?? named)
    const decoded = decode(columns)
    const issues = Result.isFailure(decoded) ? formatIssues(decoded.failure.issue).issues : []
    const faults = issues.map(({ message, path: [first] = [] }): Fault => {
      const field = Predicate.isString(first) ? first : "id"
      const value = columns[field]
      return { field, value, reason: explain(field, value, message) }
    })
    const reason = ownerFault(owner, named)
    if (reason !== undefined) faults.push({ field: "organization_id", reason, value: named })
    const found = broken === undefined ? faults : [{ reason: broken }]
    return { line, columns, organization: String(owner), id: String(columns["id"]), faults: found }
  }
}
