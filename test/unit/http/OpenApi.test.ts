/** The OpenAPI document of the data API, as far as every operation has the same. */
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../../../src/api/DataApi.ts"
import { compact, InProcess, paths, processorPaths, send, taskPaths } from "../../support/inProcess.ts"

const document = OpenApi.fromApi(DataApi)

const operations = Object.entries(document.paths).flatMap(([path, { post }]) =>
  post === undefined ? [] : [[path, post] as const]
)

const Reference = Schema.Struct({
  content: Schema.Struct({ "application/json": Schema.Struct({ schema: Schema.Struct({ $ref: Schema.String }) }) })
})
const isReference = Schema.is(Reference)

const RequestBody = Schema.Struct({
  required: Schema.Boolean,
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

const referenced = (response: unknown) =>
  isReference(response) ? response.content["application/json"].schema.$ref.split("/").at(-1) : undefined

describe("the OpenAPI document", () => {
  test("has every endpoint, all of them a POST with an id of its own", () => {
    assert.sameMembers(
      operations.map(([path]) => `/api/v3${path}`),
      [...paths, ...processorPaths, ...taskPaths]
    )
    for (const item of Object.values(document.paths)) assert.deepStrictEqual(Object.keys(item), ["post"])
    assert.strictEqual(new Set(operations.map(([, { operationId }]) => operationId)).size, operations.length)
  })

  test("describes the schemas that errors name, and that the key is a bearer token", () => {
    const { schemas, securitySchemes } = document.components
    assert.containsAllKeys(schemas, ["ErrorDetail", "HTTPValidationError", "ValidationError"])
    assert.include(JSON.stringify(schemas["HTTPValidationError"]), "#/components/schemas/ValidationError")
    assert.deepInclude(Object.values(securitySchemes)[0], { type: "http", scheme: "bearer" })
  })

  test.effect.each(operations)(
    "of %s has a text, the key, a JSON body, and each status with its schema",
    ([path, operation]) =>
      Effect.gen(function* () {
        for (const text of [operation.summary, operation.description, operation.security]) assert.isNotEmpty(text)
        const responses: Readonly<Record<string, OpenApi.OpenApiSpecResponse>> = operation.responses
        const errors = ["400", "401", "413", "415", "503"]
        assert.containsAllKeys(responses, ["200", "422", ...errors])
        assert.strictEqual(Object.hasOwn(responses, "404"), path.endsWith("/get"))
        for (const response of Object.values(responses)) assert.isNotEmpty(response.description)
        for (const status of errors) assert.strictEqual(referenced(responses[status]), "ErrorDetail")
        assert.strictEqual(referenced(responses["422"]), "HTTPValidationError")
        for (const status of ["401", "503"]) assert.containsAllKeys(responses[status], ["headers"])
        const { content, required } = yield* requestBodyOf(operation)
        assert.deepStrictEqual([Object.keys(content), required], [["application/json"], true])
      })
  )
})

layer(InProcess.layer())("the server", (it) => {
  it.effect.each(operations)("answers 200 to the example of %s, and something is there", ([path, operation]) =>
    Effect.gen(function* () {
      const { content } = yield* requestBodyOf(operation)
      const response = yield* send({ path: `/api/v3${path}`, json: content["application/json"]?.examples.demo.value })
      assert.strictEqual(response.status, 200, response.text)
      assert.notMatch(response.text, /"(body|data)":\[\]/)
    })
  )

  it.effect("serves the document and a page that shows it, without a key", () =>
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
