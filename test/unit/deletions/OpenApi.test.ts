/** The OpenAPI document of the intake. */
import { assert, it as test, layer } from "@effect/vitest"
import { Effect, Predicate } from "effect"
import { OpenApi } from "effect/http-api"
import { VersionOneApi } from "../../../src/api/IntakeApi.ts"
import { layerIntake, layerMemory } from "../../support/deletions/intake.ts"
import { compact, send } from "../../support/inProcess.ts"

const document = OpenApi.fromApi(VersionOneApi)

const dig = (value: unknown, path: string) =>
  path.split(" ").reduce((found, key) => (Predicate.hasProperty(found, key) ? found[key] : undefined), value)

const operation = dig(document, "paths /invoice-deletions post")

const schema = (name: string) => dig(document, `components schemas ${name}`)

const nameOf = (content: unknown) =>
  String(dig(content, "application/json schema $ref")).replace("#/components/schemas/", "")

test("has the intake and health, with the limits of headers, and the body of every status", () => {
  assert.deepStrictEqual(Object.keys(document.paths), ["/invoice-deletions", "/health", "/health/ready"])
  const parameters = ["0", "1", "2", "3", "4"].map((index) => dig(operation, `parameters ${index}`))
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
  const bodies = Object.entries(Object(dig(operation, "responses"))).map(([status, response]) => {
    assert.isTrue(dig(response, "x-provisional"))
    return `${status} ${nameOf(dig(response, "content"))}`
  })
  const errors = ["401", "413", "415"].map((status) => `${status} ErrorDetail`)
  assert.deepStrictEqual(bodies, [
    "200 DeliveryReceipt",
    "202 DeliveryReceipt",
    ...errors,
    "422 HTTPValidationError",
    "500 ErrorDetail",
    "503 DeliveryReceipt"
  ])
  assert.isDefined(dig(operation, "responses 503 headers retry-after"))
})

const receipt = "status task_id scheduled_for idempotency_key invoices_count invoice_lines_count received_at"

test.each([
  ["InvoiceDeletions", undefined, "invoices invoice_lines"],
  ["DeletedInvoice", ["invoice_id"], "invoice_id clinic_id client_id"],
  ["DeletedInvoiceLine", ["invoice_line_id"], "invoice_line_id invoice_id clinic_id"],
  ["DeliveryReceipt", receipt.split(" "), receipt]
] as const)("%s has its fields, those of them that are required, and may have others", (name, required, fields) => {
  assert.deepStrictEqual(dig(schema(name), "required"), required && [...required])
  assert.strictEqual(Object.keys(Object(dig(schema(name), "properties"))).join(" "), fields)
  assert.notStrictEqual(dig(schema(name), "additionalProperties"), false)
})

test.effect("a receipt has four statuses, and times of which one is nullable", () =>
  Effect.gen(function* () {
    const properties = dig(schema("DeliveryReceipt"), "properties")
    assert.deepStrictEqual(dig(properties, "status enum"), ["scheduled", "duplicate", "completed", "error"])
    assert.match(yield* compact(dig(properties, "scheduled_for")), /"format":"date-time"/)
    assert.match(yield* compact(dig(properties, "received_at")), /"null".*"format":"date-time"/)
  })
)

layer(layerIntake(layerMemory))("the intake", (it) => {
  it.effect("accepts the example of a delivery, and serves the document and a page that shows it", () =>
    Effect.gen(function* () {
      const headers = Object.fromEntries(
        ["0", "1"].map((index) => {
          const parameter = dig(operation, `parameters ${index}`)
          return [String(dig(parameter, "name")), String(dig(parameter, "examples demo value"))]
        })
      )
      const json = dig(operation, "requestBody content application/json examples demo value")
      assert.strictEqual((yield* send({ path: "/api/v1/invoice-deletions", headers, json })).status, 202)
      const served = yield* send({ path: "/api/v1/openapi.json", method: "GET" })
      assert.strictEqual(yield* compact(served.json), yield* compact(document))
      const page = yield* send({ path: "/api/v1/docs", method: "GET" })
      assert.deepStrictEqual([page.status, page.headers["content-type"]?.slice(0, 9)], [200, "text/html"])
    })
  )
})
