/** The tables of a copy: one for each resource, with a typed column for each field of its record. */
import { Predicate, Schema } from "effect"
import { resources } from "../../api/records/index.ts"
import type { Resource } from "../../api/records/Resource.ts"

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
  /** `consumption_logs`. */
  readonly name: string
  /** In the order of the record's fields. The first one is `id`. */
  readonly columns: ReadonlyArray<Column>
}

const propertyOf = (value: unknown, name: string) => (Predicate.hasProperty(value, name) ? value[name] : undefined)

/** The values of a keyword in a JSON Schema and in its alternatives. */
const valuesOf = (schema: unknown, keyword: string): ReadonlyArray<unknown> => [
  ...[propertyOf(schema, keyword)].flat(),
  ...["anyOf", "oneOf", "allOf"].flatMap((word) => {
    const parts = propertyOf(schema, word)
    return Array.isArray(parts) ? parts.flatMap((part) => valuesOf(part, keyword)) : []
  })
]

const columnTypeOf = (schema: unknown): ColumnType => {
  const types = valuesOf(schema, "type")
  if (types.includes("array")) return "text[]"
  if (types.includes("integer")) return "integer"
  if (types.includes("number")) return "numeric"
  if (types.includes("boolean")) return "boolean"
  if (!types.includes("string")) return "jsonb"
  const formats = valuesOf(schema, "format")
  return formats.includes("date-time") ? "timestamptz" : formats.includes("date") ? "date" : "text"
}

const tableOf = ({ name: resource, record, table }: Resource): Table => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(record)
  const properties = [schema, ...Object.values(definitions)].map((found) => propertyOf(found, "properties"))
  const columns = Object.entries(properties.find(Predicate.isObject) ?? {})
  return { resource, name: table, columns: columns.map(([name, type]) => ({ name, type: columnTypeOf(type) })) }
}

/** The tables of all resources, in the contract's order. */
export const tables: ReadonlyArray<Table> = resources.map(tableOf)
