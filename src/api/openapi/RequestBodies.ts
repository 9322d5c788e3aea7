/**
 * The bodies of requests, as components that bear the names of their schemas. Generators of clients take a property with
 * a default for one that is always there, except within the body of a request.
 */
import { type JsonSchema, Predicate, Record } from "effect"
import type { OpenApi } from "effect/http-api"

const nameOf = ({ content }: OpenApi.OpenAPISpecRequestBody) => {
  const reference = content["application/json"]?.schema["$ref"]
  return Predicate.isString(reference) ? reference.replace("#/components/schemas/", "") : ""
}

/** The request bodies of operations, with the schemas that they refer to. */
export const requestBodiesOf = (paths: OpenApi.OpenAPISpecPaths, schemas: JsonSchema.Definitions) =>
  Object.fromEntries(
    Object.values(paths).flatMap(({ post }) => {
      if (post?.requestBody === undefined) return []
      const name = nameOf(post.requestBody)
      const content = Record.map(post.requestBody.content, (media) => ({ ...media, schema: schemas[name] }))
      return [[name, { ...post.requestBody, content }] as const]
    })
  )

/** A reference to a request body among the components. */
export const refer = (body: OpenApi.OpenAPISpecRequestBody) => ({ $ref: `#/components/requestBodies/${nameOf(body)}` })
