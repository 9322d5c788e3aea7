/** The OpenAPI document of the data API against the contract, each rule once over all endpoints. */
import { assert, describe, it } from "@effect/vitest"
import { Array } from "effect"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../../../src/api/DataApi.ts"
import * as Contract from "../../contract/Contract.ts"
import { type Document, isProvisional, type JsonSchema, nameOf, parse, schemaIn } from "../../support/openapi.ts"

/** The schemas of a document. */
const schemasOf = ({ components: { schemas } }: Document) => {
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
    if (type === "object") return Array.join(typesIn(schema).map(Array.join(": ")), ", ")
    return (type === "string" ? format : undefined) ?? String(type)
  }

  return { resolve, typesIn, typeOf }
}

/** A type of the contract's tables as `typeOf` words it. */
const worded = (type: string) => type.replace("split", "to_Platform: number, to_Processor: number, to_Clinic: number")

const spec = OpenApi.fromApi(DataApi)
const document = parse(spec)
const { resolve, typesIn } = schemasOf(document)

const operationOf = ({ path }: Contract.Endpoint) => {
  const operation = document.paths[path]?.post
  assert.isDefined(operation, path)
  return operation
}

const requestOf = (endpoint: Contract.Endpoint) => schemaIn(operationOf(endpoint).requestBody)

const responseOf = (endpoint: Contract.Endpoint) => resolve(schemaIn(operationOf(endpoint).responses["200"]))

/** The item of a page, or the body itself. */
const itemOf = (endpoint: Contract.Endpoint) => {
  const response = responseOf(endpoint)
  return resolve((response.properties?.["body"] ?? response.properties?.["data"])?.items ?? response)
}

const rangeOf = (endpoint: Contract.Endpoint, field: string) => {
  const { default: preset, format, maximum, minimum } = requestOf(endpoint).properties?.[field] ?? {}
  return [format, minimum, maximum, preset]
}

/** The headers that errors of some statuses have. */
const headerOf: Readonly<Record<string, string>> = {
  401: "www-authenticate",
  429: "retry-after",
  503: "retry-after"
}

const absent = [undefined, undefined, undefined, undefined]

const itemFacts = (endpoint: Contract.Endpoint) => {
  const item = itemOf(endpoint)
  return [typesIn(item), item.required, isProvisional(item)]
}

/** A rule that every endpoint obeys: the document has what the contract expects. */
const every = <E extends Contract.Endpoint>(
  rule: string,
  all: ReadonlyArray<E>,
  documented: (endpoint: E) => unknown,
  expected: (endpoint: E) => unknown
) =>
  it(rule, () => {
    const each = (of: (endpoint: E) => unknown) => all.map((endpoint) => [endpoint.path, of(endpoint)])
    assert.isNotEmpty(all)
    assert.deepStrictEqual(each(documented), each(expected))
  })

describe("the document of the data API", () => {
  it("is version 3.0 of the API, on OpenAPI 3, below /api/v3, with the HTTP bearer as its scheme", () => {
    assert.match(spec.openapi, /^3\.\d+\.\d+$/)
    assert.deepStrictEqual([document.info.version, document.servers[0].url], ["3.0", "/api/v3"])
    const [scheme, ...others] = Object.values(spec.components.securitySchemes)
    assert.deepInclude(scheme, { type: "http", scheme: "bearer" })
    assert.isEmpty(others)
  })

  it("has the paths of the contract and the decisions, each for POST alone, and no other", () => {
    const methods = Object.entries(spec.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method} ${path}`)
    )
    const posts = Contract.endpoints.map(({ path }) => `post ${path}`)
    assert.sameMembers(methods, posts)
  })

  it("names the bodies of errors HTTPValidationError, ValidationError and ErrorDetail", () => {
    const { ErrorDetail = {}, HTTPValidationError, ValidationError } = document.components.schemas
    assert.deepStrictEqual(typesIn(ErrorDetail), [["detail", "string!"]])
    const { items = {}, type } = HTTPValidationError?.properties?.["detail"] ?? {}
    assert.deepStrictEqual([type, nameOf(items)], ["array", "ValidationError"])
    assert.deepStrictEqual(ValidationError?.required, ["loc", "msg", "type"])
    const loc = ValidationError?.properties?.["loc"]?.items?.anyOf
    assert.deepStrictEqual(loc, [{ type: "string" }, { type: "integer" }])
  })

  every(
    "describes every endpoint, and marks as provisional what the contract does not show",
    Contract.endpoints,
    (endpoint) => {
      const operation = operationOf(endpoint)
      for (const text of [operation.summary, operation.description]) assert.isNotEmpty(text)
      const marked = Object.values(spec.paths[endpoint.path]?.post?.responses ?? {}).map(isProvisional)
      const responses = Object.entries(operation.responses).map(([status, response], index) => {
        assert.isNotEmpty(response.description)
        const error = status !== "200" && nameOf(schemaIn(response))
        const header = status in headerOf && Object.keys(response.headers).at(-1)
        return [status, marked[index], error, header]
      })
      return [isProvisional(operation), operation.security, responses]
    },
    ({ decided, listed, stability }) => [
      stability === "provisional",
      [{ bearer: [] }],
      [...listed, ...decided]
        .toSorted()
        .map((status) => [
          status,
          decided.includes(status),
          status !== "200" && (status === "422" ? "HTTPValidationError" : "ErrorDetail"),
          status in headerOf && headerOf[status]
        ])
    ]
  )

  every(
    "has the fields of requests in order, each of its type; an id or a clinic is required",
    Contract.endpoints,
    (endpoint) => {
      const request = requestOf(endpoint)
      return [request.additionalProperties, request.required ?? [], typesIn(request)]
    },
    ({ request, required }) => [
      false,
      required,
      Object.entries(request).map(([name, type]) => [name, required.includes(name) ? `${type}!` : type])
    ]
  )

  every(
    "has the ranges and the defaults of a page, and of a changes request",
    Contract.endpoints.filter(({ request }) => "offset" in request || "wait" in request),
    (endpoint) => ["limit", "offset", "wait"].map((field) => rangeOf(endpoint, field)),
    ({ request }) =>
      "offset" in request
        ? [["int32", 1, 1000, 100], ["int32", 0, 2147483647, 0], absent]
        : [["int32", 1, 1000, 1000], absent, ["int32", 0, 20, 0]]
  )

  every(
    "has the fields of records in order, each of its type, always present, in a page or alone",
    Contract.recordEndpoints,
    (endpoint) => [...itemFacts(endpoint), responseOf(endpoint).required],
    ({ kind, resource: { fields, record } }) => [
      Object.entries(fields).map(([name, type]) => [name, worded(type)]),
      Object.keys(fields),
      record === "provisional",
      kind === "search" ? ["body"] : Object.keys(fields)
    ]
  )

  every("has the fields of deletion tasks in order, which are provisional", Contract.taskEndpoints, itemFacts, () => [
    Object.entries(Contract.taskFields),
    Object.keys(Contract.taskFields),
    true
  ])

  every(
    "has open objects of the payment processor, and the ranges of its request",
    Contract.processorEndpoints,
    (endpoint) => {
      const item = itemOf(endpoint)
      return [
        responseOf(endpoint).required,
        Object.fromEntries(typesIn(item)),
        item.additionalProperties !== false,
        ...["limit", "created_gte"].map((field) => rangeOf(endpoint, field))
      ]
    },
    () => [
      ["data", "has_more"],
      { id: "string!", object: "string!", created: "integer!" },
      true,
      ["int32", 1, undefined, 100],
      ["int64", 0, Number.MAX_SAFE_INTEGER, undefined]
    ]
  )
})
