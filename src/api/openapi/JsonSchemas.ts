/**
 * JSON schemas as generators of clients read them best: one type list where a value may be null, with its description,
 * default and example beside it, and no bounds that every number has.
 */
import { type JsonSchema, Predicate, Record } from "effect"

type Schema = JsonSchema.JsonSchema

const schemasIn = (schema: Schema, key: string): ReadonlyArray<Schema> => {
  const members = schema[key]
  return Array.isArray(members) ? members.filter(Predicate.isObject) : []
}

/** The schemas of an object's properties. */
export const propertiesOf = (schema: Schema): Readonly<Record<string, Schema>> =>
  Predicate.isObject(schema["properties"]) ? Record.filter(schema["properties"], Predicate.isObject) : {}

/** Of checks on a value, each with annotations of its own. */
const withoutAllOf = (schema: Schema): Schema => {
  const { allOf, ...rest } = schema
  const members = schemasIn(schema, "allOf")
  const keys = [rest, ...members].flatMap(Object.keys)
  const isDisjoint = new Set(keys).size === keys.length && !keys.includes("$ref")
  return allOf === undefined || !isDisjoint ? schema : Object.assign({}, rest, ...members)
}

const isNull = (schema: Schema) => schema["type"] === "null"

const withNullAmongTypes = (schema: Schema): Schema => {
  const { anyOf: _, ...rest } = schema
  const members = schemasIn(schema, "anyOf")
  const [value, ...others] = members.filter((member) => !isNull(member))
  if (!members.some(isNull) || value === undefined || others.length > 0 || !Predicate.isString(value["type"]))
    return schema
  return {
    ...value,
    ...rest,
    type: [value["type"], "null"],
    ...(Array.isArray(value["enum"]) ? { enum: [...value["enum"], null] } : {})
  }
}

const withoutBoundsOfDoubles = (schema: Schema): Schema => {
  const { minimum, maximum, ...rest } = schema
  return minimum === Number.MIN_SAFE_INTEGER && maximum === Number.MAX_SAFE_INTEGER ? rest : schema
}

/** A list of at least one item is a list, not a tuple with a rest. */
const withoutTuple = (schema: Schema): Schema => {
  const { prefixItems, ...rest } = schema
  const [first, ...others] = schemasIn(schema, "prefixItems")
  const isSame = JSON.stringify(first) === JSON.stringify(rest["items"])
  return prefixItems !== undefined && others.length === 0 && isSame ? rest : schema
}

const withoutClosing = (schema: Schema): Schema => {
  const { additionalProperties, ...rest } = schema
  return additionalProperties === false ? rest : schema
}

/**
 * Simplifies a schema with all that it holds.
 *
 * @param isOpen whether its objects may have more properties than it lists
 */
export const simplify = (schema: Schema, isOpen: boolean): Schema => {
  const inner = Record.map(schema, (value, key) => {
    if (key === "properties") return Record.map(propertiesOf(schema), (property) => simplify(property, isOpen))
    if (["allOf", "anyOf", "oneOf", "prefixItems"].includes(key))
      return schemasIn(schema, key).map((member) => simplify(member, isOpen))
    return ["items", "additionalProperties"].includes(key) && Predicate.isObject(value)
      ? simplify(value, isOpen)
      : value
  })
  const simple = withNullAmongTypes(withoutAllOf(withoutBoundsOfDoubles(withoutTuple(inner))))
  return isOpen ? withoutClosing(simple) : simple
}

/** A schema of which a property has to be given. */
export const requiring = (schema: Schema, name: string): Schema => {
  const properties = propertiesOf(schema)
  const { [name]: property } = properties
  if (property === undefined) return schema
  const type = Array.isArray(property["type"]) ? property["type"].find((one) => one !== "null") : property["type"]
  return { ...schema, properties: { ...properties, [name]: { ...property, type } }, required: [name] }
}

const reference = /"#\/components\/schemas\/([^"]+)"/g

/** The names of the schemas that a part of a document refers to, and of those that these refer to. */
export const reachableFrom = (part: unknown, schemas: JsonSchema.Definitions): ReadonlySet<string> => {
  const found = new Set<string>()
  const visit = (value: unknown) => {
    for (const [, name = ""] of (JSON.stringify(value) ?? "").matchAll(reference)) {
      if (found.has(name)) continue
      found.add(name)
      visit(schemas[name])
    }
  }
  visit(part)
  return found
}

/** An example of a value: what the schema gives as one, or one that is made of the examples of its parts. */
export const exampleOf = (schema: Schema, schemas: JsonSchema.Definitions): unknown => {
  if (Array.isArray(schema["examples"])) return schema["examples"][0]
  if (Predicate.isString(schema["$ref"])) {
    const named = schemas[schema["$ref"].replace("#/components/schemas/", "")]
    return named === undefined ? undefined : exampleOf(named, schemas)
  }
  if (Array.isArray(schema["enum"])) return schema["enum"][0]
  const [member] = schemasIn(schema, "anyOf")
  if (member !== undefined) return exampleOf(member, schemas)
  const type = Array.isArray(schema["type"]) ? schema["type"][0] : schema["type"]
  switch (type) {
    case "object":
      return Record.map(propertiesOf(schema), (property) => exampleOf(property, schemas))
    case "array":
      return Predicate.isObject(schema["items"]) ? [exampleOf(schema["items"], schemas)] : []
    case "boolean":
      return false
    case "integer":
      return schema["minimum"] ?? 0
    default:
      return undefined
  }
}
