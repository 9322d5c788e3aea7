/** From a row of a file to the columns of its table, by the schema of its resource, with all of its faults. */
import { Option, Predicate, Record, Result, Schema, SchemaIssue } from "effect"
import { columnName } from "../../api/records/Field.ts"
import * as Instant from "../../api/records/Instant.ts"
import { PaymentIntent } from "../../api/records/Payments.ts"
import type { Resource } from "../../api/records/Resource.ts"
import { type ColumnType, columnType } from "../sync/Tables.ts"

type Values = Readonly<Record<string, unknown>>

/** A row, or the reason why there is none, and its line. The texts of a CSV stand for values of other types. */
export type Row = { readonly line: number } & ({ readonly values: Values } | { readonly broken: string })

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

/** The reason why a text is no date, or no time. Without an offset it is UTC. */
const timeFault = (text: string) => {
  if (/^\d\d?[/.-]\d\d?[/.-]\d{4}/.test(text)) return "must be written YYYY-MM-DD"
  return Option.getOrUndefined(Result.getFailure(Instant.parse(text)))
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
    ...Object.entries<Codec>({ ...hidden, ...fields }).map(([name, field]) => [columnName(name), field] as const),
    ...Object.entries<Codec>(portions).map(([name, field]) => [`payment_split_${columnName(name)}`, field] as const)
  ])
}

const letters = (name: string) => name.replace(/[^a-z]/g, "")

const formatIssues = SchemaIssue.makeFormatterStandardSchemaV1()

interface Options {
  /** The organization of all rows. Undefined: their `organization_id` names it. */
  readonly organization: string | undefined
  /** The organizations that exist. */
  readonly known: ReadonlySet<string>
  /** True if the times of the last changes are those of the file. */
  readonly keepsTimes: boolean
}

/** Makes the decoder of the rows of a resource. */
export const make = (resource: Resource, { keepsTimes, known, organization }: Options) => {
  const columns = new Map(
    [...fieldsByColumn(resource)].map(([column, field]) => [
      column,
      { type: columnType(field), isNullable: Schema.is(field)(null), decode: Schema.decodeUnknownResult(field) }
    ])
  )
  const isOrganizations = resource.table === "organizations"

  const notAField = (name: string) => {
    const [names, given] = [[...columns.keys()], letters(name)]
    const near = names.find((one) => letters(one).startsWith(given) || given.startsWith(letters(one)))
    const hint = near === undefined || given === "" ? `, which has ${names.join(", ")}` : `: did you mean ${near}?`
    return `is not a field of ${resource.name}${hint}`
  }

  /** The reason why a column cannot have a value. */
  const refusal = (name: string, value: unknown): string | undefined => {
    const column = columns.get(name)
    if (column === undefined) return notAField(name)
    const { decode, isNullable, type } = column
    if (Predicate.isNullish(value)) {
      return isNullable ? undefined : name === "id" ? "is missing" : "must have a value, or no column"
    }
    const texts = [value].flat().filter(Predicate.isString)
    const [text] = texts
    if (texts.some((each) => each.includes("\0"))) return "contains U+0000"
    if (texts.some((each) => !each.isWellFormed())) return "is not well-formed Unicode"
    if (name === "id" && text?.trim() === "") return "is blank"
    if (type === "numeric" && text !== undefined && decimal.test(text)) return inexact
    // The schema's own form of a time is wider: text that `Date` accepts, in the zone of this process.
    if (type === "timestamptz" && text !== undefined) return timeFault(text)
    const fault = type === "date" && text !== undefined ? timeFault(text) : undefined
    const decoded = decode(value)
    if (fault !== undefined || Result.isSuccess(decoded)) return fault
    return formatIssues(decoded.failure.issue).issues[0]?.message.replace(" | null", "")
  }

  /** The columns of a field. An object and a composed name are kept by their parts. */
  const toColumns = (values: Values, name: string): ReadonlyArray<readonly [string, unknown]> => {
    const [column, value] = [columnName(name), values[name]]
    if (!columns.has(column) && name === "organization_id") return []
    if (!keepsTimes && lastChanges.has(column)) return []
    if (column === "wellnes_plan_name" && columns.has("plan_name")) {
      return "plan_name" in values ? [] : Object.entries({ plan_name: value, species: null, plan_header: null })
    }
    const split = column === "payment_split" ? convert(value ?? {}, "jsonb") : undefined
    if (!Predicate.isReadonlyObject(split)) return [[column, convert(value, columns.get(column)?.type)]]
    return Object.entries({ ...noPortions, ...split }).map(([part, each]) => [`${column}_${columnName(part)}`, each])
  }

  /** The reason why a row cannot be of an organization, which a column may name. */
  const ownerFault = (owner: unknown, named: unknown) => {
    if (named !== undefined && named !== owner) return "is another organization"
    if (isOrganizations) return undefined
    if (!Predicate.isString(owner)) return "is missing"
    return known.has(owner) ? undefined : "is no organization"
  }

  /** The columns of a row with its organization and id, and its faults. */
  return (row: Row) => {
    const values = "values" in row ? row.values : {}
    const decoded = Object.fromEntries(Object.keys(values).flatMap((name) => toColumns(values, name)))
    const named = values["organization_id"] ?? undefined
    const owner = isOrganizations ? decoded["id"] : (organization ?? named)
    const checked = Object.entries<unknown>({ id: undefined, ...decoded, organization_id: named })
    const found = checked.flatMap(([field, value]): ReadonlyArray<Fault> => {
      const reason = field === "organization_id" ? ownerFault(owner, value) : refusal(field, value)
      return reason === undefined ? [] : [{ field, reason, value }]
    })
    const faults = "broken" in row ? [{ reason: row.broken }] : found
    return { line: row.line, columns: decoded, organization: String(owner), id: String(decoded["id"]), faults }
  }
}

/** A row that was decoded. Without a fault it can be written. */
export type Decoded = ReturnType<ReturnType<typeof make>>
