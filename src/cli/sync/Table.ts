/** The tables of a copy: one for each resource, with a typed column for each field of its record. */
import { Predicate, Schema } from "effect"
import { resources } from "../../api/records/index.ts"

/** The type of a column, by its name in Postgres. `jsonb` holds an object. */
export type ColumnType = "text" | "numeric" | "integer" | "boolean" | "timestamptz" | "date" | "text[]" | "jsonb"

/** A column, with the exact name of its field. */
export interface Column {
  readonly name: string
  readonly type: ColumnType
}

/** A resource, and the table of its copy. */
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

const keyword = (schema: unknown, name: string) =>
  Predicate.hasProperty(schema, name) ? ` ${String(schema[name])}` : ""

/** The type of the column of a field, which may be null. */
const typeOf = (field: Schema.Top): ColumnType => {
  const { schema } = Schema.toJsonSchemaDocument(field)
  const [first] = [schema["anyOf"] ?? schema].flat()
  return columnTypes[`${keyword(first, "type")}${keyword(first, "format")}`.trim()] ?? "jsonb"
}

/** The tables of all resources, in the contract's order. */
export const tables = resources.map(({ name: resource, record, table }): Table => {
  const columns = Object.entries<Schema.Top>(record.fields).map(([name, field]) => ({ name, type: typeOf(field) }))
  return { resource, name: table, columns }
})
