/** From a row of a file to a line of COPY, with all its faults. */
import { type DateTime, Predicate, type Schema } from "effect"
import * as Field from "../../api/records/Field.ts"
import { PaymentIntent } from "../../api/records/Payments.ts"
import type { Resource } from "../../api/records/Resource.ts"
import { fieldOf } from "../PostgresSession.ts"
import { type ColumnType, typeOf } from "../sync/Target.ts"
import { isZone, parseJson, type Read, reader } from "./Values.ts"

export interface Row {
  /** The line on which it begins; in Parquet, the number of the row. */
  readonly line: number
  readonly names: ReadonlyArray<string>
  /** Values by the names. Those of a CSV are texts, and null is an empty one. */
  readonly values: ReadonlyArray<unknown>
  readonly isText: boolean
  /** The organization beside the record, as in an export. */
  readonly organization?: unknown
  /** The operation of `sync ndjson:`, whose last one of a record counts. A removal has only the id. */
  readonly operation?: "upsert" | "remove"
}

/** A line that is no row. */
export interface Broken {
  readonly line: number
  readonly broken: string
  /** The line, as far as it could be read. */
  readonly row?: unknown
  /** Nothing after it can be read either. */
  readonly isLast?: true
}

/** A fault of a row. Without a field, it is of the whole row. */
export interface Fault {
  readonly field?: string
  readonly reason: string
}

export interface Rejected {
  readonly line: number
  readonly faults: ReadonlyArray<Fault>
  readonly row: unknown
}

export interface Column {
  readonly name: string
  readonly isRequired: boolean
}

export interface DecoderOptions {
  readonly resource: Resource
  readonly columns: ReadonlyArray<Column>
  /** The organization of all rows. Undefined: a column names it. */
  readonly organization: string | undefined
  /** The column that names the organization, `organization_id` by default. */
  readonly organizationColumn: string | undefined
  readonly timeZone: DateTime.TimeZone.Named | undefined
}

/** The field whose value the database composes of `Field.planNameParts`. */
const composedName = "wellnes_plan_name"
const parts = Object.keys(Field.planNameParts)

/** The fields of the one object in a record, `payment_split`, each of which has a column. */
const split = PaymentIntent.fields.payment_split.fields

/** A text that the database composes of such parts. */
const compose = (texts: ReadonlyArray<unknown>) =>
  texts.flatMap((text) => (Predicate.isString(text) && text.trim() !== "" ? [text.trim()] : [])).join(" ")

type Codec = Schema.Codec<unknown, unknown>

interface ColumnReader {
  readonly index: number
  readonly column: Column
  readonly read: Read
}

