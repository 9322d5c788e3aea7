/** OpenAPI 3.0, for gateways and generators that do not read the type lists of 3.1. */
import { Predicate, Record } from "effect"
import type { OpenApi } from "effect/http-api"

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

/** A document of ours as OpenAPI 3.0. */
export const downgrade = ({ info, ...spec }: OpenApi.OpenAPISpec) => ({
  ...Record.map<string, unknown, unknown>(spec, downgradePart),
  openapi: "3.0.3",
  info: { ...info, license: { name: "MIT" } }
})
