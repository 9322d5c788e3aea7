/** What happens around every request: its id, unknown paths and methods, headers, and unexpected errors. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { RecordStoreDown } from "../../../src/api/Errors.ts"
import { faults } from "../../../src/api/Faults.ts"
import {
  compact,
  InProcess,
  layerDemoBut,
  paths,
  processorPaths,
  send,
  type Sent,
  taskPaths
} from "../../http/inProcess.ts"

const clinic = "clinic_oakridge_01"

const unknown = [
  "/api",
  "/api/v3",
  "/api/v3/",
  "/api/v2/charges/search",
  "/charges/search",
  "/api/v3/charges",
  "/api/v3/charges/search/more",
  "/api/v3/charges/find",
  "/api/v3/charges%2Fsearch",
  "/api/v3/%zz",
  "/api/v3/..%2f..%2fetc%2fpasswd",
  "/api/v3/organization/search"
]

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

layer(InProcess.layer())("a request", (it) => {
  it.effect.each(unknown)("to an unknown path is 404: %s", (path) =>
    Effect.gen(function* () {
      for (const method of ["POST", "GET"]) {
        const answer = yield* send({ path, method, headers: { authorization: undefined } })
        assert.strictEqual(answer.status, 404)
        assert.deepStrictEqual(answer.json, { detail: "Not Found" })
        assert.isUndefined(answer.headers["allow"])
      }
    })
  )

  it.effect.each(["GET", "PUT", "PATCH", "DELETE", "OPTIONS"])(
    "with the method %s is 405, with the method to use, on every endpoint",
    (method) =>
      Effect.gen(function* () {
        for (const path of [...paths, ...taskPaths, "/api/v3/charges/search?limit=1"]) {
          const answer = yield* send({ path, method, headers: { authorization: undefined } })
          assert.strictEqual(answer.status, 405)
          assert.deepStrictEqual(answer.json, { detail: "Method Not Allowed" })
          assert.strictEqual(answer.headers["allow"], "POST")
        }
      })
  )

  it.effect.each([
    "/api/v3/Charges/search",
    "/api/v3//charges/search",
    "/api/v3/charges/search/",
    "/API/v3/charges/get",
    "/api/v3/charges/search;a=b"
  ])("to another spelling of a path is known for all methods or for none: %s", (path) =>
    Effect.gen(function* () {
      const [post, get] = [yield* send({ path }), yield* send({ path, method: "GET" })]
      const known = post.status !== 404
      assert.deepStrictEqual([get.status, get.headers["allow"]], known ? [405, "POST"] : [404, undefined])
    })
  )

  it.effect("with the method HEAD is 405 without a body", () =>
    Effect.gen(function* () {
      const { status, headers, text } = yield* send({ method: "HEAD" })
      assert.deepStrictEqual([status, headers["allow"], text], [405, "POST", ""])
    })
  )

  it.effect("to the documentation with another method than GET and HEAD is 405", () =>
    Effect.gen(function* () {
      for (const path of ["/api/v3/openapi.json", "/api/v3/docs"]) {
        const answer = yield* send({ path })
        assert.deepStrictEqual([answer.status, answer.headers["allow"]], [405, "GET, HEAD"])
      }
    })
  )

  it.effect("to the documentation with the method HEAD is answered as GET, without the body", () =>
    Effect.gen(function* () {
      for (const path of ["/api/v3/openapi.json", "/api/v3/docs", "/api/v3/docs?a=b"]) {
        const got = yield* send({ path, method: "GET" })
        const { status, headers, text } = yield* send({ path, method: "HEAD" })
        assert.deepStrictEqual([status, headers["content-type"], text], [200, got.headers["content-type"], ""])
      }
    })
  )

  it.effect.each([
    ["?limit=1", ["limit"]],
    ["?limit=1&limit=x", ["limit"]],
    ["?status=paid&limit=1&__proto__=1", ["status", "limit", "__proto__"]],
    ["?limit", ["limit"]],
    ["?=1", [""]],
    ["?%zz=%", ["%zz"]],
    ["?a+b=%20", ["a b"]]
  ] as const)("with a query string is 422, which names what is in it: %s", ([query, names]) =>
    Effect.gen(function* () {
      for (const path of [...paths, ...taskPaths]) {
        const { status, json } = yield* send({ path: `${path}${query}`, raw: "{" })
        assert.strictEqual(status, 422)
        assert.deepStrictEqual(json, { detail: names.map((name) => ({ loc: ["query", name], ...faults.extra })) })
      }
    })
  )

  it.effect("with an empty query string is answered", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* send({ path: "/api/v3/charges/search?" })).status, 200)
    })
  )

  it.effect("with a query string and another content type is 422 for both, the header first", () =>
    Effect.gen(function* () {
      const { json } = yield* send({
        path: "/api/v3/charges/search?limit=1",
        headers: { "content-type": "text/plain" }
      })
      assert.deepStrictEqual(json, {
        detail: [
          { loc: ["header", "content-type"], ...faults.contentType },
          { loc: ["query", "limit"], ...faults.extra }
        ]
      })
    })
  )

  it.effect.each(["gzip", "br", "zstd", "deflate", "GZIP", "gzip, identity", "chunked", "x"])(
    "with the Content-Encoding %s is 415, whatever its body",
    (encoding) =>
      Effect.gen(function* () {
        for (const path of [...paths, ...taskPaths]) {
          const answer = yield* send({ path: `${path}?a=b`, headers: { "content-encoding": encoding } })
          assert.strictEqual(answer.status, 415)
          assert.deepStrictEqual(answer.json, { detail: "Content-Encoding should be identity" })
          assert.strictEqual(answer.headers["accept-encoding"], "identity")
        }
      })
  )

  it.effect.each(["identity", "Identity", ""])("with the Content-Encoding '%s' is answered", (encoding) =>
    Effect.gen(function* () {
      assert.strictEqual((yield* send({ headers: { "content-encoding": encoding } })).status, 200)
    })
  )

  it.effect("has a response that may not be stored, and is not taken for anything but JSON", () =>
    Effect.gen(function* () {
      for (const path of [...paths, ...processorPaths, ...taskPaths]) {
        const { headers } = yield* send({ path, json: path.startsWith("/api/v3/psp") ? { clinic } : {} })
        assert.strictEqual(headers["cache-control"], "no-store")
        assert.strictEqual(headers["x-content-type-options"], "nosniff")
      }
    })
  )
})

const ids = [
  ["one character", "a", true],
  ["a UUID", "0190163d-8694-739b-aea5-966c26f8ad91", true],
  ["every visible ASCII character", String.fromCharCode(...Array.from({ length: 94 }, (_, i) => i + 33)), true],
  ["128 characters", "~".repeat(128), true],
  ["129 characters", "~".repeat(129), false],
  ["nothing", "", false],
  ["no header", undefined, false],
  ["a space", "a b", false],
  ["a tab", "a\tb", false],
  ["two in one", "a, b", false],
  ["a letter that is not ASCII", "\u00e9", false],
  ["a control character", "a\u0001", false],
  ["a delete character", "a\u007f", false]
] as const

const answers: ReadonlyArray<readonly [status: number, sent: Sent]> = [
  [200, {}],
  [400, { json: { limit: 0 } }],
  [401, { headers: { authorization: undefined } }],
  [404, { path: "/unknown" }],
  [404, { path: "/api/v3/charges/get", json: { id: "none" } }],
  [405, { method: "GET" }],
  [413, { headers: { "content-length": "2000000" } }],
  [422, { raw: "{" }],
  [200, { path: "/api/v3/openapi.json", method: "GET" }]
]

layer(InProcess.layer())("x-request-id", (it) => {
  it.effect.each(ids)(
    "of %s is echoed when it is 1 to 128 visible ASCII characters, else made anew",
    ([, id, echoed]) =>
      Effect.gen(function* () {
        const given = (yield* send({ headers: { "x-request-id": id } })).headers["x-request-id"]
        assert.isTrue(echoed ? given === id : uuid.test(given ?? ""))
      })
  )

  it.effect("is another one for each request", () =>
    Effect.gen(function* () {
      const all = yield* Effect.replicateEffect(send({ raw: "" }), 20)
      assert.strictEqual(new Set(all.map(({ headers }) => headers["x-request-id"])).size, 20)
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

const broken = layerDemoBut(["charges"], {
  search: () => Effect.die(new Error("password=hunter2 at /srv/secret.ts")),
  get: () => Effect.fail(new RecordStoreDown())
})

layer(InProcess.layer(broken).pipe(Layer.provide(logging)))("a handler that dies", (it) => {
  it.effect("is a 500 that says nothing of the cause, which is logged with the request's id", () =>
    Effect.gen(function* () {
      const answer = yield* send({ headers: { "x-request-id": "mine" } })
      assert.strictEqual(answer.status, 500)
      assert.strictEqual(answer.text, `{"detail":"Internal Server Error"}`)
      assert.strictEqual(answer.headers["x-request-id"], "mine")
      assert.notInclude(yield* compact(answer), "hunter2")
      const logged = lines.filter((line) => line.includes("hunter2"))
      assert.strictEqual(logged.length, 1)
      assert.match(logged.join(), /"request_id":"mine"/)
      assert.match(logged.join(), /"level":"ERROR"/)
    })
  )

  it.effect("does not keep the next request from its answer", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* send()).status, 500)
      assert.strictEqual((yield* send({ path: "/api/v3/clinics/search" })).status, 200)
    })
  )
})
