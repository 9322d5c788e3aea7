/** Reads OpenAPI documents, and gives their types in the words of the contract. */
import { Predicate } from "effect"
import type { FieldType } from "../../support/contract/Resource.ts"

/** The value at a path of names, such as `info version`. */
export const dig = (value: unknown, path: string): unknown =>
  path.split(" ").reduce((found, name) => (Predicate.hasProperty(found, name) ? found[name] : undefined), value)

/** The members of an object, by name; none of what is no object. */
export const entries = (value: unknown): ReadonlyArray<[name: string, member: unknown]> =>
  Object.entries(Object(value ?? {}))

/** The items of an array; none of what is no array. */
export const items = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

const nameOf = (reference: unknown) => String(reference).replace(/^#\/components\/\w+\//, "")

const isNull = (schema: unknown) => dig(schema, "type") === "null"

const formatOf = (schema: unknown): unknown =>
  dig(schema, "format") ?? items(dig(schema, "allOf")).map(formatOf).find(Predicate.isNotUndefined)

/** The names of the schemas that a schema is one of. */
export const namesOf = (schema: unknown): ReadonlyArray<string> =>
  Predicate.hasProperty(schema, "$ref") ? [nameOf(schema.$ref)] : items(dig(schema, "anyOf")).flatMap(namesOf)

/** The schemas of a document. */
export const schemasOf = (document: unknown) => {
  /** The schema that a reference stands for; anything else as it is. */
  const resolve = (found: unknown): unknown => {
    const named = dig(document, `components schemas ${nameOf(dig(found, "$ref"))}`)
    return named === undefined ? found : resolve(named)
  }

  /** A schema without null, and whether it was among its types. */
  const withoutNull = (schema: unknown) => {
    const resolved = resolve(schema)
    const types = items(dig(resolved, "type"))
    if (types.length > 0) {
      const [type, ...others] = types.filter((one) => one !== "null")
      if (others.length > 0) throw new Error(`several types: ${types.join()}`)
      return { value: { ...Object(resolved), type }, nullable: types.includes("null") }
    }
    const members = items(dig(resolved, "anyOf"))
    const [value = resolved, ...others] = members.filter((member) => !isNull(member))
    return { value: others.length === 0 ? resolve(value) : resolved, nullable: members.some(isNull) }
  }

  /** The type of a field, in the words of the contract's tables. */
  const typeOf = (schema: unknown): string => {
    const { value, nullable } = withoutNull(schema)
    return `${typeWithoutNull(value)}${nullable ? "" : "!"}`
  }

  const typeWithoutNull = (schema: unknown) => {
    const type = dig(schema, "type")
    if (type === "array") return `${typeOf(dig(schema, "items")).replace("!", "")}s`
    const properties = entries(dig(schema, "properties"))
    if (type === "object") return properties.map(([name, property]) => `${name}: ${typeOf(property)}`).join(", ")
    const named = (type === "string" ? formatOf(schema) : undefined) ?? type
    return Predicate.isString(named) ? named : "unknown"
  }

  return { resolve, withoutNull, typeOf }
}

const split = "to_Platform: number, to_Processor: number, to_Clinic: number"

/** A type of the contract's tables as `typeOf` words it. */
export const worded = (type: FieldType) => type.replace("split", split)
