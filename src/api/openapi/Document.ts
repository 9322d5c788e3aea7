/** The OpenAPI documents: the documentation of endpoints, of statuses and of headers. */
import { Array, type JsonSchema, Record, String as Text } from "effect"
import { OpenApi } from "effect/http-api"
import { bugText, EncodingUnsupported, errorHeader, errorName, maximumBody, PayloadTooLarge } from "../Errors.ts"
import { makeExample, lastPart, reachableFrom, reference, requiring, simplify } from "./JsonSchemas.ts"

/** A name such as `charge-payments` as one of a type: `ChargePayments`. */
export const typeName = (name: string) => name.split("-").map(Text.capitalize).join("")

/** The documentation of the responses of a status. */
export interface Status {
  readonly description?: string
  /** An example of its body; by default, made of the examples of its schema. */
  readonly example?: unknown
}

interface Documentation {
  /** The resource and the verb: the names of methods in generated clients. */
  readonly operation: readonly [resource: string, verb: string]
  readonly summary: string
  readonly description: string
  /** True if the contract shows the endpoint; by default, its shape is provisional. */
  readonly isContract?: boolean
  /** A body that gets a 200 on the demo data, for its first organization. */
  readonly request?: object
  /** The documentation of its statuses, where that of the API does not fit. */
  readonly statuses?: Readonly<Record<string, Status>>
}

/** A named example of a request: pages that send requests look for named ones. */
export const sent = (value: unknown) => ({ examples: { demo: { summary: "On the demo data", value } } })

export const annotations = ({ isContract = false, operation, request, statuses = {}, ...texts }: Documentation) =>
  OpenApi.annotations({
    identifier: `${Text.uncapitalize(typeName(operation[0]))}.${operation[1]}`,
    ...texts,
    override: isContract ? undefined : { "x-provisional": true },
    transform: ({ requestBody, responses, ...documented }) => ({
      ...documented,
      ...(request && {
        requestBody: {
          ...requestBody,
          content: Record.map<string, object, object>(requestBody.content, (media) => ({ ...media, ...sent(request) }))
        }
      }),
      // The document of the API moves each example beside its schema. The description of errors is their names.
      responses: Record.map<string, OpenApi.OpenApiSpecResponse, object>(responses, (response, status) => ({
        ...response,
        ...(response.headers?.[errorHeader] && {
          headers: { ...response.headers, ...errorNameHeader(...response.description.split(" | ")) }
        }),
        ...statuses[status]
      }))
    })
  })

/** The documentation of a status whose body is `{ detail }`. */
export const errorStatus = (description: string, { detail }: { readonly detail: string }): Status => ({
  description,
  example: { detail }
})

const internalError = errorStatus("A bug. The response does not reveal the cause.", { detail: bugText })

/** The documentation of the statuses that refuse a body before it is decoded. */
export const bodyStatuses: Readonly<Record<string, Status>> = {
  413: errorStatus(`The request body is larger than ${maximumBody / 1024} KiB.`, new PayloadTooLarge()),
  415: errorStatus("The request has a Content-Encoding other than identity.", new EncodingUnsupported())
}

const text = (...values: ReadonlyArray<string>) => ({ schema: { type: "string", enum: values } })

/** The header that names the error. */
const errorNameHeader = (...names: ReadonlyArray<string>) => ({
  [errorHeader]: { ...text(...Array.dedupe(names)), required: true }
})

const seconds = (minimum: number) => ({ schema: { type: "integer", minimum, examples: [minimum] } })

const headers = {
  "x-request-id": {
    description:
      "The id of the request: its own `x-request-id` if that is 1 to 128 visible ASCII characters, otherwise a new one. Include it when you report a problem.",
    schema: { type: "string", examples: ["5f0c6a4e-3d5b-4c0e-9b1a-2f7d8e6c1a90"] }
  },
  "retry-after": { description: "Seconds to wait before a retry.", ...seconds(1) },
  "www-authenticate": { description: "The required authentication scheme.", ...text("Bearer") },
  "accept-encoding": { description: "The only content encoding accepted in requests.", ...text("identity") }
}

