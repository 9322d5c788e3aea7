/** The client that DataApi's types give: it decodes the records of every resource, and every error. */
import { assert, layer } from "@effect/vitest"
import { Array, Effect, Layer } from "effect"
import { HttpClientRequest, HttpServer } from "effect/http"
import { HttpApiMiddleware, HttpApiTest } from "effect/http-api"
import { DataApi } from "../../../src/api/DataApi.ts"
import { resources } from "../../../src/api/records/index.ts"
import * as Errors from "../../../src/api/Errors.ts"
import * as JsonBodyServer from "../../../src/http/JsonBodyServer.ts"
import { Authorization } from "../../../src/api/Authorization.ts"
import * as AuthorizationServer from "../../../src/keys/AuthorizationServer.ts"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import * as RecordHandlers from "../../../src/records/Handlers.ts"
import { faults } from "../../../src/api/Faults.ts"
import { demo, key, layerDemo, layerDemoBut, other, type ServiceLayer, withDemoRecords } from "../../http/inProcess.ts"

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

/** What the tests ask of the client of any resource. */
interface Reads {
  readonly search: (request: {
    readonly payload: { readonly limit: number }
  }) => Effect.Effect<{ readonly body: ReadonlyArray<{ readonly id: string }> }, { readonly _tag: string }>
  readonly get: (request: {
    readonly payload: { readonly id: string }
  }) => Effect.Effect<{ readonly id: string }, { readonly _tag: string }>
}

const demoRecords: Readonly<Record<string, ReadonlyArray<{ readonly id: string }>>> = demo

/** Checks that a decoded record is the stored one, as far as it is shown. */
const assertIsStored = (decoded: { readonly id: string }, stored: ReadonlyArray<{ readonly id: string }>) => {
  const record = stored.find(({ id }) => id === decoded.id)
  const shown = Object.entries<unknown>(record ?? {}).filter(([field]) => Object.hasOwn(decoded, field))
  // JSON knows no negative zero.
  const values = shown.map(([field, value]) => [field, value === 0 ? 0 : value])
  assert.deepStrictEqual<object>(decoded, Object.fromEntries(values))
}

layer(handlersOver(layerDemo))("the typed client", (it) => {
  it.effect.each(withDemoRecords)("decodes $name: pages, and single records", ({ name }) =>
    Effect.gen(function* () {
      const reads: Reads = (yield* client)[name]
      const stored = demoRecords[name] ?? []
      const { body } = yield* reads.search({ payload: { limit: 1000 } })
      assert.isNotEmpty(body)
      for (const decoded of body) assertIsStored(decoded, stored)
      for (const { id } of body.slice(0, 3)) assertIsStored(yield* reads.get({ payload: { id } }), stored)
    })
  )

  it.effect("decodes the organization", () =>
    Effect.gen(function* () {
      const api = yield* client
      assertIsStored(yield* api.organization.get({ payload: {} }), demo.organization)
    })
  )
})

