/** The words in which the contract's tables are typed by hand. Nothing here comes from the sources of the service. */

/** The type of a value. `strings` is an array of string, `split` the object of a payment's split. */
export type ValueType = "string" | "number" | "integer" | "boolean" | "date-time" | "date" | "strings" | "split"

/**
 * The type of a record's field; `!` says that it is never null: ids, the timestamps of creation and change, booleans, and
 * the arrays and objects of which the contract does not say `or null`.
 */
export type FieldType = ValueType | `${ValueType}!`

/** Whether the contract shows an endpoint, or it was decided. */
export type Stability = "contract" | "provisional"

/** A filter of a search, and the fields of the record that it looks at; none where they are stored and not shown. */
export interface Filter {
  readonly type: "string" | "boolean" | "date-time"
  readonly compares: "equals" | "numberEquals" | "since" | "before" | "includes"
  readonly fields: ReadonlyArray<string>
}

/** A resource. */
export interface Resource {
  readonly name: string
  /** Whether the contract shows the fields of its record. */
  readonly record: Stability
  readonly search?: Stability
  readonly get: Stability
  /** The timestamp that results ascend by, before their id. */
  readonly orderedBy: "updated_at" | "modified_at" | "created_at"
  readonly fields: Readonly<Record<string, FieldType>>
  readonly filters: Readonly<Record<string, Filter>>
}

/** The filters, each over the fields that it looks at. */
export const equals = (...fields: ReadonlyArray<string>): Filter => ({ type: "string", compares: "equals", fields })
export const numberEquals = (field: string): Filter => ({ type: "string", compares: "numberEquals", fields: [field] })
export const since = (field: string): Filter => ({ type: "date-time", compares: "since", fields: [field] })
export const before = (field: string): Filter => ({ type: "date-time", compares: "before", fields: [field] })
export const includes = (...fields: ReadonlyArray<string>): Filter => ({
  type: "boolean",
  compares: "includes",
  fields
})

/** The timestamps that nearly every record has, and the filters over them. */
export const changed = { created_at: "date-time!", updated_at: "date-time!" } as const
export const changedSince = { created_at_since: since("created_at"), updated_at_since: since("updated_at") }

/** What the resources that the contract only names have in common. */
export const decided = {
  record: "provisional",
  search: "provisional",
  get: "provisional",
  orderedBy: "updated_at"
} as const
