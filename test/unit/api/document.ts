/** Reads an OpenAPI document, and gives its types in the words of the contract. */
import { Result, Schema } from "effect"
import type { FieldType } from "../../support/contract/Resource.ts"

interface JsonSchema {
  readonly $ref?: string
  readonly type?: string | ReadonlyArray<string>
  readonly format?: string
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: ReadonlyArray<string>
  readonly items?: JsonSchema
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly allOf?: ReadonlyArray<JsonSchema>
  readonly additionalProperties?: boolean
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: unknown
  readonly "x-provisional"?: boolean
}

const Provisional = { "x-provisional": Schema.optionalKey(Schema.Boolean) }

const JsonSchema: Schema.Codec<JsonSchema> = Schema.Struct({
  ...Provisional,
  $ref: Schema.optionalKey(Schema.String),
  type: Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)])),
  format: Schema.optionalKey(Schema.String),
  properties: Schema.optionalKey(
    Schema.Record(
      Schema.String,
      Schema.suspend(() => JsonSchema)
    )
  ),
  required: Schema.optionalKey(Schema.Array(Schema.String)),
  items: Schema.optionalKey(Schema.suspend(() => JsonSchema)),
  anyOf: Schema.optionalKey(Schema.Array(Schema.suspend(() => JsonSchema))),
  allOf: Schema.optionalKey(Schema.Array(Schema.suspend(() => JsonSchema))),
  additionalProperties: Schema.optionalKey(Schema.Boolean),
  minimum: Schema.optionalKey(Schema.Finite),
  maximum: Schema.optionalKey(Schema.Finite),
  default: Schema.optionalKey(Schema.Unknown)
})

const Content = Schema.Struct({ "application/json": Schema.Struct({ schema: JsonSchema }) })

const Operation = Schema.Struct({
  ...Provisional,
  summary: Schema.NonEmptyString,
  description: Schema.NonEmptyString,
  security: Schema.Array(Schema.Record(Schema.String, Schema.Array(Schema.String))),
  requestBody: Schema.Struct({ $ref: Schema.String }),
  responses: Schema.Record(
    Schema.String,
    Schema.Struct({
      ...Provisional,
      description: Schema.NonEmptyString,
      headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
      content: Content
    })
  )
})

const Document = Schema.Struct({
  openapi: Schema.String,
  info: Schema.Struct({ version: Schema.String }),
  servers: Schema.Array(Schema.Struct({ url: Schema.String })),
  paths: Schema.Record(Schema.String, Schema.Record(Schema.String, Operation)),
  components: Schema.Struct({
    schemas: Schema.Record(Schema.String, JsonSchema),
    requestBodies: Schema.Record(Schema.String, Schema.Struct({ required: Schema.Literal(true), content: Content })),
    securitySchemes: Schema.Record(Schema.String, Schema.Struct({ type: Schema.String, scheme: Schema.String }))
  })
})
type Document = typeof Document.Type

/** Reads a document. */
export const decode = (document: unknown): Document => Result.getOrThrow(Schema.decodeUnknownResult(Document)(document))

const isNull = (schema: JsonSchema) => schema.type === "null"

const formatOf = (schema: JsonSchema): string | undefined =>
  schema.format ?? schema.allOf?.map(formatOf).find((format) => format !== undefined)

/** The names of the schemas that a schema is one of. */
export const namesOf = (schema: JsonSchema): ReadonlyArray<string> =>
  schema.$ref === undefined ? (schema.anyOf ?? []).flatMap(namesOf) : [schema.$ref.replace("#/components/schemas/", "")]

/** The schemas of a document. */
export const schemasOf = ({ components: { schemas } }: Document) => {
  const resolve = (schema: JsonSchema): JsonSchema => {
    const named = schemas[schema.$ref?.replace("#/components/schemas/", "") ?? ""]
    return named === undefined ? schema : resolve(named)
  }

  /** A schema without null, and whether it was among its types. */
  const withoutNull = (schema: JsonSchema) => {
    const resolved = resolve(schema)
    const { type: types, ...rest } = resolved
    if (typeof types === "object") {
      const [type, ...others] = types.filter((one) => one !== "null")
      if (type === undefined || others.length > 0) throw new Error(`several types: ${types.join()}`)
      return { value: { type, ...rest }, nullable: types.includes("null") }
    }
    const [value = resolved, ...others] = (resolved.anyOf ?? [resolved]).filter((member) => !isNull(member))
    return { value: others.length === 0 ? resolve(value) : resolved, nullable: (resolved.anyOf ?? []).some(isNull) }
  }

  /** The type of a field, in the words of the contract's tables. */
  const typeOf = (schema: JsonSchema): string => {
    const { value, nullable } = withoutNull(schema)
    const kind =
      value.type === "array"
        ? `${value.items === undefined ? "unknown" : typeOf(value.items).replace("!", "")}s`
        : value.type === "object"
          ? Object.entries(value.properties ?? {})
              .map(([name, property]) => `${name}: ${typeOf(property)}`)
              .join(", ")
          : value.type === "string"
            ? (formatOf(value) ?? "string")
            : String(value.type ?? "unknown")
    return nullable ? kind : `${kind}!`
  }

  return { resolve, withoutNull, typeOf }
}

const split = "to_Platform: number, to_Processor: number, to_Clinic: number"

/** A type of the contract's tables as `typeOf` words it. */
export const worded = (type: FieldType) => type.replace("split", split)
