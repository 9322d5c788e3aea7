/** The OpenAPI document against the contract: each rule once, over all endpoints. */
import { assert, describe, it } from "@effect/vitest"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../../../src/api/DataApi.ts"
import { resources as described } from "../../../src/api/records/index.ts"
import type { Resource } from "../../../src/api/records/Resource.ts"
import {
  type Endpoint,
  endpoints,
  processorEndpoints,
  type RecordEndpoint,
  recordEndpoints,
  resources,
  taskEndpoints,
  taskFields
} from "../../support/contract/Contract.ts"
import { decode, namesOf, schemasOf, worded } from "./document.ts"

const document = decode(OpenApi.fromApi(DataApi))
const { resolve, typeOf, withoutNull } = schemasOf(document)

const operationOf = ({ path }: Endpoint) => {
  const operation = document.paths[path]?.["post"]
  if (operation === undefined) throw new Error(`${path} is not documented`)
  return operation
}

const requestOf = (endpoint: Endpoint) => {
  const name = operationOf(endpoint).requestBody.$ref.replace("#/components/requestBodies/", "")
  return resolve(document.components.requestBodies[name]?.content["application/json"].schema ?? {})
}

const responseOf = (endpoint: Endpoint, status = "200") =>
  resolve(operationOf(endpoint).responses[status]?.content["application/json"].schema ?? {})

/** The item of a page, or the body itself. */
const itemOf = (endpoint: Endpoint) => {
  const response = responseOf(endpoint)
  const { body, data } = response.properties ?? {}
  return resolve(body?.items ?? data?.items ?? response)
}

const typesIn = (properties: Parameters<typeof resolve>[0]["properties"] = {}) =>
  Object.entries(properties).map(([name, schema]) => [name, typeOf(schema)])

const headersOf = (endpoint: Endpoint, status: string) =>
  Object.keys(operationOf(endpoint).responses[status]?.headers ?? {})

const rangeOf = (endpoint: Endpoint, field: string) => {
  const { format, maximum, minimum, ...value } = withoutNull(requestOf(endpoint).properties?.[field] ?? {}).value
  return [format, minimum, maximum, value.default]
}

