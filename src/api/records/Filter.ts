/**
 * The filters of the `/search` endpoints. A filter is a request field, and the conditions that a value of it puts on
 * a record's columns; how a condition is checked is the business of the store (Postgres or memory).
 *
 * A filter names fields of a record, shown or hidden, and says which type they must have: a resource with a filter on a
 * field that it lacks, or on one of another type, does not compile.
 */
import { Result, Schema } from "effect"
import { faults, refuse } from "../Faults.ts"
import { columnOf } from "./Field.ts"
import * as Instant from "./Instant.ts"

/** What a record must satisfy. Strings are compared exactly, case included. */
export type Condition =
  | { readonly _tag: "Equals"; readonly columns: ReadonlyArray<string>; readonly value: string }
  | { readonly _tag: "NumberEquals"; readonly column: string; readonly value: string }
  | { readonly _tag: "AtLeast"; readonly column: string; readonly value: Instant.Instant }
  | { readonly _tag: "Before"; readonly column: string; readonly value: Instant.Instant }
  /** Whether records that the column marks are found as well. */
  | { readonly _tag: "Marked"; readonly column: string; readonly isIncluded: boolean }
  | { readonly _tag: "Never" }

/** A type of field that a filter can look at. */
export type FieldType = "text" | "number" | "time" | "boolean"

/** A request field and what it means. An absent value and null mean the same. */
export interface Filter<
  S extends Schema.Top = Schema.Top,
  Type extends FieldType = FieldType,
  Field extends string = string
> {
  readonly schema: S
  /** The type of the fields that it looks at. */
  readonly type: Type
  readonly fields: readonly [Field, ...Array<Field>]
  readonly conditions: (value: unknown) => ReadonlyArray<Condition>
}

const hasValidText = Schema.makeFilter((text: string) =>
  text.isWellFormed() && !text.includes("\0") ? undefined : refuse(faults.stringUnicode)
)

/** A text of a request: any that a database can hold. */
export const Text = (description: string, ...examples: ReadonlyArray<string>) =>
  Schema.String.annotate(examples.length > 0 ? { description, examples } : { description }).check(hasValidText)

const DateTimeText = (description: string) =>
  Schema.String.annotate({
    description: `${description} ISO 8601; UTC without an offset.`,
    format: "date-time",
    examples: ["2026-01-31T09:30:00Z"],
    fault: faults.datetime
  }).check(
    Schema.makeFilter((text) =>
      Result.match(Instant.parse(text), {
        onSuccess: () => undefined,
        onFailure: (reason) =>
          refuse({
            type: "datetime_from_date_parsing",
            msg: `Input should be a valid datetime or date, ${reason}`
          })
      })
    )
  )

/** A request field that may be left out or null. */
export const optional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const make = <S extends Schema.Top, Type extends FieldType, Field extends string>(
  schema: S,
  type: Type,
  fields: readonly [Field, ...Array<Field>],
  conditions: (value: unknown) => ReadonlyArray<Condition>
): Filter<Schema.optionalKey<Schema.NullOr<S>>, Type, Field> => ({ schema: optional(schema), type, fields, conditions })

const code = (fields: ReadonlyArray<string>) => fields.map((field) => `\`${field}\``).join(" or ")

/** Exact, case-sensitive match of any of the fields. */
export const equals = <const Field extends string>(...fields: readonly [Field, ...Array<Field>]) => {
  const columns = fields.map(columnOf)
  return make(Text(`Only records whose ${code(fields)} is exactly this.`), "text", fields, (value) =>
    typeof value === "string" ? [{ _tag: "Equals", columns, value }] : []
  )
}

// What a column of numbers can hold (the domain `api_decimal`). Each such number is a double of its own.
const mostDigits = 15
const smallestExponent = -30
const largestExponent = 20

/**
 * The number that a text stands for, as `-12e-3`: the significant digits, and their power of ten. Decimals, with or without
 * an exponent, as JSON shows the smallest ones; zeros may lead and trail. Undefined where it is no number, or
 * one that no column holds. Takes time in proportion to the text.
 */
const decimal = (text: string): string | undefined => {
  const parts = /^([+-]?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text)
  if (parts === null) return undefined
  const [, sign = "", whole = "", fraction = "", exponent = "0"] = parts
  const leading = `${whole}${fraction}`.replace(/^0+/, "")
  // Without the look-behind, each zero of a run would look for the end of the run.
  const digits = leading.replace(/(?<!0)0+$/, "")
  if (digits === "") return "0"
  const power = Number(exponent) - fraction.length + leading.length - digits.length
  const isStorable =
    digits.length <= mostDigits && power >= smallestExponent && power + digits.length - 1 <= largestExponent
  return isStorable ? `${sign}${digits}e${power}` : undefined
}

/** Match of the number that the text stands for; text that is no number matches nothing. */
export const numberEquals = <const Field extends string>(field: Field) => {
  const column = columnOf(field)
  return make(
    Text(`Only records whose ${code([field])} is this number, written as \`100001\`, \`-4.50\` or \`1e-7\`.`),
    "number",
    [field],
    (value) => {
      if (typeof value !== "string") return []
      const number = decimal(value)
      return [number === undefined ? { _tag: "Never" } : { _tag: "NumberEquals", column, value: number }]
    }
  )
}

const bound = <const Field extends string>(tag: "AtLeast" | "Before", field: Field, description: string) => {
  const column = columnOf(field)
  return make(DateTimeText(description), "time", [field], (value) =>
    typeof value === "string"
      ? Result.match(Instant.parse(value), {
          onSuccess: (instant) => [{ _tag: tag, column, value: instant }],
          onFailure: () => [{ _tag: "Never" }]
        })
      : []
  )
}

/** Inclusive lower bound of a time. */
export const since = <const Field extends string>(field: Field) =>
  bound("AtLeast", field, `Only records whose ${code([field])} is at or after this.`)

/** Exclusive upper bound of a time, so that windows [since, before) tile time without overlap. */
export const before = <const Field extends string>(field: Field) =>
  bound("Before", field, `Only records whose ${code([field])} is before this.`)

/** Leaves out the records that the field marks, unless the request asks for them. */
export const includeMarked = <const Field extends string>(field: Field, description: string) => {
  const column = columnOf(field)
  return make(
    Schema.Boolean.annotate({ description: `${description} Default false.`, default: false }),
    "boolean",
    [field],
    (value) => [{ _tag: "Marked", column, isIncluded: value === true }]
  )
}

/** What the filters of a resource ask of a record, given a request. */
export const conditionsOf = (
  filters: Readonly<Record<string, Filter>>,
  request: Readonly<Record<string, unknown>>
): ReadonlyArray<Condition> => {
  const found: Array<Condition> = []
  // Every search does this: with entries of the object it takes four times as long.
  for (const name in filters) {
    for (const condition of filters[name]?.conditions(request[name]) ?? []) found.push(condition)
  }
  return found
}
