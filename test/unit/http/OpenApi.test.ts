/** The OpenAPI document of the data API, as far as every operation has the same. */
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../../../src/api/DataApi.ts"
import { compact, InProcess, paths, processorPaths, send, taskPaths } from "../../http/inProcess.ts"

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
  test("has every endpoint, all of them a POST", () => {
    assert.sameMembers(
      operations.map(([path]) => `/api/v3${path}`),
      [...paths, ...processorPaths, ...taskPaths]
    )
    for (const item of Object.values(document.paths)) assert.deepStrictEqual(Object.keys(item), ["post"])
  })

  test("gives every operation an id of its own", () => {
    const ids = operations.map(([, { operationId }]) => operationId)
    assert.strictEqual(new Set(ids).size, operations.length)
  })

  test("describes the schemas that errors name", () => {
    assert.containsAllKeys(document.components.schemas, ["ErrorDetail", "HTTPValidationError", "ValidationError"])
    assert.include(
      JSON.stringify(document.components.schemas["HTTPValidationError"]),
      "#/components/schemas/ValidationError"
    )
  })

  test("says that the key is a bearer token", () => {
    assert.deepInclude(Object.values(document.components.securitySchemes)[0], { type: "http", scheme: "bearer" })
  })
})

describe.each(operations)("the documentation of %s", (path, operation) => {
  test("has a summary and a description", () => {
    assert.isNotEmpty(operation.summary)
    assert.isNotEmpty(operation.description)
  })

  test("asks for the key", () => {
    assert.isNotEmpty(operation.security)
  })

  test("names a schema and a description for every status that it can answer", () => {
    const responses: Readonly<Record<string, OpenApi.OpenApiSpecResponse>> = operation.responses
    assert.containsAllKeys(responses, ["200", "400", "401", "413", "415", "422", "503"])
    assert.strictEqual(Object.hasOwn(responses, "404"), path.endsWith("/get"))
    for (const response of Object.values(responses)) assert.isNotEmpty(response.description)
    for (const status of ["400", "401", "413", "415", "503"])
      assert.strictEqual(referenced(responses[status]), "ErrorDetail")
    assert.strictEqual(referenced(responses["422"]), "HTTPValidationError")
  })

  test("documents the headers that a client acts on", () => {
    assert.containsAllKeys(operation.responses["401"], ["headers"])
    assert.containsAllKeys(operation.responses["503"], ["headers"])
  })

  test.effect("takes a JSON body and no other", () =>
    Effect.gen(function* () {
      const { content, required } = yield* requestBodyOf(operation)
      assert.deepStrictEqual(Object.keys(content), ["application/json"])
      assert.isTrue(required)
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
