/** The OpenAPI documents, as far as the client is made of them. */
import { Schema } from "effect"
import { type JsonSchema, jsonSchema } from "./JsonSchema.ts"

const Content = Schema.Struct({ "application/json": Schema.Struct({ schema: jsonSchema }) })

const RequestBody = Schema.Struct({ content: Content })

const Operation = Schema.Struct({
  requestBody: Schema.optionalKey(Schema.Union([Schema.Struct({ $ref: Schema.String }), RequestBody])),
  responses: Schema.Record(Schema.String, Schema.Struct({ content: Schema.optionalKey(Content) }))
})

const Document = Schema.Struct({
  paths: Schema.Record(Schema.String, Schema.Struct({ post: Schema.optionalKey(Operation) })),
  components: Schema.Struct({
    schemas: Schema.Record(Schema.String, jsonSchema),
    requestBodies: Schema.optionalKey(Schema.Record(Schema.String, RequestBody))
  })
})
export type Document = typeof Document.Type

/** Reads a document. Throws where it is none. */
// oxlint-disable-next-line effecttsgo/schema-sync -- a script, whose documents are made beside it
export const decode = Schema.decodeUnknownSync(Document)

/** An endpoint: what it takes, by its name, and what it gives. */
export interface Endpoint {
  readonly request: { readonly name: string; readonly schema: JsonSchema }
  readonly response: JsonSchema
}

const fail = (what: string): never => {
  throw new Error(what)
}

const lastOf = (path: string) => path.split("/").at(-1) ?? path

/** The schema that one refers to, or itself. */
export const resolve = ({ components }: Document, schema: JsonSchema): JsonSchema =>
  schema.$ref === undefined ? schema : (components.schemas[lastOf(schema.$ref)] ?? fail(`no schema ${schema.$ref}`))

/** The request of an operation. A schema that only its body has goes by the name of the body. */
const requestOf = (document: Document, body: { readonly $ref: string } | typeof RequestBody.Type) => {
  const found = "$ref" in body ? document.components.requestBodies?.[lastOf(body.$ref)] : body
  const schema = found?.content["application/json"].schema ?? fail("a request without a body")
  const named = schema.$ref ?? ("$ref" in body ? body.$ref : fail("a request without a name"))
  return { name: lastOf(named), schema: resolve(document, schema) }
}

/** The endpoints of a document that take a body, by their paths. */
export const endpointsOf = (document: Document): ReadonlyMap<string, Endpoint> =>
  new Map(
    Object.entries(document.paths).flatMap(([path, { post }]) =>
      post?.requestBody === undefined
        ? []
        : [
            [
              path,
              {
                request: requestOf(document, post.requestBody),
                response: post.responses[200]?.content?.["application/json"].schema ?? fail(`no response of ${path}`)
              }
            ] as const
          ]
    )
  )
