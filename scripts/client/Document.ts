/** The OpenAPI documents, as far as the client is made of them. */
import { Schema } from "effect"
import { type JsonSchema, jsonSchema } from "./JsonSchema.ts"

const Content = Schema.Struct({ "application/json": Schema.Struct({ schema: jsonSchema }) })

const Operation = Schema.Struct({
  "x-provisional": Schema.optionalKey(Schema.Boolean),
  requestBody: Schema.optionalKey(Schema.Struct({ content: Content })),
  responses: Schema.Record(Schema.String, Schema.Struct({ content: Schema.optionalKey(Content) }))
})

const Document = Schema.Struct({
  paths: Schema.Record(Schema.String, Schema.Struct({ post: Schema.optionalKey(Operation) })),
  components: Schema.Struct({ schemas: Schema.Record(Schema.String, jsonSchema) })
})
export type Document = typeof Document.Type

/** Reads a document. Throws where it is none. */
// oxlint-disable-next-line effecttsgo/schema-sync -- a script, whose documents are made beside it
export const decode = Schema.decodeUnknownSync(Document)

/** An endpoint: what it takes and what it gives. */
export interface Endpoint {
  readonly request: JsonSchema
  readonly response: JsonSchema
  readonly isProvisional: boolean
}

/** The endpoints of a document by their paths. */
export const endpointsOf = ({ paths }: Document): ReadonlyMap<string, Endpoint> =>
  new Map(
    Object.entries(paths).flatMap(([path, { post }]) =>
      post?.requestBody === undefined
        ? []
        : [
            [
              path,
              {
                request: post.requestBody.content["application/json"].schema,
                response: post.responses[200]?.content?.["application/json"].schema ?? {},
                isProvisional: post["x-provisional"] ?? false
              }
            ] as const
          ]
    )
  )
