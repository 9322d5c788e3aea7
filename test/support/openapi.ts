/** OpenAPI documents as data: the parts that tests look at. */
import { Schema } from "effect"
import { lastPart } from "../../src/api/openapi/JsonSchemas.ts"

const keywords = {
  $ref: Schema.optionalKey(Schema.String),
  type: Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)])),
  format: Schema.optionalKey(Schema.String),
  required: Schema.optionalKey(Schema.Array(Schema.String)),
  enum: Schema.optionalKey(Schema.Array(Schema.Unknown)),
  additionalProperties: Schema.optionalKey(Schema.Unknown),
  default: Schema.optionalKey(Schema.Unknown),
  minimum: Schema.optionalKey(Schema.Finite),
  maximum: Schema.optionalKey(Schema.Finite),
  "x-provisional": Schema.optionalKey(Schema.Boolean)
}

export interface JsonSchema extends Schema.Struct.Type<typeof keywords> {
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly items?: JsonSchema
  readonly anyOf?: ReadonlyArray<JsonSchema>
}

const self = Schema.suspend((): Schema.Codec<JsonSchema> => jsonSchema)

const jsonSchema: Schema.Codec<JsonSchema> = Schema.Struct({
  ...keywords,
  properties: Schema.optionalKey(Schema.Record(Schema.String, self)),
  items: Schema.optionalKey(self),
  anyOf: Schema.optionalKey(Schema.Array(self))
})

const examples = Schema.optionalKey(Schema.Struct({ demo: Schema.Struct({ value: Schema.Unknown }) }))
const Content = Schema.Struct({ "application/json": Schema.Struct({ schema: jsonSchema, examples }) })

const Header = Schema.Union([Schema.Struct({ $ref: Schema.String }), Schema.Struct({ schema: jsonSchema })])

const Operation = Schema.Struct({
  summary: Schema.optionalKey(Schema.String),
  description: Schema.optionalKey(Schema.String),
  parameters: Schema.Array(Schema.Struct({ name: Schema.String, examples })),
  security: Schema.Array(Schema.Unknown),
  requestBody: Schema.optionalKey(Schema.Struct({ content: Content })),
  responses: Schema.Record(
    Schema.String,
    Schema.Struct({
      description: Schema.String,
      headers: Schema.Record(Schema.String, Header),
      content: Schema.optionalKey(Content)
    })
  ),
  "x-provisional": Schema.optionalKey(Schema.Boolean)
})
type Operation = typeof Operation.Type

const Document = Schema.Struct({
  info: Schema.Struct({ version: Schema.String }),
  servers: Schema.Tuple([Schema.Struct({ url: Schema.String })]),
  paths: Schema.Record(
    Schema.String,
    Schema.Struct({ get: Schema.optionalKey(Operation), post: Schema.optionalKey(Operation) })
  ),
  components: Schema.Struct({ schemas: Schema.Record(Schema.String, jsonSchema) })
})
export type Document = typeof Document.Type

// oxlint-disable-next-line effecttsgo/schema-sync -- a document of another form fails the test
export const parse = Schema.decodeUnknownSync(Document)

/** The schema of a body. */
export const schemaIn = (body: Operation["responses"][string] | Operation["requestBody"]): JsonSchema =>
  body?.content?.["application/json"].schema ?? {}

/** The name of the schema that one refers to. */
export const nameOf = ({ $ref }: JsonSchema) => ($ref === undefined ? undefined : lastPart($ref))

/** True of what the contract does not show. */
export const isProvisional = (part: object) => "x-provisional" in part
