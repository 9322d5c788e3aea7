/** Around every request: its id, unknown paths and methods, headers, encodings, pages of other origins, and unexpected errors. */
import { gunzipSync, zstdDecompressSync } from "node:zlib"
import { assert, it as test, layer } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import { faults } from "../../../src/api/Faults.ts"
import * as Http from "../../support/inProcess.ts"

const clinic = "clinic_oakridge_01"
const documents = ["/api/v3/openapi.json", "/api/v3/docs", "/api/v3/docs?a=b"]
const stranger = { authorization: undefined }

const unknown = [
  ["/api/v3", "/api/v2/charges/search", "/charges/search", "/api/v3/charges/search/more", "/api/v3/charges%2Fsearch"],
  ["/api/v3/%zz", "/api/v3/..%2f..%2fetc%2fpasswd", "/api/v3/organization/search"],
  ["/api/v3/Charges/search", "/api/v3//charges/search", "/api/v3/charges/search/"]
].flat()

const queries = [
  ["?status=paid&limit=1&__proto__=1", ["status", "limit", "__proto__"]],
  ["?limit", ["limit"]],
  ["?=1&%zz=%", ["", "%zz"]]
] as const

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const visible = String.fromCharCode(...Array.from({ length: 94 }, (_, i) => i + 33))

const answers: ReadonlyArray<readonly [status: number, sent: Http.Sent, error?: string]> = [
  [200, {}],
  [400, { json: { limit: 0 } }, "out_of_range"],
  [401, { headers: stranger }, "unauthorized"],
  [404, { path: "/unknown" }, "not_found"],
  [404, { path: "/api/v3/charges/get", json: { id: "none" } }, "record_not_found"],
  [405, { method: "GET" }, "method_not_allowed"],
  [413, { headers: { "content-length": "2000000" } }, "payload_too_large"],
  [415, { headers: { "content-encoding": "gzip" } }, "encoding_unsupported"],
  [422, { raw: "{" }, "request_invalid"],
  [200, { path: "/api/v3/openapi.json", method: "GET" }]
]

const decoders: Readonly<Record<string, (bytes: Uint8Array) => Uint8Array>> = {
  zstd: zstdDecompressSync,
  gzip: gunzipSync
}

/** How a page of charges is encoded, its size as it is sent, and what it says. */
const ask = Effect.fnUntraced(function* (acceptEncoding: string | undefined, limit = 100) {
  const sent = { headers: { "accept-encoding": acceptEncoding }, json: { limit } }
  const { bytes, headers, status } = yield* Http.send(sent)
  const { "content-encoding": encoding, "content-length": length, "content-type": type, vary } = headers
  assert.deepStrictEqual([status, length, vary], [200, String(bytes.length), encoding && "accept-encoding"])
  const text = Buffer.from(decoders[encoding ?? ""]?.(bytes) ?? bytes).toString()
  return { encoding, size: bytes.length, said: [type, text] }
})

const asked: ReadonlyArray<readonly [acceptEncoding: string, encoding: string | undefined]> = [
  ["GZIP", "gzip"],
  ["gzip;q=0.5, deflate, br, zstd", "zstd"],
  ["zstd;q=0, gzip", "gzip"],
  ["gzip; q=0.0", undefined],
  ["deflate, br, *", undefined]
]

