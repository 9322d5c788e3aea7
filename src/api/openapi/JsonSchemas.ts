/**
 * JSON schemas as generators of clients read them best: one type list where a value may be null, with its description,
 * default and example beside it, and no bounds that every number has.
 */
import { type JsonSchema, Predicate, Record } from "effect"
import type { OpenApi } from "effect/http-api"

type Schema = JsonSchema.JsonSchema

export const reference = (kind: "schemas" | "headers", name: string) => ({
  $ref: `#/components/${kind}/${name}`
})

/** The last part of a path or a reference. */
export const lastPart = (path: string): string => path.split("/").at(-1) ?? path

const unionMembers = ({ anyOf }: Schema): ReadonlyArray<Schema> =>
  Array.isArray(anyOf) ? anyOf.filter(Predicate.isObject) : []

const objectProperties = (schema: Schema): Readonly<Record<string, Schema>> =>
  Predicate.isObject(schema["properties"]) ? Record.filter(schema["properties"], Predicate.isObject) : {}

const withNullAmongTypes = (schema: Schema): Schema => {
  const { anyOf: _, ...rest } = schema
  const members = unionMembers(schema)
  const [value] = members.filter(({ type }) => type !== "null")
  const isNullable = members.length === 2 && members.some(({ type }) => type === "null")
  if (value === undefined || !isNullable || !Predicate.isString(value["type"])) return schema
  const values = value["enum"]
  return { ...value, ...rest, type: [value["type"], "null"], ...(Array.isArray(values) && { enum: [...values, null] }) }
}

const withoutBoundsOfDoubles = (schema: Schema): Schema => {
  const { minimum, maximum, ...rest } = schema
  return minimum === Number.MIN_SAFE_INTEGER && maximum === Number.MAX_SAFE_INTEGER ? rest : schema
}

const simplified = (value: unknown, isOpen: boolean): unknown => {
  if (Array.isArray(value)) return value.map((item) => simplified(item, isOpen))
  return Predicate.isObject(value) ? simplify(value, isOpen) : value
}

/** Simplifies a schema with all that it holds. If it is open, its objects may have more properties than it lists. */
export const simplify = (schema: Schema, isOpen: boolean): Schema => {
  const inner = Record.map(schema, (value) => simplified(value, isOpen))
  // A list of at least one item is a list, not a tuple with a rest.
  const { additionalProperties, prefixItems: _, ...open } = withNullAmongTypes(withoutBoundsOfDoubles(inner))
  return additionalProperties === undefined || (isOpen && additionalProperties === false)
    ? open
    : { ...open, additionalProperties }
}

/** Makes a property required, and not null, if the schema has it. */
export const requiring = (schema: Schema, name: string): Schema => {
  const properties = objectProperties(schema)
  if (!(name in properties)) return schema
  const type = [properties[name]?.["type"]].flat().find((one) => one !== "null")
  return { ...schema, properties: { ...properties, [name]: { ...properties[name], type } }, required: [name] }
}

/** The names of the schemas that a part of a document refers to, directly or through others. */
export const reachableFrom = (part: unknown, schemas: JsonSchema.Definitions, found = new Set<string>()) => {
  for (const [, name = ""] of (JSON.stringify(part) ?? "").matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
    if (!found.has(name)) reachableFrom(schemas[name], schemas, found.add(name))
  }
  return found
}

/** An example of a value: the schema's own, or the examples of its parts. */
export const makeExample = (schema: Schema, schemas: JsonSchema.Definitions): unknown => {
  const { $ref, enum: values, examples, items, type } = schema
  if (Array.isArray(examples)) return examples[0]
  if (Predicate.isString($ref)) return makeExample(schemas[lastPart($ref)] ?? {}, schemas)
  if (Array.isArray(values)) return values[0]
  const [member] = unionMembers(schema)
  if (member !== undefined) return makeExample(member, schemas)
  if (Predicate.isObject(items)) return [makeExample(items, schemas)]
  if (type === "boolean") return false
  return type === "object"
    ? Record.map(objectProperties(schema), (property) => makeExample(property, schemas))
    : undefined
}

const isNull = (schema: unknown) => Predicate.isObject(schema) && schema["type"] === "null"

const downgradePart = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(downgradePart)
  if (!Predicate.isObject(value)) return value
  const { anyOf, examples, type, ...rest } = Record.map(value, downgradePart)
  const example = Array.isArray(examples) ? { example: examples[0] } : examples !== undefined && { examples }
  if (Array.isArray(type)) return { ...rest, ...example, type: type.find((one) => one !== "null"), nullable: true }
  if (Array.isArray(anyOf) && anyOf.some(isNull)) {
    // Only schemas of one type may be null: ours are references to objects.
    return { ...rest, ...example, type: "object", nullable: true, allOf: anyOf.filter((member) => !isNull(member)) }
  }
  return { ...rest, ...example, ...(anyOf !== undefined && { anyOf }), ...(type !== undefined && { type }) }
}

/** A document of ours as OpenAPI 3.0, for gateways and generators that do not read the type lists of 3.1. */
export const downgrade = ({ info, ...spec }: OpenApi.OpenAPISpec) => ({
  ...Record.map<string, unknown, unknown>(spec, downgradePart),
  openapi: "3.0.3",
  info: { ...info, license: { name: "MIT" } }
})