export const make = ({ columns, organization, organizationColumn, resource, timeZone }: DecoderOptions) => {
  const isOrganizations = resource.table === "organizations"
  const organizationName = organizationColumn ?? "organization_id"
  const targets = new Map<string, ColumnReader>()
  /** The names of objects, with the beginning of their columns. */
  const nested = new Map<string, string>()

  const add = (name: string, columnName: string, field: Codec, type: ColumnType) => {
    const index = columns.findIndex((one) => one.name === columnName)
    const column = columns[index]
    if (column === undefined) return
    const target = { index, column, read: reader(field, type, timeZone) }
    targets.set(name, target).set(columnName, target)
  }
  for (const [name, field] of Object.entries<Codec>({ ...resource.hidden, ...resource.record.fields })) {
    const [columnName, type] = [Field.columnOf(name), typeOf(field)]
    if (type !== "jsonb") add(name, columnName, field, type)
    else {
      nested.set(name, `${columnName}_`)
      for (const [key, amount] of Object.entries(split)) {
        const innerColumn = `${columnName}_${Field.columnOf(key)}`
        add(innerColumn, innerColumn, amount, "numeric")
      }
    }
  }
  const isComposed = "plan_name" in resource.hidden && composedName in resource.record.fields
  const zone = resource.name === "clinics" ? targets.get("time_zone") : undefined
  const seen = columns.map(() => false)
  let hasComposed = false

  const decode = (row: Row | Broken) => {
    if ("broken" in row) {
      const { broken, isLast = false, line, row: given } = row
      const rejected: Rejected = { line, faults: [{ reason: broken }], row: given }
      return { rejected, isLast }
    }
    const isRemoval = row.operation === "remove"
    const faults: Array<Fault> = []
    const fault = (field: string, reason: string) => void faults.push({ field, reason })
    const out = columns.map((): string | undefined => undefined)
    let isUnknown = false
    let owner = row.organization
    let composed: unknown

    const set = (name: string, value: unknown, isText: boolean): void => {
      const target = targets.get(name)
      if (target === undefined) {
        const prefix = nested.get(name)
        if (prefix !== undefined) return setNested(name, prefix, value)
        if (name === composedName && isComposed) composed = value
        else if (name !== organizationName) {
          isUnknown = true
          fault(name, `is not a field of ${resource.name}`)
        }
        return
      }
      const { column, index, read } = target
      if (out[index] !== undefined) return fault(name, `is a duplicate of the column ${column.name}`)
      if (Predicate.isNullish(value)) {
        out[index] = "\\N"
        if (column.isRequired && column.name !== "id")
          fault(name, "must have a value. Omit the field to use its default")
        return
      }
      const text = read(value, isText)
      if (!Predicate.isString(text)) return fault(name, text.reason)
      out[index] = text
      if (target === zone && !isZone(text)) fault(name, `is not an IANA time zone: ${text.slice(0, 100)}`)
    }
    const setNested = (name: string, prefix: string, value: unknown) => {
      const object = row.isText && Predicate.isString(value) ? parseJson(value) : (value ?? {})
      if (!Predicate.isObject(object)) return fault(name, `must be an object with ${Object.keys(split).join(", ")}`)
      for (const [key, each] of Object.entries<unknown>({ ...object })) set(prefix + Field.columnOf(key), each, false)
    }

    row.names.forEach((name, index) => {
      const value = row.values[index]
      if (name === organizationName) owner ??= value
      set(name, value, row.isText)
    })
    if (isComposed && !isRemoval) {
      const given = parts.map((part) =>
        out[targets.get(part)?.index ?? -1] === undefined ? undefined : row.values[row.names.indexOf(part)]
      )
      const whole = Predicate.isNullish(composed) ? "" : composed
      if (!Predicate.isString(whole)) fault(composedName, "must be a text")
      else if (given.some((part) => part !== undefined)) {
        if (composed !== undefined && whole !== compose(given))
          fault(composedName, `does not match ${parts.join(", ")}`)
      } else if (composed !== undefined) {
        hasComposed = true
        set("plan_name", whole === "" ? null : whole, row.isText)
        for (const part of parts.slice(1)) set(part, null, row.isText)
      }
    }
    const key = row.values[row.names.indexOf("id")]
    if (Predicate.isNullish(key)) fault("id", "is missing")
    else if (Predicate.isString(key) && key.trim() === "") fault("id", "is blank")
    else if (isOrganizations && Predicate.isString(key) && key.trim() !== key)
      fault("id", "has leading or trailing blanks")
    const owningOrganization = isOrganizations ? key : (organization ?? owner)
    const expected = isOrganizations ? key : organization
    if (!Predicate.isString(owningOrganization) || owningOrganization.trim() === "")
      fault(organizationName, "the organization is missing")
    else if (expected !== undefined && !Predicate.isNullish(owner) && owner !== expected) {
      fault(organizationName, `is another organization: ${JSON.stringify(owner).slice(0, 100)}`)
    }
    if (faults.length > 0) {
      const given = Object.fromEntries(row.names.map((name, index) => [name, row.values[index]]))
      return { rejected: { line: row.line, faults, row: given }, isLast: isUnknown }
    }
    let line = `${row.line}\t${isRemoval}\t${fieldOf(owningOrganization, "text")}`
    for (let index = 0; index < out.length; index++) {
      const text = out[index]
      if (text !== undefined) seen[index] = true
      line += `\t${text ?? "\\N"}`
    }
    return { line }
  }

  return {
    /** The line of COPY of a row, or its faults. Where it is the last one, nothing else of the file can be read. */
    decode,
    seen: <A extends Column>(all: ReadonlyArray<A>) => all.filter((_, index) => seen[index]),
    /** True if `plan_name` has a whole `wellnes_plan_name` of some row. */
    hasComposed: () => hasComposed
  }
}

export type Decoder = ReturnType<typeof make>
