/** Reads OpenAPI documents, and gives their types in the words of the contract. */
import { Schema } from "effect"
import { Document, type JsonSchema, lastOf, type Operation } from "../../../src/api/openapi/Parsed.ts"
import type { FieldType } from "../../support/contract/Resource.ts"

// oxlint-disable-next-line effecttsgo/schema-sync -- a document of another form fails the test
export const parse = Schema.decodeUnknownSync(Document)

/** The schema of a body. */
export const schemaIn = (body: Operation["responses"][string] | Operation["requestBody"]): JsonSchema =>
  body?.content?.["application/json"].schema ?? {}

/** The name of the schema that one refers to. */
export const nameOf = ({ $ref }: JsonSchema) => ($ref === undefined ? undefined : lastOf($ref))

/** The schemas of a document. */
export const schemasOf = ({ components: { schemas } }: Document) => {
  /** The schema that a reference stands for; any other as it is. */
  const resolve = (schema: JsonSchema = {}): JsonSchema => {
    const name = nameOf(schema)
    return name === undefined ? schema : resolve(schemas[name])
  }

  /** The types of the properties of an object, in the words of the contract's tables. */
  const typesIn = (schema: JsonSchema) =>
    Object.entries(schema.properties ?? {}).map(([name, property]) => [name, typeOf(property)] as const)

  const typeOf = (schema: JsonSchema): string => {
    const { anyOf, ...resolved } = resolve(schema)
    const members = anyOf ?? [resolved.type].flat().map((type) => ({ ...resolved, ...(type && { type }) }))
    const [value = {}, ...others] = members.filter(({ type }) => type !== "null")
    if (others.length > 0) throw new Error(`several types: ${JSON.stringify(others)}`)
    return `${typeOfValue(resolve(value))}${members.length === 1 ? "!" : ""}`
  }

  const typeOfValue = (schema: JsonSchema) => {
    const { format, items = {}, type } = schema
    if (type === "array") return `${typeOf(items).replace("!", "")}s`
    if (type === "object")
      return typesIn(schema)
        .map((property) => property.join(": "))
        .join(", ")
    return (type === "string" ? format : undefined) ?? String(type)
  }

  return { resolve, typesIn, typeOf }
}

const split = "to_Platform: number, to_Processor: number, to_Clinic: number"

/** A type of the contract's tables as `typeOf` words it. */
export const worded = (type: FieldType) => type.replace("split", split)
