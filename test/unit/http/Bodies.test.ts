/** Request bodies: their media type, size, encoding and syntax. */
import { assert, it, layer } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import { faults } from "../../../src/api/Faults.ts"
import { parse } from "../../../src/http/JsonBodyServer.ts"
import { expectAnswer, InProcess, invalid, send, type Sent } from "../../support/inProcess.ts"

const bytes = (...values: ReadonlyArray<number>) => new Uint8Array(values)
const ascii = (text: string) => [...new TextEncoder().encode(text)]
const kibibyte = 1024
const most = 256 * kibibyte
const padded = (size: number) => `{}${" ".repeat(size - 2)}`

/** A body in pieces of 16 KiB, of which nobody is told the length. */
const streamed = (size: number) => {
  let left = size
  return new ReadableStream<Uint8Array>({
    pull: (controller) => {
      const piece = Math.min(left, 16 * kibibyte)
      left -= piece
      if (piece > 0) controller.enqueue(new Uint8Array(piece).fill(0x20))
      else controller.close()
    }
  })
}

const accepted: ReadonlyArray<Sent> = [
  { raw: " \r\n\t{ } \n" },
  { raw: bytes(0xef, 0xbb, 0xbf, ...ascii("{}")) },
  { raw: padded(most) },
  ...["application/json; charset=utf-8", "application/json ; a=b; c=d", "APPLICATION/JSON"].map((type) => ({
    headers: { "content-type": type }
  }))
]

const notObjects = [
  ["object", ["[]", `"{}"`, "9".repeat(400), "true", "[".repeat(16) + "]".repeat(16)]],
  ["missing", ["", " \r\n ", "null", " null\n"]]
] as const

/** Bodies that are not JSON, and the position that V8 names, in characters; 0 where it names none. */
const malformed = [
  ["{", 1],
  ["NaN", 0],
  ['"in JSON at position 7', 22],
  [`{"limit":1,}`, 11],
  [`{"limit":1} x`, 12],
  [`[1 2]`, 3],
  [`{"a":`.repeat(50_000), 0],
  ["[".repeat(17) + "]".repeat(17), 0],
  [`${'{"a":'.repeat(100)}1${"}".repeat(100)}`, 0],
  [bytes(...ascii(`{"status":"`), 0xff, ...ascii(`"}`)), 0],
  ['{"status":"a","status":null}', 0],
  ['{"list":[{"id":"a"},{"id":"b","id":"c"}]}', 0],
  ['{"x":[[{"y":{"a":1,"b":{},"a":1}}]]}', 0],
  ['{"__proto__":1,"__proto__":1}', 0],
  ['{"":1,"":1}', 0],
  ['[{"1":1,"1":1}]', 0],
  [String.raw`{"name":1, "n\u0061me":2}`, 0],
  [`{"x":[{"a":1,"a":1}],"status":"${"s".repeat(100_000)}"}`, 0]
] as const

const otherTypes = [undefined, "", "application/jsonp", "text/plain; application/json"]

layer(InProcess.layer())("a body", (test) => {
  test.effect("is accepted with white space, a byte order mark, parameters, and up to 256 KiB", () =>
    Effect.forEach(accepted, (sent) =>
      Effect.map(send(sent), ({ status, text }) => assert.strictEqual(status, 200, text))
    )
  )

  test.effect.each(notObjects)("that is no object is 422: %s", ([kind, values]) =>
    Effect.forEach(values, (raw) => expectAnswer({ raw }, 422, { detail: [{ loc: ["body"], ...faults[kind] }] }))
  )

  test.effect("that is no JSON, is nested too deep, or has a member twice, is 422 with its position", () =>
    Effect.forEach(malformed, ([raw, at]) => expectAnswer({ raw }, 422, invalid([at, faults.json])))
  )

  test.effect("whose Content-Type is absent or not application/json is 422 content_type", () =>
    Effect.forEach(otherTypes, (type) =>
      expectAnswer({ headers: { "content-type": type } }, 422, {
        detail: [{ loc: ["header", "content-type"], ...faults.contentType }]
      })
    )
  )

  test.effect.each<readonly [string, Sent]>([
    ["announced, before it is read", { raw: "{}", headers: { "content-length": String(most + 1) } }],
    ["sent in pieces", { raw: streamed(2 * most) }]
  ])("over 256 KiB is 413: %s", ([, sent]) =>
    expectAnswer(sent, 413, { detail: "The request body is larger than 256 KiB" })
  )
})

const isParsed = (text: string) => Result.isSuccess(parse(new TextEncoder().encode(text)))

it.prop("a member with any value is parsed, and refused if it stands twice", { value: Schema.Json }, ({ value }) => {
  const member = `"name": ${JSON.stringify(value)}`
  assert.isTrue(isParsed(`{${member}}`))
  assert.isFalse(isParsed(`{${member}, ${member}}`))
})
