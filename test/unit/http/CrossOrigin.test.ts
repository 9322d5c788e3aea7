/** Pages of other origins, in the way in which browsers ask for them. */
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { CrossOrigins } from "../../../src/http/CrossOrigin.ts"
import { InProcess, send } from "../../support/inProcess.ts"

const origin = "https://app.example"

const preflight = (path: string, from: string) =>
  send({
    path,
    method: "OPTIONS",
    headers: {
      origin: from,
      authorization: undefined,
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization,content-type"
    }
  })

const layerFor = (origins: ReadonlyArray<string>) =>
  InProcess.layer().pipe(Layer.provide(Layer.succeed(CrossOrigins, origins)))

describe("with CORS_ORIGINS", () => {
  layer(layerFor([origin, "https://admin.example"]))((it) => {
    it.effect("a preflight of an origin is answered without a key, and has the id of the request", () =>
      Effect.gen(function* () {
        const { headers, status } = yield* preflight("/api/v3/charges/search", origin)
        assert.strictEqual(status, 204)
        assert.deepInclude(headers, {
          "access-control-allow-origin": origin,
          "access-control-allow-methods": "GET, POST",
          "access-control-allow-headers": "authorization,content-type",
          vary: "Origin, Access-Control-Request-Headers"
        })
        assert.isNotEmpty(headers["x-request-id"])
      })
    )

    it.effect("every response to its page can be read, with the documented headers", () =>
      Effect.gen(function* () {
        for (const [sent, status] of [
          [{}, 200],
          [{ headers: { authorization: undefined } }, 401],
          [{ json: { limit: 0 } }, 400],
          [{ path: "/api/v3/charges/find" }, 404],
          [{ method: "GET" }, 405]
        ] as const) {
          const response = yield* send({ ...sent, headers: { ...("headers" in sent && sent.headers), origin } })
          assert.strictEqual(response.status, status)
          assert.strictEqual(response.headers["access-control-allow-origin"], origin)
          assert.match(response.headers["vary"] ?? "", /Origin/)
          const exposed = response.headers["access-control-expose-headers"]?.split(",")
          assert.includeMembers(exposed ?? [], ["x-request-id", "retry-after", "x-changes-lag", "x-changes-complete"])
        }
      })
    )

    it.effect("no other origin is allowed, and no path beside the APIs", () =>
      Effect.gen(function* () {
        for (const other of ["https://app.example.org", "http://app.example", "null"]) {
          const { headers } = yield* preflight("/api/v3/charges/search", other)
          assert.notProperty(headers, "access-control-allow-origin")
          assert.notProperty((yield* send({ headers: { origin: other } })).headers, "access-control-allow-origin")
        }
        assert.strictEqual((yield* preflight("/", origin)).status, 405)
        assert.strictEqual((yield* preflight("/api/v3/nothing", origin)).status, 404)
      })
    )

    it.effect("OPTIONS that is no preflight is 405", () =>
      Effect.gen(function* () {
        const { status } = yield* send({ method: "OPTIONS", headers: { origin } })
        assert.strictEqual(status, 405)
      })
    )
  })
})

describe("by default", () => {
  layer(layerFor([]))((it) => {
    it.effect("no origin is allowed", () =>
      Effect.gen(function* () {
        const { headers, status } = yield* preflight("/api/v3/charges/search", origin)
        assert.strictEqual(status, 405)
        assert.notProperty(headers, "access-control-allow-origin")
        assert.notProperty((yield* send({ headers: { origin } })).headers, "vary")
      })
    )
  })
})
