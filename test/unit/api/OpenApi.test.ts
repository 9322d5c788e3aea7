/** The OpenAPI documents: that of the data API against the contract, each rule once over all endpoints, and that of the intake. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../../../src/api/DataApi.ts"
import { VersionOneApi } from "../../../src/api/IntakeApi.ts"
import * as Contract from "../../support/contract/Contract.ts"
import type { Endpoint } from "../../support/contract/Contract.ts"
import { compact, send } from "../../support/inProcess.ts"
import { layerIntake, layerMemory } from "../../support/deletions/intake.ts"
import { dig, entries, items, namesOf, schemasOf, worded } from "./document.ts"

const document = OpenApi.fromApi(DataApi)
const { resolve, typeOf, withoutNull } = schemasOf(document)

const operationOf = ({ path }: Endpoint) => dig(document, `paths ${path} post`)

const schemaIn = (content: unknown) => resolve(dig(content, "content application/json schema"))

const requestOf = (endpoint: Endpoint) => dig(operationOf(endpoint), "requestBody content application/json schema")

const responseOf = (endpoint: Endpoint) => schemaIn(dig(operationOf(endpoint), "responses 200"))

/** The item of a page, or the body itself. */
const itemOf = (endpoint: Endpoint) => {
  const response = responseOf(endpoint)
  return resolve(dig(response, "properties body items") ?? dig(response, "properties data items") ?? response)
}

const typesIn = (schema: unknown) =>
  entries(dig(schema, "properties")).map(([name, property]) => [name, typeOf(property)])

const rangeOf = (endpoint: Endpoint, field: string) => {
  const { value } = withoutNull(dig(requestOf(endpoint), `properties ${field}`))
  return ["format", "minimum", "maximum", "default"].map((name) => dig(value, name))
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
  503: ["service_busy", "credential_store_down"]
}

/** The headers that errors of some statuses have. */
const headerOf: Readonly<Record<string, string>> = {
  401: "www-authenticate",
  429: "retry-after",
  503: "retry-after"
}

const absent = [undefined, undefined, undefined, undefined]

const isProvisional = (part: unknown) => dig(part, "x-provisional") === true

