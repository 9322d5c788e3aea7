/** The tables of a copy: one for each resource, with a typed column for each field of its record; and their changes. */
import { type DateTime, Predicate, Schema } from "effect"
import { resources } from "../../api/records/index.ts"

/** The type of a column, by its name in Postgres. `jsonb` holds an object. */
export type ColumnType = "text" | "numeric" | "integer" | "boolean" | "timestamptz" | "date" | "text[]" | "jsonb"

export interface Column {
  readonly name: string
  readonly type: ColumnType
}

export interface Table {
  /** As in the paths of the API: `consumption-logs`. */
  readonly resource: string
  readonly name: string
  /** In the order of the record's fields. The first one is `id`. */
  readonly columns: ReadonlyArray<Column>
}

const columnTypes: Readonly<Record<string, ColumnType>> = {
  array: "text[]",
  boolean: "boolean",
  integer: "integer",
  number: "numeric",
  string: "text",
  "string date": "date",
  "string date-time": "timestamptz"
}

/** The type of the column of a field, which may be null. */
export const columnType = (field: Schema.Top): ColumnType => {
  const { schema } = Schema.toJsonSchemaDocument(field)
  const [first] = [schema["anyOf"] ?? schema].flat()
  const words = ["type", "format"].flatMap((name) => (Predicate.hasProperty(first, name) ? String(first[name]) : []))
  return columnTypes[words.join(" ")] ?? "jsonb"
}

export const tables = resources.map(({ name: resource, record, table }): Table => {
  const columns = Object.entries<Schema.Top>(record.fields).map(([name, field]) => ({ name, type: columnType(field) }))
  return { resource, name: table, columns }
})

/** A change of a resource. After a reset, records of the copy that do not come until the round ends are gone. */
export const Change = Schema.Union([
  Schema.Struct({ resource: Schema.String, record: Schema.ObjectKeyword }),
  Schema.Struct({ resource: Schema.String, removed: Schema.String }),
  Schema.Struct({ resource: Schema.String, reset: Schema.Literal(true) })
])
export type Change = typeof Change.Type

/** A page of the service's feed, whose records are the API's JSON. `is_consistent`: it ends a round. */
export const FeedPage = Schema.Struct({
  body: Schema.Array(Change),
  cursor: Schema.String,
  has_more: Schema.Boolean,
  is_consistent: Schema.Boolean
})

/** A page of changes. */
export interface ChangePage extends Omit<typeof FeedPage.Type, "cursor"> {
  /** The start of the next page. Undefined: the feed is to be read from the beginning. */
  readonly cursor: string | undefined
  /** A time before the page was requested. */
  readonly requestedAt: DateTime.Utc
}
