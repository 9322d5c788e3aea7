/** The parts of the OpenAPI documents that the annotations of endpoints do not give. */
import { type JsonSchema, Predicate, Record } from "effect"
import { OpenApi } from "effect/http-api"
import { completeHeader, lagHeader, nextHeader } from "../records/Requests.ts"
import { sent } from "./Endpoint.ts"
import { exampleOf, reachableFrom, reference, simplify } from "./JsonSchemas.ts"

/** The documentation of the responses of a status. */
export interface Status {
  readonly description: string
  /** An example of its body; by default, made of the examples of its schema. */
  readonly example?: unknown
  /** The schema of its body, where the endpoints do not give one, or several. */
  readonly body?: string
}

/** The documentation of a status whose body is `{ detail }`. */
export const errorStatus = (description: string, { detail }: { readonly detail: string }): Status => ({
  description,
  body: "ErrorDetail",
  example: { detail }
})

/** The documentation of a 500, which every operation has. */
export const internalError = errorStatus("A bug. The response reveals nothing of its cause.", {
  detail: "Internal Server Error"
})

const text = (...values: ReadonlyArray<string>) => ({ schema: { type: "string", enum: values } })

const seconds = (minimum: number) => ({ schema: { type: "integer", minimum, examples: [minimum] } })

const headers = {
  "x-request-id": {
    description:
      "The id of the request: its own `x-request-id` if that has 1 to 128 visible ASCII characters, otherwise a new one. Name it when you report a problem.",
    schema: { type: "string", examples: ["5f0c6a4e-3d5b-4c0e-9b1a-2f7d8e6c1a90"] }
  },
  "x-service": {
    description: "Shows that this service refused the request, not a proxy or another server.",
    ...text("practice-data")
  },
  "retry-after": { description: "Try again after this many seconds.", ...seconds(1) },
  "www-authenticate": { description: "The scheme of the credentials that are required.", ...text("Bearer") },
  "accept-encoding": { description: "The only content encoding that a request may have.", ...text("identity") },
  [lagHeader]: {
    description: "The delay of the changes in seconds: those behind an open transaction arrive once it ends.",
    ...seconds(0)
  },
  [completeHeader]: {
    description:
      "True once the first load is complete: you have every record that existed when you began without a cursor, except those changed since.",
    ...text("true", "false")
  },
  [nextHeader]: {
    description:
      "The `cursor` of the body, where `has_more` is true: you can ask for the next page while you still read this one. A long cursor is in the body alone.",
    schema: { type: "string" }
  }
}

/** The names of the headers that responses may have. */
export const headerNames: ReadonlyArray<string> = Object.keys(headers)

interface Response {
  readonly description: string
  readonly content?: OpenApi.OpenApiSpecContent
  readonly headers?: Readonly<Record<string, unknown>>
}

/** A parameter with its description and its example beside its schema. */
const parameterOf = ({ schema, ...given }: OpenApi.OpenAPISpecParameter) => {
  const { description, examples, ...rest } = simplify({ ...schema }, true)
  return {
    ...given,
    ...(description !== undefined && { description }),
    schema: rest,
    ...(Array.isArray(examples) && sent(examples[0]))
  }
}

const bodyName = ({ content }: OpenApi.OpenAPISpecRequestBody) => {
  const ref = content["application/json"]?.schema["$ref"]
  return Predicate.isString(ref) ? ref.replace("#/components/schemas/", "") : ""
}

interface Options {
  readonly title: string
  readonly version: string
  readonly description: string
  readonly url: string
  /** The documentation of each status of a path. */
  readonly statuses: (path: string) => Readonly<Record<string, Status>>
  /** The statuses that are not provisional. */
  readonly contract?: ReadonlyArray<string>
  /**
   * The schemas of requests where unknown fields are refused: they are closed, and components of their own. Generators of
   * clients take a property with a default for one that is always present, except within the body of a request.
   */
  readonly requests?: (schema: JsonSchema.JsonSchema, name: string) => JsonSchema.JsonSchema
}

/** The annotations of an API that make its document. */
export const documentation = ({ contract = [], requests, statuses, url, ...about }: Options) => {
  const schemasOf = (given: JsonSchema.Definitions, operations: ReadonlyArray<OpenApi.OpenAPISpecOperation>) => {
    if (requests === undefined) return Record.map(given, (schema) => simplify(schema, true))
    const stable = operations.filter((operation) => !("x-provisional" in operation))
    const requested = reachableFrom(given, ...operations.map(({ requestBody }) => requestBody))
    const shown = reachableFrom(given, ...stable.map(({ responses }) => responses))
    return Record.map(given, (schema, name) => {
      if (requested.has(name)) return requests(simplify(schema, false), name)
      // Records that only provisional endpoints return are provisional.
      return { ...simplify(schema, true), ...(!shown.has(name) && { "x-provisional": true }) }
    })
  }

  const bodiesOf = (operations: ReadonlyArray<OpenApi.OpenAPISpecOperation>, schemas: JsonSchema.Definitions) =>
    Object.fromEntries(
      operations.flatMap(({ requestBody }) => {
        if (requestBody === undefined || requests === undefined) return []
        const name = bodyName(requestBody)
        const content = Record.map(requestBody.content, (media) => ({ ...media, schema: schemas[name] }))
        return [[name, { ...requestBody, content }] as const]
      })
    )

  const operationOf = (path: string, given: OpenApi.OpenAPISpecOperation, schemas: JsonSchema.Definitions) => {
    const { requestBody } = given
    const responses: Readonly<Record<string, Response>> = { ...given.responses, 500: { description: "" } }
    return {
      ...given,
      parameters: given.parameters.map(parameterOf),
      ...(requestBody && requests && { requestBody: reference("requestBodies", bodyName(requestBody)) }),
      responses: Record.map(responses, (response, code) => {
        const { body, description, example }: Partial<Status> = statuses(path)[code] ?? {}
        const content =
          body === undefined ? response.content : { "application/json": { schema: reference("schemas", body) } }
        return {
          description: description ?? response.description,
          headers: Record.map({ "x-request-id": {}, ...response.headers }, (_, name) => reference("headers", name)),
          ...(content && {
            content: Record.map(content, (media) => {
              const schema = simplify(media.schema, true)
              return { example: example ?? exampleOf(schema, schemas), ...media, schema }
            })
          }),
          ...(!contract.includes(code) && { "x-provisional": true })
        }
      })
    }
  }

  return OpenApi.annotations({
    ...about,
    license: { name: "MIT", identifier: "MIT" },
    servers: [{ url, description: "This server." }],
    transform: ({ components, info, paths: given, ...spec }) => {
      const items: OpenApi.OpenAPISpecPaths = given
      const operations = Object.values(items).flatMap(({ get, post }) => [get, post].filter(Predicate.isNotUndefined))
      const schemas = schemasOf(components.schemas, operations)
      const requestBodies = bodiesOf(operations, schemas)
      const paths = Record.map(items, ({ get, post }, path) => ({
        ...(get && { get: operationOf(path, get, schemas) }),
        ...(post && { post: operationOf(path, post, schemas) })
      }))
      const written = JSON.stringify(paths)
      return {
        ...spec,
        // The operator of the service is not known here.
        info: { ...info, contact: { name: "The operator of this service" } },
        paths,
        components: {
          schemas: Record.filter(schemas, (_, name) => !(name in requestBodies)),
          ...(requests && { requestBodies }),
          headers: Record.filter(headers, (_, name) => written.includes(`"${reference("headers", name).$ref}"`)),
          securitySchemes: components.securitySchemes
        }
      }
    }
  })
}
