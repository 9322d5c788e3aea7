/** JSON Schema as TypeScript: the part of it that our OpenAPI documents use. */
import { type JsonSchema, lastOf } from "../../src/api/openapi/Parsed.ts"

/**
 * The position of a value. Values that are sent may also be undefined. A filter is never null: null counts as absent,
 * and a null by mistake would widen a result.
 */
export type Side = "filters" | "delivery" | "response"

const literal = (value: unknown) => JSON.stringify(value)

const rangeOf = ({ maximum, minimum }: JsonSchema) =>
  minimum === undefined || maximum === undefined || maximum >= 2147483647 ? [] : [`From ${minimum} to ${maximum}.`]

/** The comment of a schema, as lines without their indentation. */
export const comment = (schema: JsonSchema, side: Side): ReadonlyArray<string> => {
  const { description, default: preset, examples = [], format } = schema
  const text = [
    ...(description === undefined ? [] : [description]),
    ...(side === "filters" ? rangeOf(schema) : []),
    ...(schema["x-provisional"] === true ? ["Provisional: its shape may still change."] : [])
  ].join(" ")
  const tags = [
    ...(format === "date-time" && side === "response" ? ["@format date-time"] : []),
    ...(preset === undefined ? [] : [`@default ${literal(preset)}`]),
    ...examples.slice(0, 1).map((example) => `@example ${literal(example)}`)
  ]
  const lines = [...(text === "" ? [] : [text]), ...tags].map((line) => line.replaceAll("*/", "*\\/"))
  if (lines.length === 0) return []
  return lines.length === 1 ? [`/** ${lines.join("")} */`] : ["/**", ...lines.map((line) => ` * ${line}`), " */"]
}

/** Lines one level deeper. */
export const indented = (lines: ReadonlyArray<string>) => lines.map((line) => (line === "" ? line : `  ${line}`))

const unionOf = (types: ReadonlyArray<string>) => [...new Set(types)].join(" | ")

/** The members of an object type, as lines. */
const members = (schema: JsonSchema, side: Side): ReadonlyArray<string> => {
  const { additionalProperties, properties = {}, required = [] } = schema
  const named = Object.entries(properties).flatMap(([name, property]) => {
    const type = typeOf(property, side)
    const optional = side === "response" ? `${name}?: ${type}` : `${name}?: ${type} | undefined`
    return [...comment(property, side), required.includes(name) ? `${name}: ${type}` : optional]
  })
  const isOpen = side === "response" && (additionalProperties === true || Object.keys(properties).length === 0)
  return [...named, ...(isOpen ? ["[field: string]: unknown"] : [])]
}

const single = (type: string, schema: JsonSchema, side: Side): string => {
  if (type === "object") return ["{", ...indented(members(schema, side)), "}"].join("\n")
  if (type === "array") return `Array<${typeOf(schema.items ?? {}, side)}>`
  // A Date becomes such a text in JSON.
  if (schema.format === "date-time" && side === "filters" && type === "string") return "string | Date"
  return type === "integer" ? "number" : type
}

/** The type of a schema; one of several lines where it is an object. */
export const typeOf = (schema: JsonSchema, side: Side): string => {
  if (schema.$ref !== undefined) return lastOf(schema.$ref)
  const isSent = (type: string) => type !== "" && (side !== "filters" || type !== "null")
  if (schema.const !== undefined) return literal(schema.const)
  if (schema.enum !== undefined) return unionOf(schema.enum.map(literal).filter(isSent))
  if (schema.anyOf !== undefined) return unionOf(schema.anyOf.map((member) => typeOf(member, side)).filter(isSent))
  if (schema.type === undefined) return "unknown"
  const types = typeof schema.type === "string" ? [schema.type] : schema.type
  return unionOf(types.filter(isSent).map((type) => single(type, schema, side)))
}

/** An interface. */
export const declaration = (name: string, schema: JsonSchema, side: Side): string =>
  [
    ...comment(schema, side),
    `export interface ${name} {`,
    ...indented(members(schema, side).flatMap((line) => line.split("\n"))),
    "}"
  ].join("\n")

/** The names of the schemas that a schema refers to. */
export const referencesOf = (schema: JsonSchema): ReadonlyArray<string> => [
  ...(schema.$ref === undefined ? [] : [lastOf(schema.$ref)]),
  ...Object.values(schema.properties ?? {}).flatMap(referencesOf),
  ...(schema.items === undefined ? [] : referencesOf(schema.items)),
  ...(schema.anyOf ?? []).flatMap(referencesOf)
]
