/** What a request body must be before its fields are looked at: its media type, size, encoding and syntax. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { faults } from "../../../src/api/Faults.ts"
import { InProcess, paths, send, type Sent } from "../../http/inProcess.ts"

const bytes = (...values: ReadonlyArray<number>) => new Uint8Array(values)
const ascii = (text: string) => [...new TextEncoder().encode(text)]
const mebibyte = 1024 * 1024
const padded = (size: number) => `{}${" ".repeat(size - 2)}`

/** A body in pieces, of which nobody is told the length. */
const streamed = (size: number) => {
  const piece = new TextEncoder().encode(" ".repeat(1024))
  let left = size / piece.length
  return new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode("{}")),
    pull: (controller) => (left-- > 0 ? controller.enqueue(piece) : controller.close())
  })
}

const accepted: ReadonlyArray<readonly [name: string, sent: Sent]> = [
  ["an empty object", { raw: "{}" }],
  ["white space around it", { raw: " \r\n\t{ } \n" }],
  ["a byte order mark before it", { raw: bytes(0xef, 0xbb, 0xbf, ...ascii("{}")) }],
  ["exactly 1 MiB", { raw: padded(mebibyte) }],
  ["exactly 1 MiB, announced", { raw: padded(mebibyte), headers: { "content-length": String(mebibyte) } }],
  ...[
    "application/json; charset=utf-8",
    "application/json;charset=UTF-8",
    "application/json ; a=b; c=d",
    "application/json;",
    "Application/JSON",
    "APPLICATION/JSON;CHARSET=utf-8"
  ].map((type) => [`the content type ${type}`, { headers: { "content-type": type } }] as const)
]

const notObjects = [
  ["an empty array", "[]", faults.object],
  ["an array of objects", "[{}]", faults.object],
  ["a string", `"x"`, faults.object],
  ["an object within a string", `"{}"`, faults.object],
  ["a number", "3", faults.object],
  ["a number of 400 digits", "9".repeat(400), faults.object],
  ["true", "true", faults.object],
  ["an array nested 500,000 deep", "[".repeat(500_000) + "]".repeat(500_000), faults.object],
  ["empty", "", faults.missing],
  ["white space", " \r\n ", faults.missing],
  ["null", "null", faults.missing],
  ["null within white space", " null\n", faults.missing]
] as const

/** Texts that are not JSON, and where they stop being it, in characters. */
const invalid = [
  ["{", 1],
  ["}", 0],
  ["x", 0],
  ["nul", 0],
  ["NaN", 0],
  ["Infinity", 0],
  ["undefined", 0],
  [`{"limit":1`, 10],
  [`{"limit":}`, 9],
  [`{"limit" 1}`, 9],
  [`{"limit":1,}`, 11],
  [`{"limit":1 "offset":1}`, 11],
  [`{limit:1}`, 1],
  [`{'limit':1}`, 1],
  [`{"limit":NaN}`, 9],
  [`{"limit":+1}`, 9],
  [`{"limit":.5}`, 9],
  [`{"limit":1} x`, 12],
  [`{"limit":1}{}`, 11],
  [`{"status":"é",}`, 14],
  [`[1,]`, 3],
  [`[1 2]`, 3],
  ["/* a comment */{}", 0],
  ["{} // a comment", 3],
  ["{/* a comment */}", 1],
  ["limit=1&offset=2", 0]
] as const

/** Texts that are not JSON because of what is within a token; the position is somewhere in them. */
const invalidTokens = [
  ["a leading zero", `{"limit":01}`],
  ["a number without its fraction", `{"limit":1.}`],
  ["a number without its exponent", `{"limit":1e}`],
  ["a number without its digits", `{"limit":-}`],
  ["a hexadecimal number", `{"limit":0x10}`],
  ["a string that is not closed", `{"status":"paid}`],
  ["a line break within a string", `{"status":"a\nb"}`],
  ["a tab within a string", `{"status":"a\tb"}`],
  ["U+0000 within a string", `{"status":"a\u0000b"}`],
  ["an unknown escape", String.raw`{"status":"\x41"}`],
  ["an escape cut short", String.raw`{"status":"\u12"}`],
  ["an object nested 100,000 deep and not closed", `{"a":`.repeat(100_000)],
  ["an array nested 500,000 deep and not closed", "[".repeat(500_000)],
  ["UTF-16", new Uint8Array(Buffer.from("{}", "utf16le"))]
] as const

const invalidUtf8 = [
  ["a byte that no text has", bytes(...ascii(`{"status":"`), 0xff, ...ascii(`"}`))],
  ["a sequence cut short", bytes(...ascii(`{"status":"`), 0xe2, 0x82, ...ascii(`"}`))],
  ["an overlong sequence", bytes(...ascii(`{"status":"`), 0xc0, 0x80, ...ascii(`"}`))],
  ["an encoded surrogate", bytes(...ascii(`{"status":"`), 0xed, 0xa0, 0x80, ...ascii(`"}`))],
  ["UTF-16 with a byte order mark", bytes(0xff, 0xfe, 0x7b, 0, 0x7d, 0)]
] as const

