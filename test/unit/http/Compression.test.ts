/** Answers in the encoding that a client asks for, where that pays. */
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib"
import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { compact, InProcess, key, type Sent } from "../../support/inProcess.ts"

const decoders = {
  zstd: zstdDecompressSync,
  br: brotliDecompressSync,
  gzip: gunzipSync
} as const

const isEncoding = Schema.is(Schema.Literals(["zstd", "br", "gzip"]))

/** Requests a page: how it was encoded, and its bytes, decoded. */
const ask = Effect.fnUntraced(function* (acceptEncoding: string | undefined, { headers, json = {} }: Sent = {}) {
  const handle = yield* InProcess
  const sent = { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers }
  const accepting = acceptEncoding === undefined ? sent : { ...sent, "accept-encoding": acceptEncoding }
  const init = { method: "POST", headers: accepting, body: yield* compact(json) }
  const response = yield* Effect.promise(() => handle(new Request("http://localhost/api/v3/charges/search", init)))
  const bytes = new Uint8Array(yield* Effect.promise(() => response.arrayBuffer()))
  const encoding = response.headers.get("content-encoding")
  assert.strictEqual(response.headers.get("content-length"), String(bytes.length))
  assert.strictEqual(response.headers.get("vary"), encoding === null ? null : "accept-encoding")
  const text = new TextDecoder().decode(isEncoding(encoding) ? decoders[encoding](bytes) : bytes)
  return { status: response.status, type: response.headers.get("content-type"), encoding, size: bytes.length, text }
})

const asked: ReadonlyArray<readonly [acceptEncoding: string, encoding: string | null]> = [
  ["zstd", "zstd"],
  ["br", "br"],
  ["gzip", "gzip"],
  ["GZIP", "gzip"],
  ["gzip, deflate, br, zstd", "zstd"],
  ["gzip, deflate, br", "br"],
  ["gzip;q=1.0, zstd;q=0.5", "gzip"],
  ["gzip;q=0.5, identity;q=0.4", "gzip"],
  ["*", "zstd"],
  ["zstd;q=0, *", "br"],
  ["", null],
  ["identity", null],
  ["deflate", null],
  ["gzip;q=0", null],
  ["*;q=0", null],
  ["identity, gzip;q=0.5", null]
]

layer(InProcess.layer())("an answer", (it) => {
  it.effect.each(asked)("to Accept-Encoding '%s' is encoded as %s, and says the same", ([acceptEncoding, encoding]) =>
    Effect.gen(function* () {
      const plain = yield* ask(undefined)
      const answer = yield* ask(acceptEncoding)
      assert.strictEqual(plain.encoding, null)
      assert.strictEqual(answer.encoding, encoding)
      assert.deepStrictEqual([answer.status, answer.type, answer.text], [200, plain.type, plain.text])
      if (encoding !== null) assert.isBelow(answer.size, plain.size / 4)
    })
  )

  it.effect.each<readonly [name: string, sent: Sent, status: number]>([
    ["a short page", { json: { limit: 1 } }, 200],
    ["an error", { headers: { authorization: "Bearer unknown" } }, 401]
  ])("that is short is as it is: %s", ([, sent, status]) =>
    Effect.gen(function* () {
      const answer = yield* ask("gzip, br, zstd", sent)
      assert.deepStrictEqual([answer.status, answer.encoding], [status, null])
    })
  )
})