const itemFacts = (endpoint: Endpoint) => {
  const item = itemOf(endpoint)
  return [typesIn(item), dig(item, "required"), isProvisional(item)]
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
    assert.deepStrictEqual([document.info.version, document.servers?.map(({ url }) => url)], ["3.0", ["/api/v3"]])
    const schemes = entries(document.components.securitySchemes)
    assert.deepStrictEqual(
      schemes.map(([, scheme]) => [dig(scheme, "type"), dig(scheme, "scheme")]),
      [["http", "bearer"]]
    )
  })

  it("has the paths of the contract and the decisions, each for POST alone, and no other", () => {
    const methods = entries(document.paths).flatMap(([path, item]) =>
      entries(item).map(([method]) => `${method} ${path}`)
    )
    assert.sameMembers(
      methods,
      Contract.endpoints.map(({ path }) => `post ${path}`)
    )
  })

  it("names the bodies of errors HTTPValidationError, ValidationError and ErrorDetail", () => {
    const { ErrorDetail, HTTPValidationError, ValidationError } = document.components.schemas
    assert.deepStrictEqual(typesIn(ErrorDetail), [["detail", "string!"]])
    const faults = dig(HTTPValidationError, "properties detail")
    assert.deepStrictEqual([dig(faults, "type"), namesOf(dig(faults, "items"))], ["array", ["ValidationError"]])
    assert.deepStrictEqual(dig(ValidationError, "required"), ["loc", "msg", "type"])
    const loc = items(dig(ValidationError, "properties loc items anyOf")).map((schema) => dig(schema, "type"))
    assert.deepStrictEqual(loc, ["string", "integer"])
  })

  every(
    "describes every endpoint, its key, its body and its statuses, and marks as provisional what the contract does not show",
    Contract.endpoints,
    (endpoint) => {
      const operation = operationOf(endpoint)
      for (const name of ["summary", "description"]) assert.isNotEmpty(dig(operation, name))
      const responses = entries(dig(operation, "responses")).map(([status, response]) => {
        assert.isNotEmpty(dig(response, "description"))
        const error = status !== "200" && namesOf(dig(response, "content application/json schema")).join()
        const header = status in headerOf && entries(dig(response, "headers")).at(-1)?.[0]
        return [status, isProvisional(response), error, header]
      })
      const keys = items(dig(operation, "security")).flatMap((scheme) => Object.keys(Object(scheme)))
      return [isProvisional(operation), keys, dig(operation, "requestBody required"), responses]
    },
    ({ decided, listed, stability }) => [
      stability === "provisional",
      Object.keys(document.components.securitySchemes),
      true,
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
      entries(dig(operationOf(endpoint), "responses")).map(([status, response]) => {
        const names = items(dig(response, "headers x-error schema enum"))
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
    "has the fields of requests in order, each of its type; only an id or a clinic is required; there are no others",
    Contract.endpoints,
    (endpoint) => {
      const request = requestOf(endpoint)
      return [dig(request, "additionalProperties"), items(dig(request, "required")), typesIn(request)]
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
    "has the fields of records in order, each of its type and always present; decided records are provisional",
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
    (endpoint) => dig(responseOf(endpoint), "required"),
    ({ kind }) => (kind === "search" ? ["body"] : ["body", "removed", "cursor", "has_more"])
  )

  every(
    "has open objects of the payment processor, whether there are more, and the ranges of its request",
    Contract.processorEndpoints,
    (endpoint) => {
      const item = itemOf(endpoint)
      return [
        dig(responseOf(endpoint), "required"),
        Object.fromEntries(typesIn(item)),
        dig(item, "additionalProperties") !== false,
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

const intake = OpenApi.fromApi(VersionOneApi)

const operation = dig(intake, "paths /invoice-deletions post")

const parameters = items(dig(operation, "parameters"))

const schema = (name: string) => dig(intake, `components schemas ${name}`)

const nameOf = (content: unknown) => namesOf(dig(content, "application/json schema"))[0]

it("the document of the intake has it and health below /api/v1, limits of headers, and the body of every status", () => {
  assert.strictEqual(dig(intake, "servers 0 url"), "/api/v1")
  assert.deepStrictEqual(Object.keys(intake.paths), ["/invoice-deletions", "/health", "/health/ready"])
  assert.deepStrictEqual(
    parameters.map((one) => ["name", "required", "schema minLength", "schema maxLength"].map((path) => dig(one, path))),
    [
      ["idempotency-key", true, 1, 36],
      ["x-organization-id", true, 1, 128],
      ["webhook-id", false, undefined, undefined],
      ["webhook-timestamp", false, undefined, undefined],
      ["webhook-signature", false, undefined, undefined]
    ]
  )
  assert.strictEqual(nameOf(dig(operation, "requestBody content")), "InvoiceDeletions")
  const bodies = entries(dig(operation, "responses")).map(([status, response]) => {
    assert.isTrue(dig(response, "x-provisional"))
    return `${status} ${nameOf(dig(response, "content"))}`
  })
  const errors = ["401", "413", "415"].map((status) => `${status} ErrorDetail`)
  const others = ["422 HTTPValidationError", "500 ErrorDetail", "503 DeliveryReceipt"]
  assert.deepStrictEqual(bodies, ["200 DeliveryReceipt", "202 DeliveryReceipt", ...errors, ...others])
  assert.isDefined(dig(operation, "responses 503 headers retry-after"))
  assert.deepStrictEqual(dig(operation, "responses 503 headers x-error schema enum"), ["intake_unavailable"])
})

const receipt = "status task_id scheduled_for idempotency_key invoices_count invoice_lines_count received_at"

it.each([
  ["InvoiceDeletions", undefined, "invoices invoice_lines"],
  ["DeletedInvoice", ["invoice_id"], "invoice_id clinic_id client_id"],
  ["DeletedInvoiceLine", ["invoice_line_id"], "invoice_line_id invoice_id clinic_id"],
  ["DeliveryReceipt", receipt.split(" "), receipt]
] as const)("%s has its fields, those of them that are required, and may have others", (name, required, fields) => {
  assert.deepStrictEqual(dig(schema(name), "required"), required && [...required])
  assert.strictEqual(Object.keys(Object(dig(schema(name), "properties"))).join(" "), fields)
  assert.notStrictEqual(dig(schema(name), "additionalProperties"), false)
})

it("a receipt has four statuses, and times of which one is nullable", () => {
  const properties = dig(schema("DeliveryReceipt"), "properties")
  assert.deepStrictEqual(dig(properties, "status enum"), ["scheduled", "duplicate", "completed", "error"])
  const { typeOf: typeIn } = schemasOf(intake)
  const times = ["scheduled_for", "received_at"].map((name) => typeIn(dig(properties, name)))
  assert.deepStrictEqual(times, ["date-time!", "date-time"])
})

it.effect("the intake accepts the example of a delivery, and serves the document and a page that shows it", () =>
  Effect.gen(function* () {
    const headers = Object.fromEntries(
      parameters.slice(0, 2).map((one) => [String(dig(one, "name")), String(dig(one, "examples demo value"))])
    )
    const json = dig(operation, "requestBody content application/json examples demo value")
    assert.strictEqual((yield* send({ path: "/api/v1/invoice-deletions", headers, json })).status, 202)
    const served = yield* send({ path: "/api/v1/openapi.json", method: "GET" })
    assert.strictEqual(yield* compact(served.json), yield* compact(intake))
    const page = yield* send({ path: "/api/v1/docs", method: "GET" })
    assert.deepStrictEqual([page.status, page.headers["content-type"]?.slice(0, 9)], [200, "text/html"])
  }).pipe(Effect.provide(layerIntake(layerMemory)))
)