/** A rule that every endpoint obeys: what is documented of it, and what the contract says. */
const every = <E extends Endpoint>(
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
    assert.match(document.openapi, /^3\.\d+\.\d+$/)
    assert.deepStrictEqual([document.info.version, document.servers.map(({ url }) => url)], ["3.0", ["/api/v3"]])
    assert.deepStrictEqual(Object.values(document.components.securitySchemes), [{ type: "http", scheme: "bearer" }])
  })

  it("has the paths of the contract and the decisions, each for POST alone, and no other", () => {
    const methods = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method} ${path}`)
    )
    assert.sameMembers(
      methods,
      endpoints.map(({ path }) => `post ${path}`)
    )
  })

  it("names the bodies of errors HTTPValidationError, ValidationError and ErrorDetail", () => {
    const { ErrorDetail, HTTPValidationError, ValidationError } = document.components.schemas
    assert.deepStrictEqual(typesIn(ErrorDetail?.properties), [["detail", "string!"]])
    const faults = HTTPValidationError?.properties?.["detail"]
    assert.deepStrictEqual([faults?.type, namesOf(faults?.items ?? {})], ["array", ["ValidationError"]])
    assert.deepStrictEqual(ValidationError?.required, ["loc", "msg", "type"])
    const loc = ValidationError?.properties?.["loc"]?.items?.anyOf?.map(({ type }) => type)
    assert.deepStrictEqual(loc, ["string", "integer"])
  })

  every(
    "marks exactly the endpoints that the contract does not show as provisional",
    endpoints,
    (endpoint) => operationOf(endpoint)["x-provisional"] ?? false,
    ({ stability }) => stability === "provisional"
  )

  every(
    "requires the API key of every endpoint",
    endpoints,
    (endpoint) => operationOf(endpoint).security.flatMap(Object.keys),
    () => Object.keys(document.components.securitySchemes)
  )

  every(
    "lists the statuses of every endpoint, and marks those that were decided",
    endpoints,
    (endpoint) =>
      Object.entries(operationOf(endpoint).responses)
        .map(([status, response]) => `${status} ${response["x-provisional"] === true}`)
        .toSorted(),
    ({ decided, listed }) =>
      [...listed.map((status) => `${status} false`), ...decided.map((status) => `${status} true`)].toSorted()
  )

  every(
    "gives every error a detail, and a 422 all faults",
    endpoints,
    (endpoint) =>
      Object.entries(operationOf(endpoint).responses).flatMap(([status, { content }]) =>
        status === "200" ? [] : [[status, ...namesOf(content["application/json"].schema)]]
      ),
    (endpoint) =>
      Object.keys(operationOf(endpoint).responses).flatMap((status) =>
        status === "200" ? [] : [[status, status === "422" ? "HTTPValidationError" : "ErrorDetail"]]
      )
  )

  every(
    "documents WWW-Authenticate with 401, and Retry-After with 429 and 503",
    endpoints,
    (endpoint) => ["401", "429", "503"].map((status) => headersOf(endpoint, status).at(-1)),
    () => ["www-authenticate", "retry-after", "retry-after"]
  )

  every(
    "has the fields of requests in order, each of its type; only an id or a clinic is required; there are no others",
    endpoints,
    (endpoint) => {
      const { additionalProperties, properties, required = [] } = requestOf(endpoint)
      return { additionalProperties, required, fields: typesIn(properties) }
    },
    ({ request, required }) => ({
      additionalProperties: false,
      required,
      fields: Object.entries(request).map(([name, type]) => [name, required.includes(name) ? `${type}!` : type])
    })
  )

  every(
    "has the range and the default of limit and offset",
    endpoints.filter(({ request }) => "offset" in request),
    (endpoint) => [rangeOf(endpoint, "limit"), rangeOf(endpoint, "offset")],
    () => [
      ["int32", 1, 1000, 100],
      ["int32", 0, 2147483647, 0]
    ]
  )

  every(
    "has the ranges of a changes request",
    recordEndpoints.filter(({ kind }) => kind === "changes"),
    (endpoint) => [rangeOf(endpoint, "limit"), rangeOf(endpoint, "wait")],
    () => [
      ["int32", 1, 1000, 1000],
      ["int32", 0, 20, 0]
    ]
  )

  every(
    "has the fields of records in order, each of its type and always present; decided records are provisional",
    recordEndpoints,
    (endpoint) => {
      const { properties, required, ...record } = itemOf(endpoint)
      return { fields: typesIn(properties), required, isProvisional: record["x-provisional"] ?? false }
    },
    ({ resource: { fields, record } }) => ({
      fields: Object.entries(fields).map(([name, type]) => [name, worded(type)]),
      required: Object.keys(fields),
      isProvisional: record === "provisional"
    })
  )

  every<RecordEndpoint>(
    "has the parts of pages",
    recordEndpoints.filter(({ kind }) => kind !== "get"),
    (endpoint) => responseOf(endpoint).required,
    ({ kind }) => (kind === "search" ? ["body"] : ["body", "removed", "cursor", "has_more"])
  )

  every(
    "has the fields of deletion tasks in order, which are provisional",
    taskEndpoints,
    (endpoint) => {
      const { properties, required, ...task } = itemOf(endpoint)
      return { fields: typesIn(properties), required, isProvisional: task["x-provisional"] }
    },
    () => ({ fields: Object.entries(taskFields), required: Object.keys(taskFields), isProvisional: true })
  )

  every(
    "has open objects of the payment processor, and whether there are more",
    processorEndpoints,
    (endpoint) => {
      const { properties, ...item } = itemOf(endpoint)
      return [responseOf(endpoint).required, typesIn(properties), item.additionalProperties !== false]
    },
    () => [
      ["data", "has_more"],
      [
        ["id", "string!"],
        ["object", "string!"],
        ["created", "integer!"]
      ],
      true
    ]
  )

  every(
    "has the default of the processor's limit, and times of 64 bits",
    processorEndpoints,
    (endpoint) => ["limit", "created_gte", "created_lte"].map((field) => rangeOf(endpoint, field)),
    () => [
      ["int32", 1, undefined, 100],
      ["int64", 0, Number.MAX_SAFE_INTEGER, undefined],
      ["int64", 0, Number.MAX_SAFE_INTEGER, undefined]
    ]
  )
})

/** The fields that filters look at and that records do not show. */
const hidden: Readonly<Record<string, string>> = { "charges pet": "pet", "pet-benefits include_deleted": "removed" }

it("resources have the contract's filters, each over its fields, and its order", () => {
  const actual = described.map(({ filters, name, orderedBy }: Resource) => [
    name,
    orderedBy,
    Object.entries(filters).map(([filter, { fields, kind }]) => [filter, kind, ...fields])
  ])
  const expected = resources.map(({ filters, name, orderedBy }) => [
    name,
    orderedBy,
    Object.entries(filters).map(
      ([
        filter,
        {
          compares,
          fields: [...looksAt]
        }
      ]) => [
        filter,
        compares === "includes" ? "includeMarked" : compares,
        ...(looksAt.length > 0 ? looksAt : [hidden[`${name} ${filter}`]])
      ]
    )
  ])
  assert.sameDeepMembers(actual, expected)
})
