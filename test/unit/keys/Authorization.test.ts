/** The API key of a request: the organization that it decides, and the limit of requests. */
import { assert, it as test, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { CredentialStoreDown, TooManyRequests, Unauthorized } from "../../../src/api/Errors.ts"
import * as Server from "../../../src/app/Server.ts"
import * as AuthorizationServer from "../../../src/keys/AuthorizationServer.ts"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import * as Http from "../../support/inProcess.ts"

const hasStatus = (expected: number, sent: Http.Sent = {}) =>
  Effect.map(Http.send(sent), ({ status }) => assert.strictEqual(status, expected))

layer(Http.InProcess.layer())("the API key of a request", (it) => {
  it.effect.each<readonly [name: string, authorization: string | undefined]>([
    ["no Authorization header", undefined],
    ["a scheme without a key", "Bearer"],
    ["a key without a scheme", Http.key],
    ["a scheme that runs into the key", `Bearer${Http.key}`],
    ["another scheme with a valid key", `Basic ${Http.key}`],
    ["a key that is not known", "Bearer pda_live_0000000000000000000000000000000000000"]
  ])("is refused with 401 and always the same body: %s", ([, authorization]) =>
    Effect.gen(function* () {
      const answer = yield* Http.expectAnswer({ headers: { authorization } }, 401, {
        detail: new Unauthorized().detail
      })
      assert.strictEqual(answer.headers["www-authenticate"], "Bearer")
      assert.isUndefined(answer.headers["retry-after"])
    })
  )

  it.effect.each(Http.paths)("is required by %s", (path) =>
    hasStatus(401, { path, headers: { authorization: undefined } })
  )

  it.effect.each(["bearer", "BEARER", "Bearer  "])("follows a scheme whose case does not matter: '%s'", (scheme) =>
    hasStatus(200, { headers: { authorization: `${scheme} ${Http.key}` } })
  )

  it.effect.each([
    [Http.key, Http.organization],
    [Http.other.key, Http.other.organization]
  ] as const)("decides the organization, and sees no other's rows: %s reads %s", ([mine, mineIs]) =>
    Effect.map(
      Http.send({ path: "/api/v3/organization/get", headers: { authorization: `Bearer ${mine}` } }),
      ({ json }) => assert.deepInclude(json, { id: mineIs })
    )
  )
})

const keysDown = Http.InProcess.layer(Layer.merge(Http.layerDemo, OrgResolver.layerDown))

test.effect.each([Http.key, "pda_live_unknown", "\u00e9"])(
  "a credential store that is down is 503, never 401, before the body is read: key %s",
  (given) =>
    Effect.gen(function* () {
      const sent = { headers: { authorization: `Bearer ${given}` }, raw: "{" }
      const answer = yield* Http.expectAnswer(sent, 503, { detail: new CredentialStoreDown().detail })
      assert.match(answer.headers["retry-after"] ?? "", /^[1-9]\d*$/)
      assert.isUndefined(answer.headers["www-authenticate"])
    }).pipe(Effect.provide(keysDown))
)

test.effect("no key is looked up for a request to no endpoint", () =>
  Effect.gen(function* () {
    yield* hasStatus(503)
    yield* hasStatus(200, { path: "/api/v3/openapi.json", method: "GET" })
    yield* hasStatus(404, { path: "/api/v3/nowhere" })
    yield* hasStatus(405, { path: "/api/v3/charges/search", method: "GET" })
  }).pipe(Effect.provide(keysDown))
)

const noKeys = OrgResolver.layerMemory({})

test.effect.each<readonly [string, Layer.Layer<OrgResolver>, Http.Sent]>([
  ["without a key, while the store is down", OrgResolver.layerDown, { headers: { authorization: undefined } }],
  ["to an endpoint that looks the key up first", noKeys, { path: "/api/v3/organization/get" }],
  ["to an endpoint that fails before it reads", noKeys, { json: { limit: 0 } }]
])("a request is refused by a server without our middleware too: %s", ([, resolver, sent]) =>
  Effect.provide(
    hasStatus(401, sent),
    Http.InProcess.layerOf(Layer.provide(Server.dataApiRoutes, Layer.merge(Http.layerDemo, resolver)))
  )
)

const theOther = { headers: { authorization: `Bearer ${Http.other.key}` } }
const unknownKey = { headers: { authorization: "Bearer pda_live_unknown" } }

test.effect("more requests than an organization may send are 429, but 401 with an unknown key", () =>
  Effect.gen(function* () {
    for (let request = 0; request < 4; request++) yield* hasStatus(401, unknownKey)
    for (let request = 0; request < 3; request++) yield* hasStatus(200)
    const last = yield* Http.expectAnswer({}, 429, { detail: new TooManyRequests().detail })
    assert.strictEqual(last.headers["retry-after"], "1")
    yield* hasStatus(429, { raw: "{" })
    yield* hasStatus(401, unknownKey)
    yield* hasStatus(200, theOther)
    // The wall clock is set back.
    yield* TestClock.setTime(-600_000)
    yield* TestClock.adjust("1 second")
    for (let request = 0; request < 3; request++) yield* hasStatus(200)
  }).pipe(Effect.provide(Layer.provide(Http.InProcess.layer(Http.layerDemo), AuthorizationServer.layerLimit(3))))
)
