/** The OpenAPI document of version 1, as far as the intake goes. Contract: section 4.2; decisions: what the contract does not show is provisional. */
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { VersionOneApi } from "../../../src/api/IntakeApi.ts"
import { compact, send } from "../../http/inProcess.ts"
import { layerIntake, layerMemory } from "../../support/deletions/intake.ts"

const document = OpenApi.fromApi(VersionOneApi)

const Content = Schema.Struct({ "application/json": Schema.Struct({ schema: Schema.Struct({ $ref: Schema.String }) }) })

const exampleOf = <S extends Schema.Constraint>(value: S) => Schema.Struct({ demo: Schema.Struct({ value }) })

const RequestContent = Schema.Struct({
  "application/json": Schema.Struct({
    schema: Schema.Struct({ $ref: Schema.String }),
    examples: exampleOf(Schema.Json)
  })
})

const Described = Schema.Struct({
  properties: Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Unknown)),
  required: Schema.optionalKey(Schema.Array(Schema.String)),
  additionalProperties: Schema.optionalKey(Schema.Unknown)
})

/** What the tests look at. */
const read = Schema.decodeUnknownEffect(
  Schema.Struct({
    paths: Schema.Struct({
      "/invoice-deletions": Schema.Struct({
        post: Schema.Struct({
          parameters: Schema.Array(
            Schema.Struct({
              name: Schema.String,
              in: Schema.String,
              required: Schema.Boolean,
              schema: Schema.Record(Schema.String, Schema.Unknown),
              examples: Schema.optionalKey(exampleOf(Schema.String))
            })
          ),
          requestBody: Schema.Struct({ content: RequestContent, required: Schema.Boolean }),
          responses: Schema.Record(
            Schema.String,
            Schema.Struct({
              description: Schema.String,
              content: Content,
              headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
              "x-provisional": Schema.optionalKey(Schema.Boolean)
            })
          )
        })
      })
    }),
    components: Schema.Struct({
      schemas: Schema.Struct({
        DeliveryReceipt: Described,
        InvoiceDeletions: Described,
        DeletedInvoice: Described,
        DeletedInvoiceLine: Described
      })
    })
  })
)

const operation = Effect.map(read(document), ({ paths }) => paths["/invoice-deletions"].post)

const schemas = Effect.map(read(document), ({ components }) => components.schemas)

const nameOf = ($ref: string) => $ref.split("/").at(-1)

/** The body of each status. */
const bodies = {
  200: "DeliveryReceipt",
  202: "DeliveryReceipt",
  401: "ErrorDetail",
  413: "ErrorDetail",
  415: "ErrorDetail",
  422: "HTTPValidationError",
  500: "ErrorDetail",
  503: "DeliveryReceipt"
}

