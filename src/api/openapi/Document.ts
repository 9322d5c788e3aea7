/** What is said of every operation of a document, beyond what the endpoints say of themselves. */
import { identity, type JsonSchema, Record } from "effect"
import type { OpenApi } from "effect/http-api"
import { sent } from "./Endpoint.ts"
import * as Headers from "./Headers.ts"
import { exampleOf, reachableFrom, simplify } from "./JsonSchemas.ts"

/** What is said of the responses of a status. */
export interface Status {
  readonly description: string
  /** An example of its body. Where there is none, it is made of the examples of its schema. */
  readonly example?: unknown
  /** The name of the schema of its body, where the endpoints do not give one, or several. */
  readonly body?: string
  readonly isProvisional: boolean
}

/** What is said of each status that an operation can have. */
export type Statuses = (path: string) => Readonly<Record<string, Status>>

const reference = (name: string): JsonSchema.JsonSchema => ({ $ref: `#/components/schemas/${name}` })

interface Response {
  readonly description: string
  readonly content?: OpenApi.OpenApiSpecContent
  readonly headers?: Readonly<Record<string, unknown>>
}

interface Options {
  readonly statuses: Statuses
  /** What the request body of an operation is documented as. */
  readonly requestBody?: (body: OpenApi.OpenAPISpecRequestBody) => object
  /** Statuses that a response can have wherever it comes from. */
  readonly everywhere: ReadonlyArray<string>
}

const response = (given: Response, status: Status | undefined, schemas: JsonSchema.Definitions) => {
  const content =
    status?.body === undefined ? given.content : { "application/json": { schema: reference(status.body) } }
  return {
    description: status?.description ?? given.description,
    headers: Headers.refer(given.headers ?? {}),
    ...(content === undefined
      ? {}
      : {
          content: Record.map(content, (media) => {
            const schema = simplify(media.schema, true)
            return { example: status?.example ?? exampleOf(schema, schemas), ...media, schema }
          })
        }),
    ...(status?.isProvisional === true ? { "x-provisional": true } : {})
  }
}

/** A parameter with its description and its example where readers look for them. */
const parameter = ({ schema, ...given }: OpenApi.OpenAPISpecParameter) => {
  const { description, examples, ...rest } = simplify({ ...schema }, true)
  return {
    ...given,
    ...(description === undefined ? {} : { description }),
    schema: rest,
    ...(Array.isArray(examples) ? sent(examples[0]) : {})
  }
}

const operation = (
  path: string,
  given: OpenApi.OpenAPISpecOperation,
  schemas: JsonSchema.Definitions,
  { everywhere, requestBody = identity, statuses }: Options
) => {
  const known = statuses(path)
  const missing = Object.fromEntries(everywhere.map((status) => [status, { description: "" }]))
  const responses: Readonly<Record<string, Response>> = { ...given.responses, ...missing }
  return {
    ...given,
    parameters: given.parameters.map(parameter),
    ...(given.requestBody === undefined ? {} : { requestBody: requestBody(given.requestBody) }),
    responses: Record.map(responses, (one, status) => response(one, known[status], schemas))
  }
}

/** The schemas that request bodies consist of. */
export const requestSchemas = (paths: OpenApi.OpenAPISpecPaths, schemas: JsonSchema.Definitions) =>
  reachableFrom(
    Object.values(paths).map(({ post }) => post?.requestBody),
    schemas
  )

/** The paths with their operations, over schemas that are simplified. */
export const documentedPaths = (
  paths: OpenApi.OpenAPISpecPaths,
  schemas: JsonSchema.Definitions,
  options: Options
): object =>
  Record.map(paths, ({ get, post, ...item }, path) => ({
    ...item,
    ...(get === undefined ? {} : { get: operation(path, get, schemas, options) }),
    ...(post === undefined ? {} : { post: operation(path, post, schemas, options) })
  }))

/** Who runs the service is not known here. */
export const contact = { name: "The operator of this service" }

export const license = { name: "MIT", identifier: "MIT" }
