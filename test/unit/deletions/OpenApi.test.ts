/** The OpenAPI document of the intake. */
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { VersionOneApi } from "../../../src/api/IntakeApi.ts"
import { compact, send } from "../../support/inProcess.ts"
import { layerIntake, layerMemory } from "../../support/deletions/intake.ts"

const document = OpenApi.fromApi(VersionOneApi)

const Ref = Schema.Struct({ $ref: Schema.String })
const exampleOf = <S extends Schema.Constraint>(value: S) => Schema.Struct({ demo: Schema.Struct({ value }) })
const contentOf = <S extends Schema.Struct.Fields>(fields: S) =>
  Schema.Struct({ "application/json": Schema.Struct({ schema: Ref, ...fields }) })

const Described = Schema.Struct({
  properties: Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Unknown)),
  required: Schema.optionalKey(Schema.Array(Schema.String)),
  additionalProperties: Schema.optionalKey(Schema.Unknown)
})

const Parameter = Schema.Struct({
  name: Schema.String,
  required: Schema.Boolean,
  schema: Schema.Record(Schema.String, Schema.Unknown),
  examples: Schema.optionalKey(exampleOf(Schema.String))
})

const Response = Schema.Struct({
  content: contentOf({}),
  headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
  "x-provisional": Schema.Literal(true)
})

const Operation = Schema.Struct({
  parameters: Schema.Array(Parameter),
  requestBody: Schema.Struct({
    content: contentOf({ examples: exampleOf(Schema.Json) }),
    required: Schema.Literal(true)
  }),
  responses: Schema.Record(Schema.String, Response)
})

const read = Schema.decodeUnknownEffect(
  Schema.Struct({
    paths: Schema.Struct({ "/invoice-deletions": Schema.Struct({ post: Operation }) }),
    components: Schema.Struct({ schemas: Schema.Record(Schema.String, Schema.Unknown) })
  })
)

const operation = Effect.map(read(document), ({ paths }) => paths["/invoice-deletions"].post)

const described = (name: string) =>
  Effect.flatMap(read(document), ({ components }) => Schema.decodeUnknownEffect(Described)(components.schemas[name]))

const nameOf = ({ $ref }: typeof Ref.Type) => $ref.split("/").at(-1)

describe("the OpenAPI document of the intake", () => {
  test("has the intake and health", () => {
    assert.deepStrictEqual(Object.keys(document.paths), ["/invoice-deletions", "/health", "/health/ready"])
  })

  test.effect("has the required headers with their limits, and those of a signature", () =>
    Effect.gen(function* () {
      const { parameters } = yield* operation
      assert.deepStrictEqual(
        parameters.map(({ name, required, schema }) => [name, required, schema["minLength"], schema["maxLength"]]),
        [
          ["idempotency-key", true, 1, 36],
          ["x-organization-id", true, 1, 128],
          ["webhook-id", false, undefined, undefined],
          ["webhook-timestamp", false, undefined, undefined],
          ["webhook-signature", false, undefined, undefined]
        ]
      )
    })
  )

  test.effect("has the body of every status, and Retry-After with 503", () =>
    Effect.gen(function* () {
      const { requestBody, responses } = yield* operation
      assert.strictEqual(nameOf(requestBody.content["application/json"].schema), "InvoiceDeletions")
      const bodies = Object.entries(responses).map(([status, { content }]) => [
        status,
        nameOf(content["application/json"].schema)
      ])
      assert.deepStrictEqual(Object.fromEntries(bodies), {
        200: "DeliveryReceipt",
        202: "DeliveryReceipt",
        401: "ErrorDetail",
        413: "ErrorDetail",
        415: "ErrorDetail",
        422: "HTTPValidationError",
        500: "ErrorDetail",
        503: "DeliveryReceipt"
      })
      assert.containsAllKeys(responses["503"]?.headers, ["retry-after"])
    })
  )

  test.effect.each([
    ["InvoiceDeletions", [], ["invoices", "invoice_lines"]],
    ["DeletedInvoice", ["invoice_id"], ["invoice_id", "clinic_id", "client_id"]],
    ["DeletedInvoiceLine", ["invoice_line_id"], ["invoice_line_id", "invoice_id", "clinic_id"]]
  ] as const)(
    "%s requires an item's own id alone, and allows fields that it does not have",
    ([name, required, fields]) =>
      Effect.gen(function* () {
        const schema = yield* described(name)
        assert.deepStrictEqual(schema.required ?? [], [...required])
        assert.deepStrictEqual(Object.keys(schema.properties), [...fields])
        assert.notStrictEqual(schema.additionalProperties, false)
      })
  )

  test.effect("has the fields of a receipt, all required, one of them nullable", () =>
    Effect.gen(function* () {
      const { properties, required } = yield* described("DeliveryReceipt")
      const fields =
        "status task_id scheduled_for idempotency_key invoices_count invoice_lines_count received_at".split(" ")
      assert.deepStrictEqual(Object.keys(properties), fields)
      assert.sameMembers([...(required ?? [])], fields)
      assert.deepStrictEqual(properties["status"]?.["enum"], ["scheduled", "duplicate", "completed", "error"])
      assert.match(yield* compact(properties["scheduled_for"]), /"format":"date-time"/)
      assert.match(yield* compact(properties["received_at"]), /"null".*"format":"date-time"/)
    })
  )
})

layer(layerIntake(layerMemory))("the intake", (it) => {
  it.effect("accepts the example of a delivery", () =>
    Effect.gen(function* () {
      const { parameters, requestBody } = yield* operation
      const headers = Object.fromEntries(
        parameters.filter(({ required }) => required).map(({ examples, name }) => [name, examples?.demo.value])
      )
      const json = requestBody.content["application/json"].examples.demo.value
      assert.strictEqual((yield* send({ path: "/api/v1/invoice-deletions", headers, json })).status, 202)
    })
  )

  it.effect("serves the document, and a page that shows it", () =>
    Effect.gen(function* () {
      const served = yield* send({ path: "/api/v1/openapi.json", method: "GET" })
      assert.strictEqual(yield* compact(served.json), yield* compact(document))
      const page = yield* send({ path: "/api/v1/docs", method: "GET" })
      assert.deepStrictEqual([page.status, page.headers["content-type"]?.slice(0, 9)], [200, "text/html"])
    })
  )
})