const otherTypes = [
  ["none", undefined],
  ["an empty one", ""],
  ["text/plain", "text/plain"],
  ["text/json", "text/json"],
  ["application/jsonp", "application/jsonp"],
  ["application/problem+json", "application/problem+json"],
  ["application/x-www-form-urlencoded", "application/x-www-form-urlencoded"],
  ["multipart/form-data", "multipart/form-data; boundary=x"],
  ["another that has it as a parameter", "text/plain; application/json"],
  ["two", "application/json, application/json"]
] as const

layer(InProcess.layer())("a body", (it) => {
  it.effect.each(accepted)("is accepted: %s", ([, sent]) =>
    Effect.gen(function* () {
      assert.strictEqual((yield* send(sent)).status, 200)
    })
  )

  it.effect.each(notObjects)("is refused with 422 when it is no object: %s", ([, raw, fault]) =>
    Effect.gen(function* () {
      const answer = yield* send({ raw })
      assert.strictEqual(answer.status, 422)
      assert.deepStrictEqual(answer.json, { detail: [{ loc: ["body"], ...fault }] })
    })
  )

  it.effect("may not be missing on any endpoint, though it may be empty where no field is required", () =>
    Effect.gen(function* () {
      for (const path of paths) {
        const answer = yield* send({ path, raw: "" })
        assert.deepStrictEqual(answer.json, { detail: [{ loc: ["body"], ...faults.missing }] })
        assert.notStrictEqual((yield* send({ path, raw: "{}" })).status, 422)
      }
    })
  )

  it.effect.each(invalid)("is refused with 422 and the position where it stops being JSON: '%s' at %d", ([raw, at]) =>
    Effect.gen(function* () {
      const answer = yield* send({ raw })
      assert.strictEqual(answer.status, 422)
      assert.deepStrictEqual(answer.json, { detail: [{ loc: ["body", at], ...faults.json }] })
    })
  )

  it.effect.each([...invalidTokens, ...invalidUtf8])("is refused with 422 when it is not JSON: %s", ([, raw]) =>
    Effect.gen(function* () {
      const answer = yield* send({ raw })
      assert.strictEqual(answer.status, 422)
      assert.match(
        answer.text,
        /^\{"detail":\[\{"loc":\["body",\d+\],"msg":"JSON decode error","type":"json_invalid"\}\]\}$/
      )
    })
  )

  it.effect("whose fields are nested 100,000 deep is refused by their type", () =>
    Effect.gen(function* () {
      const answer = yield* send({ raw: `{"status":${"[".repeat(100_000)}${"]".repeat(100_000)}}` })
      assert.deepStrictEqual(answer.json, { detail: [{ loc: ["body", "status"], ...faults.string }] })
    })
  )

  it.effect("that names a field twice means the last one", () =>
    Effect.gen(function* () {
      assert.strictEqual(
        (yield* send({ raw: `{"limit":5,"limit":2}` })).text,
        (yield* send({ json: { limit: 2 } })).text
      )
      assert.strictEqual((yield* send({ raw: `{"limit":2,"limit":"x"}` })).status, 422)
    })
  )

  it.effect.each(["__proto__", "constructor", "prototype", "toString", "hasOwnProperty"])(
    "cannot name what every object has: %s is an unknown field",
    (name) =>
      Effect.gen(function* () {
        for (const path of paths)
          for (const value of [`{"limit":1}`, "null", "1"]) {
            const answer = yield* send({ path, raw: `{"${name}":${value}}` })
            assert.strictEqual(answer.status, 422)
            assert.deepStrictEqual(answer.json, { detail: [{ loc: ["body", name], ...faults.extra }] })
          }
      })
  )

  it.effect.each(otherTypes)("of another content type than application/json is refused with 422: %s", ([, type]) =>
    Effect.gen(function* () {
      const answer = yield* send({ headers: { "content-type": type } })
      assert.strictEqual(answer.status, 422)
      assert.deepStrictEqual(answer.json, { detail: [{ loc: ["header", "content-type"], ...faults.contentType }] })
    })
  )

  it.effect.each<readonly [string, Sent]>([
    ["sent without a length", { raw: padded(mebibyte + 1) }],
    ["announced", { raw: padded(mebibyte + 1), headers: { "content-length": String(mebibyte + 1) } }],
    ["announced, before it is read", { raw: "{}", headers: { "content-length": String(mebibyte + 1) } }],
    ["sent in pieces", { raw: streamed(2 * mebibyte) }]
  ])("over 1 MiB is refused with 413: %s", ([, sent]) =>
    Effect.gen(function* () {
      const answer = yield* send(sent)
      assert.strictEqual(answer.status, 413)
      assert.deepStrictEqual(answer.json, { detail: "The request body is larger than 1048576 bytes" })
    })
  )
})
