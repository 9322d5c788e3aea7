/** The words in which the contract's tables are typed by hand. Nothing here comes from the sources of the service. */

/** The type of a value. `strings` is an array of string, `split` the object of a payment's split. */
export type ValueType = "string" | "number" | "integer" | "boolean" | "date-time" | "date" | "strings" | "split"

/** The type of a record's field; `!`: never null. */
export type FieldType = ValueType | `${ValueType}!`

/** `contract`: shown by the contract. `provisional`: decided. */
export type Stability = "contract" | "provisional"

/** A filter of a search, and the fields that it looks at; none if they are stored and not shown. */
export interface Filter {
  readonly type: "string" | "boolean" | "date-time"
  readonly compares: "equals" | "numberEquals" | "since" | "before" | "includes"
  readonly fields: ReadonlyArray<string>
}

export interface Resource {
  readonly name: string
  readonly record: Stability
  readonly search?: Stability
  readonly get: Stability
  /** The timestamp that results ascend by, before their id. */
  readonly orderedBy: "updated_at" | "modified_at" | "created_at"
  readonly fields: Readonly<Record<string, FieldType>>
  readonly filters: Readonly<Record<string, Filter>>
}

const wordsOf = (text: string) => text.split(" ")

/** Fields in order: runs of names of one type. */
export const fields = (
  ...runs: ReadonlyArray<readonly [type: FieldType, names: string]>
): Readonly<Record<string, FieldType>> =>
  Object.fromEntries(runs.flatMap(([type, names]) => wordsOf(names).map((name) => [name, type])))

export const equals = (...looksAt: ReadonlyArray<string>): Filter => ({
  type: "string",
  compares: "equals",
  fields: looksAt
})
export const numberEquals = (field: string): Filter => ({ type: "string", compares: "numberEquals", fields: [field] })
export const since = (field: string): Filter => ({ type: "date-time", compares: "since", fields: [field] })
export const before = (field: string): Filter => ({ type: "date-time", compares: "before", fields: [field] })
export const includes = (...looksAt: ReadonlyArray<string>): Filter => ({
  type: "boolean",
  compares: "includes",
  fields: looksAt
})

/** Filters that equal the field of their name. */
export const named = (names: string): Readonly<Record<string, Filter>> =>
  Object.fromEntries(wordsOf(names).map((name) => [name, equals(name)]))

/** The timestamps that nearly every record has, and the filters over them. */
export const changed = ["date-time!", "created_at updated_at"] as const
export const changedSince = { created_at_since: since("created_at"), updated_at_since: since("updated_at") }

/** A resource whose record and search the contract shows. */
export const shown = { record: "contract", search: "contract", get: "provisional", orderedBy: "updated_at" } as const

/** A resource that the contract only names. */
export const decided = { ...shown, record: "provisional", search: "provisional" } as const
