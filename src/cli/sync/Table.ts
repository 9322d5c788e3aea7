/** The tables of a copy: one for each resource, with a typed column for each field of its record. */
import { Predicate, Schema } from "effect"
import { resources } from "../../api/records/index.ts"
import type { Resource } from "../../api/records/Resource.ts"

/** What a column holds, by the name of its type in Postgres. `jsonb` holds an object. */
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

/** The schemas of a value that are not null, with what they are nested in for their annotations. */
const partsOf = (schema: unknown): ReadonlyArray<object> => {
  if (!Predicate.isObject(schema)) return []
  const nested = ["anyOf", "oneOf", "allOf"].flatMap((word) => {
    const parts: unknown = Predicate.hasProperty(schema, word) ? schema[word] : []
    return Array.isArray(parts) ? parts.flatMap(partsOf) : []
  })
  return [schema, ...nested]
}

const columnTypeOf = (schema: unknown): ColumnType => {
  const parts = partsOf(schema)
  const said = (word: string) => parts.flatMap((part) => (Predicate.hasProperty(part, word) ? [part[word]].flat() : []))
  const types = said("type")
  if (types.includes("array")) return "text[]"
  if (types.includes("integer")) return "integer"
  if (types.includes("number")) return "numeric"
  if (types.includes("boolean")) return "boolean"
  if (!types.includes("string")) return "jsonb"
  const formats = said("format")
  return formats.includes("date-time") ? "timestamptz" : formats.includes("date") ? "date" : "text"
}

const propertiesOf = ({ record }: Resource): Readonly<Record<string, unknown>> => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(record)
  const objects = [schema, ...Object.values(definitions)]
  const found = objects.find((candidate) => Predicate.isObject(candidate["properties"]))
  return found === undefined || !Predicate.isObject(found["properties"]) ? {} : { ...found["properties"] }
}

const tableOf = (resource: Resource): Table => ({
  resource: resource.name,
  name: resource.table,
  columns: Object.entries(propertiesOf(resource)).map(([name, schema]) => ({ name, type: columnTypeOf(schema) }))
})

/** The tables of all resources, in the contract's order. */
export const tables: ReadonlyArray<Table> = resources.map(tableOf)
