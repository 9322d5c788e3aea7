/**
 * The filters of the `/search` endpoints. A filter is a request field that is compared with columns of a record;
 * `records/SearchQuery` has the comparison of each kind, in SQL and in memory.
 *
 * A filter names fields of a record, shown or hidden, whose type belongs to its kind: a filter on a field that the resource
 * lacks, or on one of another type, does not compile.
 */
import { Record, Result, Schema, Struct } from "effect"
import { faults, refuse } from "../Faults.ts"
import { columnName } from "./Field.ts"
import * as Instant from "./Instant.ts"

type Kind = "equals" | "numberEquals" | "since" | "before" | "includeMarked"

/** A request field and the fields of a record that it is compared with. An absent value and null mean the same. */
export interface Filter<S extends Schema.Top = Schema.Top, K extends Kind = Kind, Field extends string = string> {
  readonly kind: K
  readonly fields: readonly [Field, ...Array<Field>]
  readonly columns: ReadonlyArray<string>
  readonly schema: S
}

const hasValidText = Schema.makeFilter((text: string) => text.isWellFormed() && !text.includes("\0"), {
  expected: "a text without U+0000 and lone surrogates",
  fault: faults.stringUnicode
})

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
    Schema.makeFilter(
      (text) => {
        const parsed = Instant.parse(text)
        if (Result.isSuccess(parsed)) return undefined
        const msg = `Input should be a valid datetime or date, ${parsed.failure}`
        return refuse({ type: "datetime_from_date_parsing", msg })
      },
      { expected: "an ISO 8601 date and time" }
    )
  )

/** A request field that may be left out or null. */
export const optional = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const make = <S extends Schema.Top, K extends Kind, Field extends string>(
  kind: K,
  fields: readonly [Field, ...Array<Field>],
  schema: S
): Filter<Schema.optionalKey<Schema.NullOr<S>>, K, Field> => ({
  kind,
  fields,
  columns: fields.map(columnName),
  schema: optional(schema)
})

const code = (fields: ReadonlyArray<string>) => fields.map((field) => `\`${field}\``).join(" or ")

/** Exact, case-sensitive match of any of the fields. */
export const equals = <const Field extends string>(...fields: readonly [Field, ...Array<Field>]) =>
  make("equals", fields, Text(`Only records whose ${code(fields)} is exactly this.`))

/** Filters with the names of the fields that they match. */
export const named = <const Name extends string>(...names: ReadonlyArray<Name>) =>
  Record.map(Struct.Record(names, undefined), (_, name) => equals(name))

/** Match of the number that a text stands for; any other text matches nothing. */
export const numberEquals = <const Field extends string>(...field: readonly [Field]) =>
  make(
    "numberEquals",
    field,
    Text(`Only records whose ${code(field)} is this number, written as \`100001\`, \`-4.50\` or \`1e-7\`.`)
  )

/** Inclusive lower bound of a time. */
export const since = <const Field extends string>(...field: readonly [Field]) =>
  make("since", field, DateTimeText(`Only records whose ${code(field)} is at or after this.`))

/** Lower bounds of `Field.times`. */
export const timesSince = { created_at_since: since("created_at"), updated_at_since: since("updated_at") }

/** Exclusive upper bound of a time, so that windows [since, before) tile time without overlap. */
export const before = <const Field extends string>(...field: readonly [Field]) =>
  make("before", field, DateTimeText(`Only records whose ${code(field)} is before this.`))

/** Leaves out the records that the field marks, unless the request includes them. */
export const includeMarked = <const Field extends string>(field: Field, description: string) =>
  make(
    "includeMarked",
    [field],
    Schema.Boolean.annotate({ description: `${description} Default false.`, default: false })
  )
