/** The client that DataApi's types give: it decodes errors and changes. `records/Example` and `StoredJson` hold records. */
import { assert, layer } from "@effect/vitest"
import { Array, Effect, Layer } from "effect"
import { HttpClientRequest, HttpServer } from "effect/http"
import { HttpApiMiddleware, HttpApiTest } from "effect/http-api"
import { DataApi } from "../../../src/api/DataApi.ts"
import { resources } from "../../../src/api/records/index.ts"
import * as JsonBodyServer from "../../../src/http/JsonBodyServer.ts"
import { Authorization } from "../../../src/api/Authorization.ts"
import * as AuthorizationServer from "../../../src/keys/AuthorizationServer.ts"
import * as RecordHandlers from "../../../src/records/Handlers.ts"
import { faults } from "../../../src/api/Faults.ts"
import { demo, invalid, key, layerDemo, other, type ServiceLayer } from "../../support/inProcess.ts"

const handlersOver = (services: ServiceLayer) =>
  RecordHandlers.layer.pipe(
    Layer.provideMerge([AuthorizationServer.layer, JsonBodyServer.layer({ maxBytes: 1000 })]),
    Layer.provide(services),
    Layer.merge(HttpServer.layerServices)
  )

const makeClient = HttpApiTest.groups(
  DataApi,
  Array.map(resources, ({ name }) => name)
)

/** What goes through the client's hands before it is sent: by default, the key is put in. */
const sending = (change: (request: HttpClientRequest.HttpClientRequest) => HttpClientRequest.HttpClientRequest) =>
  HttpApiMiddleware.layerClient(Authorization, ({ next, request }) => next(change(request)))

const withKey = HttpClientRequest.bearerToken(key)

const client = Effect.provide(makeClient, sending(withKey))

const range = "limit must be between 1 and 1000"

const fails = <E extends object, R>(call: Effect.Effect<object, E, R>, error: object) =>
  Effect.map(Effect.flip(call), (found) => assert.deepInclude<object>(found, error))

const malformed = (request: HttpClientRequest.HttpClientRequest) =>
  request.pipe(withKey, HttpClientRequest.bodyText(`{"limit":"1","more":1}`, "application/json"))

layer(handlersOver(layerDemo))("the typed client", (it) => {
  it.effect("fails with the error of each status", () =>
    Effect.gen(function* () {
      const { charges } = yield* client
      const tampered = (change: Parameters<typeof sending>[0]) =>
        Effect.flatMap(Effect.provide(makeClient, sending(change)), (api) => api.charges.search({ payload: {} }))
      const detail = "The request body is larger than 1000 bytes"
      yield* fails(charges.search({ payload: { limit: 0 } }), { _tag: "OutOfRange", detail: range })
      yield* fails(charges.get({ payload: { id: other.demo.charges[0]?.id ?? "" } }), { _tag: "RecordNotFound" })
      yield* fails(charges.search({ payload: { status: "x".repeat(2000) } }), { _tag: "PayloadTooLarge", detail })
      yield* fails(tampered(HttpClientRequest.bearerToken("unknown")), { _tag: "Unauthorized" })
      yield* fails(tampered(malformed), {
        _tag: "RequestInvalid",
        ...invalid(["limit", faults.int], ["more", faults.extra])
      })
    })
  )

  it.effect("walks changes by their cursor", () =>
    Effect.gen(function* () {
      const api = yield* client
      const { body, cursor } = yield* api.charges.changes({ payload: {} })
      assert.strictEqual(body.length, demo.charges.length)
      const next = yield* api.charges.changes({ payload: { cursor, limit: 1 } })
      assert.deepStrictEqual(next, { body: [], removed: [], cursor, has_more: false, lag: 0, complete: true })
    })
  )
})
