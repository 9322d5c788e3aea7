/** What is about HTTP itself: methods, query strings, encodings, headers of answers, and bodies that do not end. */
import { connect } from "node:net"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../../../src/api/DataApi.ts"
import { type Answer, headersOf, type Headers, json, parse } from "../../support/Client.ts"
import { Service, type Tests } from "../../support/Service.ts"

const intake = "/api/v1/invoice-deletions"

let sent = 0

/** The headers of a delivery that nobody sent before. */
const delivering = (): Headers => ({
  "content-type": "application/json",
  "x-organization-id": "org_oakridge",
  "idempotency-key": `http-${++sent}`
})

const search = { path: "/api/v3/charges/search", headers: headersOf("oakridge"), body: json({ limit: 1 }) }
const deliver = () => ({ path: intake, headers: delivering(), body: json({ invoices: [{ invoice_id: "http" }] }) })

const readable = [
  "/api/v1/health",
  "/api/v1/health/ready",
  "/api/v1/docs",
  "/api/v1/openapi.json",
  "/api/v3/docs",
  "/api/v3/openapi.json"
]

const extra = (name: string) => ({
  loc: ["query", name],
  msg: "Extra inputs are not permitted",
  type: "extra_forbidden"
})

const faultsOf = (answer: Answer, ...faults: ReadonlyArray<unknown>) => {
  assert.strictEqual(answer.status, 422, answer.text)
  assert.strictEqual(answer.text, json({ detail: faults }))
}

/** Sends bytes for as long as they are taken; what came back, once the connection is closed. */
const exchange = (address: string, head: ReadonlyArray<string>, piece: string) =>
  Effect.callback<{ readonly received: string; readonly written: number }>((resume) => {
    const { hostname, port } = new URL(address)
    const socket = connect(Number(port), hostname)
    let received = ""
    let written = 0
    const send = () => {
      while (socket.writable) {
        written += piece.length
        if (!socket.write(piece)) return
      }
    }
    socket.setEncoding("latin1").on("data", (text: string) => (received += text))
    socket.on("drain", send).on("error", () => socket.destroy())
    socket.on("close", () => resume(Effect.succeed({ received, written })))
    socket.write(`${head.join("\r\n")}\r\n\r\n`, send)
    return Effect.sync(() => socket.destroy())
  })

export const http = (it: Tests) => {
  it.effect.each(readable)("HEAD %s is answered as GET, without a body", (path) =>
    Effect.gen(function* () {
      const { call } = yield* Service
      for (const query of ["", "?a=b"]) {
        const got = yield* call({ path: `${path}${query}`, method: "GET", headers: {} })
        const head = yield* call({ path: `${path}${query}`, method: "HEAD", headers: {} })
        assert.deepStrictEqual([head.status, head.text], [got.status, ""])
        assert.strictEqual(head.headers["content-type"], got.headers["content-type"])
        const other = yield* call({ path, headers: {}, body: "{}" })
        assert.deepStrictEqual([other.status, other.headers["allow"]], [405, "GET, HEAD"])
      }
      const refused = yield* call({ ...search, method: "GET" })
      assert.deepStrictEqual([refused.status, refused.headers["allow"]], [405, "POST"])
    })
  )

  it.effect("the OpenAPI document is served without a key", () =>
    Effect.gen(function* () {
      const { call } = yield* Service
      const { text } = yield* call({ path: "/api/v3/openapi.json", method: "GET", headers: {} })
      assert.deepStrictEqual(yield* parse(text), yield* parse(json(OpenApi.fromApi(DataApi))))
    })
  )

  it.effect("a query string on a POST is 422, and nothing is done", () =>
    Effect.gen(function* () {
      const { call } = yield* Service
      for (const request of [search, deliver()]) {
        faultsOf(yield* call({ ...request, path: `${request.path}?limit=1` }), extra("limit"))
        faultsOf(yield* call({ ...request, path: `${request.path}?a=1&b=%2F&a=2` }), extra("a"), extra("b"))
        assert.include([200, 202], (yield* call(request)).status)
      }
    })
  )

  it.effect("a Content-Encoding on a request is 415, and says what is taken", () =>
    Effect.gen(function* () {
      const { call } = yield* Service
      for (const request of [search, deliver()]) {
        const refused = yield* call({ ...request, headers: { ...request.headers, "content-encoding": "gzip" } })
        assert.deepStrictEqual(
          [refused.status, refused.text, refused.headers["accept-encoding"]],
          [415, json({ detail: "Content-Encoding should be identity" }), "identity"]
        )
        const taken = yield* call({ ...request, headers: { ...request.headers, "content-encoding": "identity" } })
        assert.include([200, 202], taken.status)
      }
    })
  )

  it.effect("answers that may hold records are not to be stored, and are what they say they are", () =>
    Effect.gen(function* () {
      const { call } = yield* Service
      for (const request of [search, { ...search, headers: { "content-type": "application/json" } }, deliver()]) {
        const { headers } = yield* call(request)
        assert.deepStrictEqual([headers["cache-control"], headers["x-content-type-options"]], ["no-store", "nosniff"])
      }
    })
  )

  it.effect("a long body of any kind is refused in at most 64 KiB", () =>
    Effect.gen(function* () {
      const { call } = yield* Service
      const bodies = [
        `{"invoices":[${"0,".repeat(500_000)}0]}`,
        `{"invoices":[${"{},".repeat(9000)}{}]}`,
        `{${Array.from({ length: 60_000 }, (_, index) => `"k${index}":1`).join(",")}}`,
        `{"${"k".repeat(900_000)}":1}`,
        `{${",".repeat(900_000)}`,
        "[".repeat(900_000),
        " ".repeat(900_000)
      ]
      for (const body of bodies) {
        for (const request of [search, deliver()]) {
          const { status, text } = yield* call({ ...request, body })
          assert.strictEqual(status, 422)
          assert.isAtMost(Buffer.byteLength(text), 65_536)
        }
      }
    })
  )

  it.effect("a long body is not read for who has no key", () =>
    Effect.gen(function* () {
      const { call } = yield* Service
      const headers = { ...headersOf("oakridge"), authorization: "Bearer unknown" }
      for (const chunked of [false, true]) {
        assert.strictEqual((yield* call({ ...search, headers, body: `{${",".repeat(900_000)}`, chunked })).status, 401)
      }
    })
  )

  it.effect.each([
    ["announced", ["content-length: 10000000000"], "x".repeat(65_536)],
    ["in chunks", ["transfer-encoding: chunked"], `10000\r\n${" ".repeat(65_536)}\r\n`]
  ] as const)("a body without an end is not read without an end: %s", ([, headers, piece]) =>
    Effect.gen(function* () {
      const { address } = yield* Service
      for (const [path, authorization] of [
        [search.path, search.headers["authorization"]],
        [search.path, "Bearer unknown"],
        [intake, ""]
      ]) {
        const known = Object.entries({ ...delivering(), authorization }).map(([name, value]) => `${name}: ${value}`)
        const { received, written } = yield* exchange(
          address,
          [`POST ${path} HTTP/1.1`, "host: x", ...known, ...headers],
          piece
        )
        assert.match(received, authorization === "Bearer unknown" ? /^HTTP\/1.1 401 / : /^HTTP\/1.1 413 /)
        assert.isBelow(written, 64 * 1024 * 1024)
      }
    })
  )
}
