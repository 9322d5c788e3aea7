/** Around every request: its id, unknown paths and methods, headers, and unexpected errors. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { RecordStoreDown } from "../../../src/api/Errors.ts"
import { faults } from "../../../src/api/Faults.ts"
import {
  compact,
  expectAnswer,
  InProcess,
  layerDemoBut,
  paths,
  processorPaths,
  send,
  type Sent,
  taskPaths
} from "../../support/inProcess.ts"

const clinic = "clinic_oakridge_01"
const endpoints = [...paths, ...taskPaths]
const documents = ["/api/v3/openapi.json", "/api/v3/docs", "/api/v3/docs?a=b"]
const stranger = { authorization: undefined }

const unknown = [
  ["/api", "/api/v3", "/api/v3/", "/api/v2/charges/search", "/charges/search", "/api/v3/charges"],
  ["/api/v3/charges/search/more", "/api/v3/charges/find", "/api/v3/charges%2Fsearch", "/api/v3/%zz"],
  ["/api/v3/..%2f..%2fetc%2fpasswd", "/api/v3/organization/search"]
].flat()

const spellings = [
  ["/api/v3/Charges/search", "/api/v3//charges/search", "/api/v3/charges/search/", "/API/v3/charges/get"],
  "/api/v3/charges/search;a=b"
].flat()

const queries = [
  ["?limit=1&limit=x", ["limit"]],
  ["?status=paid&limit=1&__proto__=1", ["status", "limit", "__proto__"]],
  ["?limit", ["limit"]],
  ["?=1", [""]],
  ["?%zz=%", ["%zz"]],
  ["?a+b=%20", ["a b"]]
] as const

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const ids = [
  ["one character", "a", true],
  ["every visible ASCII character", String.fromCharCode(...Array.from({ length: 94 }, (_, i) => i + 33)), true],
  ["128 characters", "~".repeat(128), true],
  ["129 characters", "~".repeat(129), false],
  ["nothing", "", false],
  ["no header", undefined, false],
  ["a space", "a b", false],
  ["a letter that is not ASCII", "\u00e9", false],
  ["a delete character", "a\u007f", false]
] as const

const answers: ReadonlyArray<readonly [status: number, sent: Sent]> = [
  [200, {}],
  [400, { json: { limit: 0 } }],
  [401, { headers: stranger }],
  [404, { path: "/unknown" }],
  [405, { method: "GET" }],
  [413, { headers: { "content-length": "2000000" } }],
  [422, { raw: "{" }],
  [200, { path: "/api/v3/openapi.json", method: "GET" }]
]

layer(InProcess.layer())("a request", (it) => {
  it.effect.each(unknown)("to an unknown path is 404: %s", (path) =>
    Effect.forEach(["POST", "GET"], (method) =>
      Effect.map(expectAnswer({ path, method, headers: stranger }, 404, { detail: "Not Found" }), ({ headers }) =>
        assert.isUndefined(headers["allow"])
      )
    )
  )

  it.effect.each(["GET", "PUT", "DELETE", "OPTIONS"])(
    "with the method %s is 405 with POST on each endpoint",
    (method) =>
      Effect.forEach([...endpoints, "/api/v3/charges/search?limit=1"], (path) =>
        Effect.map(
          expectAnswer({ path, method, headers: stranger }, 405, { detail: "Method Not Allowed" }),
          ({ headers }) => assert.strictEqual(headers["allow"], "POST")
        )
      )
  )

  it.effect.each(spellings)("to another spelling of a path is known for all methods or for none: %s", (path) =>
    Effect.gen(function* () {
      const [post, get] = [yield* send({ path }), yield* send({ path, method: "GET" })]
      assert.deepStrictEqual([get.status, get.headers["allow"]], post.status !== 404 ? [405, "POST"] : [404, undefined])
    })
  )

  it.effect("with the method HEAD has no body: 405 on an endpoint, and as GET for the documentation", () =>
    Effect.gen(function* () {
      const head = yield* send({ method: "HEAD" })
      assert.deepStrictEqual([head.status, head.headers["allow"], head.text], [405, "POST", ""])
      for (const path of documents) {
        const post = yield* send({ path })
        assert.deepStrictEqual([post.status, post.headers["allow"]], [405, "GET, HEAD"])
        const got = yield* send({ path, method: "GET" })
        const { headers, status, text } = yield* send({ path, method: "HEAD" })
        assert.deepStrictEqual([status, headers["content-type"], text], [200, got.headers["content-type"], ""])
      }
    })
  )

  it.effect.each(queries)("with a query string is 422 and its names, whatever its body: %s", ([query, names]) =>
    Effect.forEach(endpoints, (path) =>
      expectAnswer({ path: `${path}${query}`, raw: "{" }, 422, {
        detail: names.map((name) => ({ loc: ["query", name], ...faults.extra }))
      })
    )
  )

  it.effect.each(["gzip", "GZIP", "gzip, identity", "chunked", "x"])(
    "with the Content-Encoding %s is 415",
    (encoding) =>
      Effect.forEach(endpoints, (path) =>
        Effect.map(
          expectAnswer({ path: `${path}?a=b`, headers: { "content-encoding": encoding } }, 415, {
            detail: "Content-Encoding should be identity"
          }),
          ({ headers }) => assert.strictEqual(headers["accept-encoding"], "identity")
        )
      )
  )

  it.effect("without an encoding, or with an empty query string, is answered", () =>
    Effect.gen(function* () {
      for (const encoding of ["identity", "Identity", ""])
        assert.strictEqual((yield* send({ headers: { "content-encoding": encoding } })).status, 200)
      assert.strictEqual((yield* send({ path: "/api/v3/charges/search?" })).status, 200)
    })
  )

  it.effect("has a response that may not be stored, and is not taken for anything but JSON", () =>
    Effect.gen(function* () {
      for (const path of [...endpoints, ...processorPaths]) {
        const { headers, text } = yield* send({ path, json: path.startsWith("/api/v3/psp") ? { clinic } : {} })
        assert.strictEqual(headers["cache-control"], "no-store")
        assert.strictEqual(headers["x-content-type-options"], "nosniff")
        assert.match(headers["content-type"] ?? "", /^application\/json\b/)
        assert.strictEqual(headers["content-length"], String(Buffer.byteLength(text)))
      }
    })
  )
})

layer(InProcess.layer())("x-request-id", (it) => {
  it.effect.each(ids)("of %s is echoed if it is 1 to 128 visible ASCII characters, else made anew", ([, id, echoed]) =>
    Effect.gen(function* () {
      const given = (yield* send({ headers: { "x-request-id": id } })).headers["x-request-id"]
      assert.isTrue(echoed ? given === id : uuid.test(given ?? ""))
    })
  )

  it.effect.each(answers)("is on a %d", ([status, sent]) =>
    Effect.gen(function* () {
      const answer = yield* send({ ...sent, headers: { "x-request-id": "mine", ...sent.headers } })
      assert.deepStrictEqual([answer.status, answer.headers["x-request-id"]], [status, "mine"])
    })
  )
})

const lines: Array<string> = []
const logging = Logger.layer([Logger.map(Logger.formatJson, (line) => lines.push(line))])
const bug = Effect.die(new Error("password=hunter2 at /srv/secret.ts"))
const broken = layerDemoBut(["charges"], { search: () => bug, get: () => Effect.fail(new RecordStoreDown()) })

layer(InProcess.layer(broken).pipe(Layer.provide(logging)))("a handler", (it) => {
  it.effect("that dies is a 500 without the cause, which is logged with the request's id", () =>
    Effect.gen(function* () {
      const answer = yield* send({ headers: { "x-request-id": "mine" } })
      assert.deepStrictEqual([answer.status, answer.text], [500, `{"detail":"Internal Server Error"}`])
      assert.strictEqual(answer.headers["x-request-id"], "mine")
      assert.notInclude(yield* compact(answer), "hunter2")
      const logged = lines.filter((line) => line.includes("hunter2"))
      assert.strictEqual(logged.length, 1)
      assert.match(logged.join(), /"level":"ERROR".*"request_id":"mine"|"request_id":"mine".*"level":"ERROR"/)
    })
  )

  it.effect("whose store is down is a 503 with Retry-After, while others answer", () =>
    Effect.gen(function* () {
      const json = { detail: new RecordStoreDown().detail }
      const { headers } = yield* expectAnswer({ path: "/api/v3/charges/get", json: { id: "any" } }, 503, json)
      assert.match(headers["retry-after"] ?? "", /^[1-9]\d*$/)
      assert.strictEqual((yield* send({ path: "/api/v3/clinics/search" })).status, 200)
    })
  )
})
