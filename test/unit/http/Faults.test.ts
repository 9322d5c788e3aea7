/** The items of a 422: the vocabulary, all faults at once in the order of the endpoint's fields, and their bounds. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { faults } from "../../../src/api/Faults.ts"
import { type Answer, expectAnswer, InProcess, invalid, send } from "../../support/inProcess.ts"

const path = "/api/v3/consumption-logs/search"

/** The whole text of an answer, so that not even the order of members changes. */
const texts = [
  [{ pet: 1 }, `{"detail":[{"loc":["body","pet"],"msg":"Input should be a valid string","type":"string_type"}]}`],
  [{ limit: "1" }, `{"detail":[{"loc":["body","limit"],"msg":"Input should be a valid integer","type":"int_type"}]}`]
] as const

/** The words that clients know: the type and message of each fault that a body of the data API can have. */
const vocabulary = {
  missing: ["missing", "Field required"],
  object: ["model_attributes_type", "Input should be a valid dictionary or object to extract fields from"],
  json: ["json_invalid", "JSON decode error"],
  string: ["string_type", "Input should be a valid string"],
  stringUnicode: ["string_unicode", "Input should be a valid string, unable to parse raw data as a unicode string"],
  int: ["int_type", "Input should be a valid integer"],
  intFromFloat: ["int_from_float", "Input should be a valid integer, got a number with a fractional part"],
  boolean: ["bool_type", "Input should be a valid boolean"],
  datetime: ["datetime_type", "Input should be a valid datetime"],
  extra: ["extra_forbidden", "Extra inputs are not permitted"],
  contentType: ["content_type", "Content-Type should be application/json"]
} as const

const noDateTime = (reason: string) => ({
  type: "datetime_from_date_parsing",
  msg: `Input should be a valid datetime or date, ${reason}`
})

/** One fault in each field, none of the fields in its place. */
const faulty = {
  zebra: 1,
  updated_at_since: "tomorrow, early",
  include_deleted: 1,
  invoice_line_id: {},
  created_at_since: 5,
  product_code: [],
  offset: 0.5,
  pet: 1,
  alpha: null,
  limit: true,
  organization: false,
  id: 7,
  "0": "x"
}

const found = [
  ["organization", faults.string],
  ["limit", faults.int],
  ["offset", faults.intFromFloat],
  ["id", faults.string],
  ["pet", faults.string],
  ["product_code", faults.string],
  ["invoice_line_id", faults.string],
  ["include_deleted", faults.boolean],
  ["created_at_since", faults.datetime],
  ["updated_at_since", noDateTime("input is not an ISO 8601 date and time")]
] as const

const extra = (names: ReadonlyArray<string>) => names.map((name) => [name, faults.extra] as const)

const unknown = (count: number) => Array.from({ length: count }, (_, index) => `field_${index}`)

const each = (names: ReadonlyArray<string>) => Object.fromEntries(names.map((name) => [name, 1]))

const long = "k".repeat(64)

const isShort = ({ status, text }: Answer) => assert.isTrue(status === 422 && Buffer.byteLength(text) <= 65_536)

layer(InProcess.layer())("a 422", (it) => {
  it.effect("has the words that clients know, in compact JSON and this order", () =>
    Effect.gen(function* () {
      for (const [name, [type, msg]] of Object.entries(vocabulary))
        assert.deepInclude(faults, { [name]: { type, msg } })
      for (const [json, text] of texts) assert.strictEqual((yield* send({ path, json })).text, text)
      yield* expectAnswer(
        { path, json: { modified_since: "today" } },
        422,
        invalid(["modified_since", noDateTime("input is too short")])
      )
    })
  )

  it.effect("has every fault at once, in the order of the endpoint's fields, unknown fields last", () =>
    expectAnswer({ path, json: faulty }, 422, invalid(...found, ...extra(["0", "zebra", "alpha"])))
  )

  it.effect("repeats no value that was sent", () =>
    Effect.gen(function* () {
      const secret = "4242424242424242"
      for (const json of [{ limit: secret }, { pet: [secret] }, { created_at_since: secret }, { more: secret }])
        assert.notInclude((yield* send({ path, json })).text, secret)
    })
  )

  it.effect.each([101, 400, 20_000])("lists the first 100 of %d faults, those of known fields first", (count) =>
    Effect.gen(function* () {
      const names = unknown(count)
      yield* expectAnswer({ path, json: each(names) }, 422, invalid(...extra(names.slice(0, 100))))
      const all = extra(["0", ...names, "zebra", "alpha"])
      yield* expectAnswer(
        { path, json: { ...each(names), ...faulty } },
        422,
        invalid(...[...found, ...all].slice(0, 100))
      )
    })
  )

  it.effect.each([
    ["is no text", "\ud800\0", "\ud800\0"],
    ["has 64 characters", long, long],
    ["has 65 characters", `${long}k`, `${long}\u2026`],
    ["has a mebibyte", "k".repeat(1_000_000), `${long}\u2026`],
    ["would be cut within a character", `${"k".repeat(63)}\u{1f415}k`, `${"k".repeat(63)}\u2026`]
  ] as const)("shows 64 characters of a name at most: one that %s", ([, name, shown]) =>
    expectAnswer({ json: { [name]: 1 } }, 422, invalid([shown, faults.extra]))
  )

  it.effect("has at most 64 KiB, whatever the names", () =>
    Effect.gen(function* () {
      for (const character of [String.raw`\u0000`, String.raw`\ud800`, "\u20ac", '\\"']) {
        const fields = unknown(200).map((name) => `"${character.repeat(500)}${name}":1`)
        isShort(yield* send({ raw: `{${fields.join(",")}}` }))
      }
      const query = unknown(200).map((name) => `${"%00".repeat(64)}${name}`)
      isShort(yield* send({ path: `${path}?${query.join("&")}` }))
    })
  )
})