/** A parameter with its description and its example beside its schema. */
const documentParameter = ({ schema, ...given }: OpenApi.OpenAPISpecParameter) => {
  const { description, examples, ...rest } = simplify({ ...schema }, true)
  return {
    ...given,
    ...(description !== undefined && { description }),
    schema: rest,
    ...(Array.isArray(examples) && sent(examples[0]))
  }
}

const bodyName = ({ content }: OpenApi.OpenAPISpecRequestBody) =>
  lastPart(String(content["application/json"]?.schema["$ref"]))

/** A body with its schema in place. Generators name its type by the title. */
const withBody = ({ content, ...body }: OpenApi.OpenAPISpecRequestBody, schemas: JsonSchema.Definitions) => {
  const title = bodyName({ content, ...body })
  return { ...body, content: Record.map(content, (media) => ({ ...media, schema: { title, ...schemas[title] } })) }
}

interface ApiDocumentation {
  readonly title: string
  readonly version: string
  readonly description: string
  readonly url: string
  /** The documentation of the statuses of all endpoints. */
  readonly statuses?: Readonly<Record<string, Status>>
  /** The statuses that are not provisional. */
  readonly contract?: ReadonlyArray<string>
  /**
   * Set where requests refuse unknown fields: the field of a request, by its name, that is required though its schema has
   * a default. Requests are closed then, and stand in their operations: generators of clients take a property with a
   * default for one that is always present, except within the body of a request, and some follow no reference to a body.
   */
  readonly required?: (request: string) => string
}

/** The annotations of an API that make its document. */
export const documentation = ({ contract = [], required, statuses = {}, url, ...about }: ApiDocumentation) => {
  const documentOperation = (given: OpenApi.OpenAPISpecOperation, schemas: JsonSchema.Definitions) => {
    const { requestBody } = given
    const error = { "application/json": { schema: reference("schemas", "ErrorDetail") } }
    const responses = {
      ...given.responses,
      500: { description: "", headers: errorNameHeader(errorName(bugText)), content: error }
    }
    return {
      ...given,
      parameters: given.parameters.map(documentParameter),
      ...(requestBody && required && { requestBody: withBody(requestBody, schemas) }),
      responses: Record.map<string, OpenApi.OpenApiSpecResponse & Status, object>(responses, (response, code) => {
        const { description, example } = { 500: internalError, ...statuses }[code] ?? {}
        return {
          description: description ?? response.description,
          headers: Record.map<string, object, object>({ "x-request-id": {}, ...response.headers }, (header, name) =>
            name === errorHeader ? header : reference("headers", name)
          ),
          ...(response.content && {
            content: Record.map(response.content, (media) => {
              const schema = simplify(media.schema, true)
              return { ...media, example: response.example ?? example ?? makeExample(schema, schemas), schema }
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
      const items: Readonly<Record<string, Readonly<Record<string, OpenApi.OpenAPISpecOperation>>>> = given
      const operations = Object.values(items).flatMap((item) => Object.values(item))
      const bodies = operations.flatMap(({ requestBody }) => (requestBody && required ? [bodyName(requestBody)] : []))
      const definitions: JsonSchema.Definitions = components.schemas
      const stable = operations.filter((operation) => !("x-provisional" in operation))
      const shown = reachableFrom(
        stable.map(({ responses }) => responses),
        definitions
      )
      const schemas = Record.map(definitions, (schema, name): JsonSchema.JsonSchema => {
        if (!required) return simplify(schema, true)
        if (bodies.includes(name)) return requiring(simplify(schema, false), required(name))
        // Records that only provisional endpoints return are provisional.
        return { ...simplify(schema, true), ...(!shown.has(name) && { "x-provisional": true }) }
      })
      const paths = Record.map(
        items,
        Record.map((operation) => documentOperation(operation, schemas))
      )
      const written = JSON.stringify(paths)
      return {
        ...spec,
        // The operator of the service is not known here.
        info: { ...info, contact: { name: "The operator of this service" } },
        paths,
        components: {
          schemas: Record.filter(schemas, (_, name) => !bodies.includes(name)),
          headers: Record.filter(headers, (_, name) => written.includes(`"${reference("headers", name).$ref}"`)),
          securitySchemes: components.securitySchemes
        }
      }
    }
  })
}
