/** The OpenAPI documents: that of the data API against the contract, each rule once over all endpoints, and that of the intake. */
import { assert, describe, it } from "@effect/vitest"
import { Array, Effect, Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../../../src/api/DataApi.ts"
import { VersionOneApi } from "../../../src/api/IntakeApi.ts"
import * as Contract from "../../contract/Contract.ts"
import { lastOf } from "../../../src/api/openapi/JsonSchemas.ts"
import { Document, type JsonSchema, type Operation } from "../../support/openapi.ts"
import { compact, send } from "../../support/inProcess.ts"
import { layerIntake, layerMemory } from "../../support/deletions/intake.ts"

// oxlint-disable-next-line effecttsgo/schema-sync -- a document of another form fails the test
const parse = Schema.decodeUnknownSync(Document)

/** The schema of a body. */
const schemaIn = (body: Operation["responses"][string] | Operation["requestBody"]): JsonSchema =>
  body?.content?.["application/json"].schema ?? {}

/** The name of the schema that one refers to. */
const nameOf = ({ $ref }: JsonSchema) => ($ref === undefined ? undefined : lastOf($ref))

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

/** The names of errors of a status, or some of them that every endpoint has. */
const errorsOf: Readonly<Record<string, ReadonlyArray<string>>> = {
  400: ["org_mismatch"],
  401: ["unauthorized"],
  410: ["cursor_expired"],
  413: ["payload_too_large"],
  415: ["encoding_unsupported"],
  422: ["request_invalid"],
  429: ["too_many_requests"],
  500: ["internal_server_error"],
  501: ["changes_not_served"],
  503: ["credential_store_down"]
}

/** The headers that errors of some statuses have. */
const headerOf: Readonly<Record<string, string>> = {
  401: "www-authenticate",
  429: "retry-after",
  503: "retry-after"
}

const absent = [undefined, undefined, undefined, undefined]

const isProvisional = (part: object) => "x-provisional" in part

const itemFacts = (endpoint: Contract.Endpoint) => {
  const item = itemOf(endpoint)
  return [typesIn(item), item.required, isProvisional(item)]
}

/** The names of the errors of a response. */
const namesIn = (response?: Operation["responses"][string]) => {
  const header = response?.headers["x-error"]
  return header !== undefined && "schema" in header ? (header.schema.enum ?? []) : []
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
    assert.sameMembers(
      methods,
      Contract.endpoints.map(({ path }) => `post ${path}`)
    )
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
    "lists the names of the errors of each status",
    Contract.endpoints,
    (endpoint) =>
      Object.entries(operationOf(endpoint).responses).map(([status, response]) => {
        const names = namesIn(response)
        const isOpen = ["400", "503"].includes(status)
        return [status, isOpen ? errorsOf[status]?.filter((name) => names.includes(name)) : names]
      }),
    ({ decided, kind, listed }) =>
      [...listed, ...decided]
        .toSorted()
        .map((status) => [
          status,
          status === "404" ? [kind === "get task" ? "task_not_found" : "record_not_found"] : (errorsOf[status] ?? [])
        ])
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
    "has the fields of records in order, each of its type and always present",
    Contract.recordEndpoints,
    itemFacts,
    ({ resource: { fields, record } }) => [
      Object.entries(fields).map(([name, type]) => [name, worded(type)]),
      Object.keys(fields),
      record === "provisional"
    ]
  )

  every("has the fields of deletion tasks in order, which are provisional", Contract.taskEndpoints, itemFacts, () => [
    Object.entries(Contract.taskFields),
    Object.keys(Contract.taskFields),
    true
  ])

  every(
    "has the parts of pages",
    Contract.recordEndpoints.filter(({ kind }) => kind !== "get"),
    (endpoint) => responseOf(endpoint).required,
    ({ kind }) => (kind === "search" ? ["body"] : ["body", "removed", "cursor", "has_more"])
  )

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

const intakeSpec = OpenApi.fromApi(VersionOneApi)
const intake = parse(intakeSpec)
const delivery = intake.paths["/invoice-deletions"]?.post
const { parameters = [], requestBody, responses = {} } = delivery ?? {}

it("the document of the intake has its paths, limits of headers, and the body of each status", () => {
  assert.strictEqual(intake.servers[0].url, "/api/v1")
  assert.deepStrictEqual(Object.keys(intake.paths), ["/invoice-deletions", "/health", "/health/ready"])
  assert.deepStrictEqual(
    intakeSpec.paths["/invoice-deletions"]?.post?.parameters.map(({ name, required, schema }) => {
      const limits = new Map(Object.entries(schema))
      return [name, required, limits.get("minLength"), limits.get("maxLength")]
    }),
    [
      ["idempotency-key", true, 1, 36],
      ["x-organization-id", true, 1, 128],
      ...["webhook", "svix"].flatMap((set) =>
        ["id", "timestamp", "signature"].map((name) => [`${set}-${name}`, false, undefined, undefined])
      )
    ]
  )
  assert.strictEqual(nameOf(schemaIn(requestBody)), "InvoiceDeletions")
  assert.isTrue(Object.values(intakeSpec.paths["/invoice-deletions"]?.post?.responses ?? {}).every(isProvisional))
  const bodies = Object.entries(responses).map(([status, response]) => `${status} ${nameOf(schemaIn(response))}`)
  const errors = ["401", "413", "415"].map((status) => `${status} ErrorDetail`)
  const others = ["422 HTTPValidationError", "500 ErrorDetail", "503 DeliveryReceipt"]
  assert.deepStrictEqual(bodies, ["200 DeliveryReceipt", "202 DeliveryReceipt", ...errors, ...others])
  assert.isDefined(responses["503"]?.headers["retry-after"])
  assert.deepStrictEqual(namesIn(responses["503"]), ["intake_unavailable"])
})

const receipt = "status task_id scheduled_for idempotency_key invoices_count invoice_lines_count received_at"

it.each([
  ["InvoiceDeletions", undefined, "invoices invoice_lines"],
  ["DeletedInvoice", ["invoice_id"], "invoice_id clinic_id client_id"],
  ["DeletedInvoiceLine", ["invoice_line_id"], "invoice_line_id invoice_id clinic_id"],
  ["DeliveryReceipt", receipt.split(" "), receipt]
] as const)("%s has its fields, those of them that are required, and may have others", (name, required, fields) => {
  const schema = intake.components.schemas[name]
  assert.deepStrictEqual(schema?.required, required && [...required])
  assert.strictEqual(Object.keys(schema?.properties ?? {}).join(" "), fields)
  assert.notStrictEqual(schema?.additionalProperties, false)
})

it.effect("the intake accepts the example of a delivery, and serves the document and its page", () =>
  Effect.gen(function* () {
    const examples = parameters
      .slice(0, 2)
      .map(({ examples: given, name }) => [name, String(given?.demo.value)] as const)
    const json = requestBody?.content["application/json"].examples?.demo.value
    const sent = { path: "/api/v1/invoice-deletions", headers: Object.fromEntries(examples), json }
    assert.strictEqual((yield* send(sent)).status, 202)
    const served = yield* send({ path: "/api/v1/openapi.json", method: "GET" })
    assert.strictEqual(yield* compact(served.json), yield* compact(intakeSpec))
    const page = yield* send({ path: "/api/v1/docs", method: "GET" })
    assert.deepStrictEqual([page.status, page.headers["content-type"]?.slice(0, 9)], [200, "text/html"])
  }).pipe(Effect.provide(layerIntake(layerMemory)))
)
