/** OpenAPI documents as data: the parts that ours use. */
import { Schema } from "effect"

const keywords = {
  $ref: Schema.optionalKey(Schema.String),
  title: Schema.optionalKey(Schema.String),
  type: Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)])),
  format: Schema.optionalKey(Schema.String),
  description: Schema.optionalKey(Schema.String),
  required: Schema.optionalKey(Schema.Array(Schema.String)),
  enum: Schema.optionalKey(Schema.Array(Schema.Unknown)),
  const: Schema.optionalKey(Schema.Unknown),
  additionalProperties: Schema.optionalKey(Schema.Unknown),
  default: Schema.optionalKey(Schema.Unknown),
  examples: Schema.optionalKey(Schema.Array(Schema.Unknown)),
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

const Demo = Schema.Struct({ demo: Schema.Struct({ value: Schema.Unknown }) })

const Content = Schema.Struct({
  "application/json": Schema.Struct({
    schema: jsonSchema,
    examples: Schema.optionalKey(Demo),
    example: Schema.optionalKey(Schema.Unknown)
  })
})

const Reference = Schema.Struct({ $ref: Schema.String })

const Parameter = Schema.Struct({
  name: Schema.String,
  required: Schema.optionalKey(Schema.Boolean),
  description: Schema.optionalKey(Schema.String),
  schema: jsonSchema,
  examples: Schema.optionalKey(Demo)
})

const Operation = Schema.Struct({
  operationId: Schema.String,
  tags: Schema.Array(Schema.String),
  summary: Schema.optionalKey(Schema.String),
  description: Schema.optionalKey(Schema.String),
  parameters: Schema.Array(Parameter),
  security: Schema.Array(Schema.Unknown),
  requestBody: Schema.optionalKey(Schema.Struct({ content: Content })),
  responses: Schema.Record(
    Schema.String,
    Schema.Struct({
      description: Schema.String,
      headers: Schema.Record(Schema.String, Schema.Union([Reference, Schema.Struct({ schema: jsonSchema })])),
      content: Schema.optionalKey(Content)
    })
  ),
  "x-provisional": Schema.optionalKey(Schema.Boolean)
})

export type Operation = typeof Operation.Type

export const Document = Schema.Struct({
  info: Schema.Struct({ title: Schema.String, version: Schema.String, description: Schema.String }),
  servers: Schema.Tuple([Schema.Struct({ url: Schema.String })]),
  tags: Schema.Array(Schema.Struct({ name: Schema.String, description: Schema.optionalKey(Schema.String) })),
  paths: Schema.Record(
    Schema.String,
    Schema.Struct({ get: Schema.optionalKey(Operation), post: Schema.optionalKey(Operation) })
  ),
  components: Schema.Struct({
    schemas: Schema.Record(Schema.String, jsonSchema),
    headers: Schema.Record(Schema.String, Schema.Struct({ description: Schema.String }))
  })
})
export type Document = typeof Document.Type