layer(Http.InProcess.layer())("a request", (it) => {
  it.effect.each(unknown)("to an unknown path is 404: %s", (path) =>
    Effect.forEach(["POST", "GET"], (method) =>
      Effect.map(Http.expectAnswer({ path, method, headers: stranger }, 404, { detail: "Not Found" }), ({ headers }) =>
        assert.isUndefined(headers["allow"])
      )
    )
  )

  it.effect.each(["GET", "OPTIONS"])("with the method %s is 405 with POST on each endpoint", (method) =>
    Effect.forEach([...Http.paths, "/api/v3/charges/search?limit=1"], (path) =>
      Effect.map(
        Http.expectAnswer({ path, method, headers: stranger }, 405, { detail: "Method Not Allowed" }),
        ({ headers }) => assert.strictEqual(headers["allow"], "POST")
      )
    )
  )

  it.effect("with the method HEAD has no body: 405 on an endpoint, and as GET for the documentation", () =>
    Effect.gen(function* () {
      const head = yield* Http.send({ method: "HEAD" })
      assert.deepStrictEqual([head.status, head.headers["allow"], head.text], [405, "POST", ""])
      for (const path of documents) {
        const post = yield* Http.send({ path })
        assert.deepStrictEqual([post.status, post.headers["allow"]], [405, "GET, HEAD"])
        const got = yield* Http.send({ path, method: "GET" })
        const { headers, status, text } = yield* Http.send({ path, method: "HEAD" })
        assert.deepStrictEqual([status, headers["content-type"], text], [200, got.headers["content-type"], ""])
      }
    })
  )

  it.effect.each(queries)("with a query string is 422 and its names, whatever its body: %s", ([query, names]) =>
    Effect.forEach(names.length === 1 ? Http.paths : Http.paths.slice(0, 1), (path) =>
      Http.expectAnswer({ path: `${path}${query}`, raw: "{" }, 422, {
        detail: names.map((name) => ({ loc: ["query", name], ...faults.extra }))
      })
    )
  )

  it.effect("with another Content-Encoding is 415", () =>
    Effect.gen(function* () {
      const detail = "Content-Encoding should be identity"
      assert.strictEqual((yield* Http.send({ headers: { "content-encoding": "Identity" } })).status, 200)
      for (const encoding of ["gzip", "gzip, identity"]) {
        const { headers } = yield* Http.expectAnswer({ headers: { "content-encoding": encoding } }, 415, { detail })
        assert.strictEqual(headers["accept-encoding"], "identity")
      }
    })
  )

  it.effect("has a response of JSON with no-store and nosniff", () =>
    Effect.gen(function* () {
      for (const path of Http.paths) {
        const { headers, text } = yield* Http.send({ path, json: path.startsWith("/api/v3/psp") ? { clinic } : {} })
        assert.strictEqual(headers["cache-control"], "no-store")
        assert.strictEqual(headers["x-content-type-options"], "nosniff")
        assert.match(headers["content-type"] ?? "", /^application\/json\b/)
        assert.strictEqual(headers["content-length"], String(Buffer.byteLength(text)))
      }
    })
  )

  it.effect("has an x-request-id, echoed if it is 1 to 128 visible ASCII characters, else made anew", () =>
    Effect.gen(function* () {
      for (const id of [visible, "~".repeat(128), "~".repeat(129), "", undefined, "a b", "\u00e9", "a\u007f"]) {
        const given = (yield* Http.send({ headers: { "x-request-id": id } })).headers["x-request-id"]
        assert.isTrue([visible, "~".repeat(128)].includes(id ?? "") ? given === id : uuid.test(given ?? ""), id)
      }
    })
  )

  it.effect.each(answers)("has its x-request-id on a %d, beside the name of the error", ([status, sent, error]) =>
    Effect.gen(function* () {
      const answer = yield* Http.send({ ...sent, headers: { "x-request-id": "mine", ...sent.headers } })
      const headers = ["x-request-id", "x-error"].map((name) => answer.headers[name])
      assert.deepStrictEqual([answer.status, ...headers], [status, "mine", error])
    })
  )

  it.effect.each(asked)("with Accept-Encoding '%s' has the same answer, encoded as %s", ([acceptEncoding, encoding]) =>
    Effect.gen(function* () {
      const plain = yield* ask(undefined)
      const answer = yield* ask(acceptEncoding)
      assert.deepStrictEqual([plain.encoding, answer.encoding], [undefined, encoding])
      assert.deepStrictEqual(answer.said, plain.said)
      if (encoding !== undefined) assert.isBelow(answer.size, plain.size / 4)
    })
  )

  it.effect("has a short answer as it is", () =>
    Effect.map(ask("gzip, br, zstd", 1), ({ encoding }) => assert.isUndefined(encoding))
  )
})

const lines: Array<string> = []
const logging = Logger.layer([Logger.map(Logger.formatJson, (line) => lines.push(line))])
const bug = Effect.die(new Error("password=hunter2 at /srv/secret.ts"))
const broken = Http.layerDemoBut(["charges"], { search: () => bug, get: () => bug })

test.effect("a handler that dies is a 500 without the cause, which is logged with the request's id", () =>
  Effect.gen(function* () {
    const answer = yield* Http.send({ headers: { "x-request-id": "mine" } })
    assert.deepStrictEqual([answer.status, answer.text], [500, `{"detail":"Internal Server Error"}`])
    assert.include(answer.headers, { "x-request-id": "mine", "x-error": "internal_server_error" })
    assert.notInclude(yield* Http.compact(answer), "hunter2")
    const logged = lines.filter((line) => line.includes("hunter2"))
    assert.strictEqual(logged.length, 1)
    assert.match(logged.join(), /"level":"ERROR".*"request_id":"mine"|"request_id":"mine".*"level":"ERROR"/)
  }).pipe(Effect.provide(Layer.provide(Http.InProcess.layer(broken), logging)))
)
