/** The examples and the texts of the OpenAPI document; `api/OpenApi` holds the rest of it against the contract. */
import { assert, it, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../../../src/api/DataApi.ts"
import { compact, InProcess, send } from "../../support/inProcess.ts"

const document = OpenApi.fromApi(DataApi)

const operations = Object.entries(document.paths).flatMap(([path, { post }]) =>
  post === undefined ? [] : [[path, post] as const]
)

const RequestBody = Schema.Struct({
  content: Schema.Record(
    Schema.String,
    Schema.Struct({ examples: Schema.Struct({ demo: Schema.Struct({ value: Schema.Json }) }) })
  )
})
const readReference = Schema.decodeUnknownEffect(Schema.Struct({ $ref: Schema.String }))
const readRequestBodies = Schema.decodeUnknownEffect(
  Schema.Struct({ requestBodies: Schema.Record(Schema.String, RequestBody) })
)

const requestBodyOf = Effect.fnUntraced(function* ({ requestBody }: OpenApi.OpenAPISpecOperation) {
  const { $ref } = yield* readReference(requestBody)
  const { requestBodies } = yield* readRequestBodies(document.components)
  return yield* Effect.fromNullishOr(requestBodies[$ref.replace("#/components/requestBodies/", "")])
})

it("every operation has texts, and an id of its own", () => {
  for (const [, { description, summary }] of operations)
    for (const text of [summary, description]) assert.isNotEmpty(text)
  assert.strictEqual(new Set(operations.map(([, { operationId }]) => operationId)).size, operations.length)
})

layer(InProcess.layer())("the server", (test) => {
  test.effect.each(operations)("answers 200 to the example of %s, and something is there", ([path, operation]) =>
    Effect.gen(function* () {
      const { content } = yield* requestBodyOf(operation)
      const response = yield* send({ path: `/api/v3${path}`, json: content["application/json"]?.examples.demo.value })
      assert.strictEqual(response.status, 200, response.text)
      assert.notMatch(response.text, /"(body|data)":\[\]/)
    })
  )

  test.effect("serves the document and a page that shows it, without a key", () =>
    Effect.gen(function* () {
      const headers = { authorization: undefined }
      const served = yield* send({ path: "/api/v3/openapi.json", method: "GET", headers })
      assert.strictEqual(served.status, 200)
      assert.strictEqual(yield* compact(served.json), yield* compact(document))
      const page = yield* send({ path: "/api/v3/docs", method: "GET", headers })
      assert.strictEqual(page.status, 200)
      assert.match(page.headers["content-type"] ?? "", /^text\/html/)
    })
  )
})