describe("the OpenAPI document of the intake", () => {
  test("has the intake, a POST, and health beside it", () => {
    assert.deepStrictEqual(
      Object.entries(document.paths).map(([path, item]) => [path, Object.keys(item)]),
      [
        ["/invoice-deletions", ["post"]],
        ["/health", ["get"]],
        ["/health/ready", ["get"]]
      ]
    )
  })

  test.effect("has the contract's headers as required, with their limits, and those of a signature as optional", () =>
    Effect.gen(function* () {
      const { parameters } = yield* operation
      assert.deepStrictEqual(
        parameters.map(({ name, in: where, required }) => [where, name, required]),
        [
          ["header", "idempotency-key", true],
          ["header", "x-organization-id", true],
          ["header", "webhook-id", false],
          ["header", "webhook-timestamp", false],
          ["header", "webhook-signature", false]
        ]
      )
      assert.deepInclude(parameters[0]?.schema, { type: "string", minLength: 1, maxLength: 36 })
      assert.deepInclude(parameters[1]?.schema, { type: "string", minLength: 1, maxLength: 128 })
    })
  )

  test.effect("describes every status of a response, with its body, as provisional", () =>
    Effect.gen(function* () {
      const { responses } = yield* operation
      const found = Object.entries(responses).map(
        ([status, { content }]) => [status, nameOf(content["application/json"].schema.$ref)] as const
      )
      assert.deepStrictEqual(Object.fromEntries(found), bodies)
      for (const response of Object.values(responses)) {
        assert.isNotEmpty(response.description)
        assert.isTrue(response["x-provisional"])
      }
      assert.containsAllKeys(responses["503"]?.headers, ["retry-after"])
    })
  )

  test.effect("requires a JSON body", () =>
    Effect.gen(function* () {
      const { requestBody } = yield* operation
      assert.isTrue(requestBody.required)
      assert.strictEqual(nameOf(requestBody.content["application/json"].schema.$ref), "InvoiceDeletions")
    })
  )

  test.effect("requires an item's own id, and nothing else of a delivery", () =>
    Effect.gen(function* () {
      const { InvoiceDeletions, DeletedInvoice, DeletedInvoiceLine } = yield* schemas
      assert.deepStrictEqual(InvoiceDeletions.required ?? [], [])
      assert.deepStrictEqual(Object.keys(InvoiceDeletions.properties), ["invoices", "invoice_lines"])
      assert.deepStrictEqual(DeletedInvoice.required, ["invoice_id"])
      assert.deepStrictEqual(Object.keys(DeletedInvoice.properties), ["invoice_id", "clinic_id", "client_id"])
      assert.deepStrictEqual(DeletedInvoiceLine.required, ["invoice_line_id"])
      assert.deepStrictEqual(Object.keys(DeletedInvoiceLine.properties), ["invoice_line_id", "invoice_id", "clinic_id"])
    })
  )

  test.effect("does not forbid the extra fields of a delivery, which are accepted", () =>
    Effect.gen(function* () {
      const { InvoiceDeletions, DeletedInvoice, DeletedInvoiceLine } = yield* schemas
      for (const schema of [InvoiceDeletions, DeletedInvoice, DeletedInvoiceLine]) {
        assert.notStrictEqual(schema.additionalProperties, false)
      }
    })
  )

  test.effect("has the contract's fields of the response, all of them required", () =>
    Effect.gen(function* () {
      const { properties, required } = (yield* schemas).DeliveryReceipt
      const fields = [
        "status",
        "task_id",
        "scheduled_for",
        "idempotency_key",
        "invoices_count",
        "invoice_lines_count",
        "received_at"
      ]
      assert.deepStrictEqual(Object.keys(properties), fields)
      assert.sameMembers([...(required ?? [])], fields)
      assert.deepStrictEqual(properties["status"]?.["enum"], ["scheduled", "duplicate", "completed", "error"])
      assert.deepInclude(properties["invoices_count"], { type: "integer" })
      assert.deepInclude(properties["invoice_lines_count"], { type: "integer" })
    })
  )

  test.effect("says of the times of the response that they are date-times, and that one may be null", () =>
    Effect.gen(function* () {
      const { properties } = (yield* schemas).DeliveryReceipt
      assert.match(yield* compact(properties["scheduled_for"]), /"format":"date-time"/)
      const received = yield* compact(properties["received_at"])
      assert.match(received, /"format":"date-time"/)
      assert.match(received, /"null"/)
    })
  )
})

layer(layerIntake(layerMemory))("the server", (it) => {
  it.effect("answers 202 to the example of a delivery", () =>
    Effect.gen(function* () {
      const { parameters, requestBody } = yield* operation
      const headers = Object.fromEntries(
        parameters.filter(({ required }) => required).map(({ examples, name }) => [name, examples?.demo.value])
      )
      const json = requestBody.content["application/json"].examples.demo.value
      const response = yield* send({ path: "/api/v1/invoice-deletions", headers, json })
      assert.strictEqual(response.status, 202, response.text)
    })
  )

  it.effect("serves the document, and a page that shows it", () =>
    Effect.gen(function* () {
      const served = yield* send({ path: "/api/v1/openapi.json", method: "GET" })
      assert.strictEqual(served.status, 200)
      assert.strictEqual(yield* compact(served.json), yield* compact(document))
      const page = yield* send({ path: "/api/v1/docs", method: "GET" })
      assert.strictEqual(page.status, 200)
      assert.match(page.headers["content-type"] ?? "", /^text\/html/)
    })
  )
})
