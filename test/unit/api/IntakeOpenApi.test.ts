/** The OpenAPI document of the intake. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { OpenApi } from "effect/http-api"
import { VersionOneApi } from "../../../src/api/IntakeApi.ts"
import { layerIntake, layerMemory } from "../../support/deletions/intake.ts"
import { compact, send } from "../../support/inProcess.ts"
import { isProvisional, nameOf, parse, schemaIn } from "../../support/openapi.ts"

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