layer(handlersOver(layerDemo))("the typed client fails with", (it) => {
  it.effect("Unauthorized when the key is not known", () =>
    Effect.gen(function* () {
      const api = yield* Effect.provide(makeClient, sending(HttpClientRequest.bearerToken("unknown")))
      assert.deepStrictEqual(yield* Effect.flip(api.charges.search({ payload: {} })), new Errors.Unauthorized())
    })
  )

  it.effect("OrgMismatch when another organization is named", () =>
    Effect.gen(function* () {
      const api = yield* client
      const error = yield* Effect.flip(api.charges.search({ payload: { organization: other.organization } }))
      assert.deepStrictEqual(error, new Errors.OrgMismatch())
    })
  )

  it.effect("OutOfRange when limit or offset is out of range", () =>
    Effect.gen(function* () {
      const api = yield* client
      const error = yield* Effect.flip(api.charges.search({ payload: { limit: 0 } }))
      assert.deepInclude(error, { _tag: "OutOfRange", detail: "limit must be between 1 and 1000" })
    })
  )

  it.effect("IdRequired when the id is blank", () =>
    Effect.gen(function* () {
      const api = yield* client
      assert.deepStrictEqual(yield* Effect.flip(api.charges.get({ payload: { id: " " } })), new Errors.IdRequired())
    })
  )

  it.effect("CursorInvalid when the cursor is made up, and of a cursor the changes after it with their lag", () =>
    Effect.gen(function* () {
      const api = yield* client
      const { body, cursor, ...rest } = yield* api.charges.changes({ payload: {} })
      assert.strictEqual(body.length, demo.charges.length)
      assert.deepStrictEqual(rest, { removed: [], has_more: false, lag: 0, complete: true })
      const next = yield* api.charges.changes({ payload: { cursor, limit: 1 } })
      assert.deepStrictEqual(next, { body: [], removed: [], cursor, has_more: false, lag: 0, complete: true })
      const error = yield* Effect.flip(api.charges.changes({ payload: { cursor: "made up" } }))
      assert.deepStrictEqual(error, new Errors.CursorInvalid())
    })
  )

  it.effect("RecordNotFound when the organization has no such record", () =>
    Effect.gen(function* () {
      const api = yield* client
      const id = other.demo.charges[0]?.id ?? ""
      assert.deepStrictEqual(yield* Effect.flip(api.charges.get({ payload: { id } })), new Errors.RecordNotFound())
    })
  )

  it.effect("PayloadTooLarge when the body is too large", () =>
    Effect.gen(function* () {
      const api = yield* client
      const error = yield* Effect.flip(api.charges.search({ payload: { status: "x".repeat(2000) } }))
      assert.deepInclude(error, { _tag: "PayloadTooLarge", detail: "The request body is larger than 1000 bytes" })
    })
  )

  it.effect("EncodingUnsupported when the body is encoded", () =>
    Effect.gen(function* () {
      const encoding = sending((request) => HttpClientRequest.setHeader(withKey(request), "content-encoding", "gzip"))
      const api = yield* Effect.provide(makeClient, encoding)
      assert.deepInclude(yield* Effect.flip(api.charges.search({ payload: {} })), {
        _tag: "EncodingUnsupported",
        detail: "Content-Encoding should be identity"
      })
    })
  )

  it.effect("RequestInvalid, with every fault, when the body is not what the endpoint takes", () =>
    Effect.gen(function* () {
      const tampering = sending((request) =>
        request.pipe(withKey, HttpClientRequest.bodyText(`{"limit":"1","more":1}`, "application/json"))
      )
      const api = yield* Effect.provide(makeClient, tampering)
      assert.deepInclude(yield* Effect.flip(api.charges.search({ payload: {} })), {
        _tag: "RequestInvalid",
        detail: [
          { loc: ["body", "limit"], ...faults.int },
          { loc: ["body", "more"], ...faults.extra }
        ]
      })
    })
  )

  it.effect("SchemaError, before anything is sent, when a value cannot be one of its field", () =>
    Effect.gen(function* () {
      const sent: Array<string> = []
      const api = yield* Effect.provide(
        makeClient,
        sending((request) => (sent.push(request.url), withKey(request)))
      )
      const error = yield* Effect.flip(api.charges.search({ payload: { limit: 1.5 } }))
      assert.deepInclude(error, { _tag: "SchemaError" })
      assert.isEmpty(sent)
    })
  )
})

const down = layerDemoBut(["charge-refunds"], {
  search: () => Effect.fail(new Errors.RecordStoreDown()),
  get: () => Effect.fail(new Errors.RecordStoreDown())
})

layer(handlersOver(down))("the typed client fails with", (it) => {
  it.effect("RecordStoreDown when the records cannot be read", () =>
    Effect.gen(function* () {
      const api = yield* client
      const error = yield* Effect.flip(api["charge-refunds"].search({ payload: {} }))
      assert.deepStrictEqual(error, new Errors.RecordStoreDown({ retryAfter: 1 }))
    })
  )
})

layer(handlersOver(Layer.merge(layerDemo, OrgResolver.layerDown)))("the typed client fails with", (it) => {
  it.effect("CredentialStoreDown when the key cannot be looked up", () =>
    Effect.gen(function* () {
      const api = yield* client
      assert.deepStrictEqual(
        yield* Effect.flip(api.charges.search({ payload: {} })),
        new Errors.CredentialStoreDown({ retryAfter: 1 })
      )
    })
  )
})
