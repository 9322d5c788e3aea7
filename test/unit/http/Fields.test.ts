/** The fields of a request, and the items of a 422: pages, filters, the vocabulary of faults, their order and their bounds. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { faults, patternMismatch, stringTooLong, tooLong } from "../../../src/api/Faults.ts"
import { expectAnswer, InProcess, invalid, send } from "../../support/inProcess.ts"

const digits = "9".repeat(400)
const outOfRange = ["-1e400", "1e400", "9007199254740993", digits, `-${digits}`]
const detail = "limit must be between 1 and 1000"

/** Values in JSON of another type than the field's. */
const otherTypes = [
  ["limit", ["true", `"100"`, `""`, "[1]", "{}"], faults.int],
  ["offset", ["false", `"abc"`], faults.int],
  ["limit", ["1.5", "-0.1"], faults.intFromFloat],
  ["offset", ["1e-2"], faults.intFromFloat],
  ["organization", ["1", "true", "[]", "{}"], faults.string],
  ["created_at_since", ["1767225600", "true", "[]", "{}"], faults.datetime]
] as const

/** A character that no database can hold, and a pair of surrogates in the wrong order. */
const unstorable = [String.raw`"charge\u0000_1"`, String.raw`"\ude00\ud83d"`]

const path = "/api/v3/consumption-logs/search"

/** The words that clients know: the type and message of each fault of a request. */
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
  contentType: ["content_type", "Content-Type should be application/json"],
  list: ["list_type", "Input should be a valid list"],
  stringTooShort: ["string_too_short", "String should have at least 1 character"],
  stringTooLong: ["string_too_long", "String should have at most 36 characters"],
  patternMismatch: ["string_pattern_mismatch", "String should match pattern '^a$'"],
  tooLong: ["too_long", "List should have at most 3 items after validation, not 4"],
  idempotencyKeyReused: ["idempotency_key_reused", "This Idempotency-Key was used with a different payload"],
  noItems: ["value_error", "Value error, invoices or invoice_lines should have at least 1 item"],
  noLists: ["value_error", "Value error, unknown name: use invoices or invoice_lines"]
} as const

const withBounds = { stringTooLong: stringTooLong(36), patternMismatch: patternMismatch("^a$"), tooLong: tooLong(3, 4) }

/** Faults in some fields, none of the fields in its place. */
const known = { updated_at_since: "tomorrow, early", include_deleted: 1, product_code: [] }
const faulty = { zebra: 1, ...known, alpha: null, limit: true, "0": "x" }

const dateParsing = {
  type: "datetime_from_date_parsing",
  msg: "Input should be a valid datetime or date, input is not an ISO 8601 date and time"
}

const found = [
  ["limit", faults.int],
  ["product_code", faults.string],
  ["include_deleted", faults.boolean],
  ["updated_at_since", dateParsing]
] as const

const extra = (names: ReadonlyArray<string>) => names.map((name) => [name, faults.extra] as const)

const unknown = (count: number) => Array.from({ length: count }, (_, index) => `field_${index}`)

layer(InProcess.layer())("a request", (it) => {
  it.effect("with a limit that no integer holds is 400", () =>
    Effect.forEach(outOfRange, (raw) => expectAnswer({ raw: `{"limit":${raw}}` }, 400, { detail }))
  )

  it.effect.each(otherTypes)("whose %s has another type is 422: %j", ([field, values, fault]) =>
    Effect.forEach(values, (raw) => expectAnswer({ raw: `{"${field}":${raw}}` }, 422, invalid([field, fault])))
  )

  it.effect.each(["clinic_idd", "", "__proto__", "constructor", "toString"])(
    "with an unknown field is 422: '%s'",
    (field) => expectAnswer({ raw: `{"${field}":{"limit":1}}` }, 422, invalid([field, faults.extra]))
  )

  it.effect.each(unstorable)("with U+0000 or a lone surrogate is 422 string_unicode: %s", (raw) =>
    Effect.forEach(["organization", "id", "clinic", "status"], (field) =>
      expectAnswer({ raw: `{"${field}":${raw}}` }, 422, invalid([field, faults.stringUnicode]))
    )
  )

  it.effect("with paired surrogates or control characters is fine", () =>
    Effect.forEach([String.raw`"\ud83d\ude00"`, `"😀"`, String.raw`"\u0001\u007f\uffff"`], (raw) =>
      expectAnswer({ raw: `{"status":${raw}}` }, 200, { body: [] })
    )
  )

  it.effect("is refused in the words that clients know, in compact JSON and this order", () =>
    Effect.gen(function* () {
      for (const [name, [type, msg]] of Object.entries(vocabulary))
        assert.deepInclude({ ...faults, ...withBounds }, { [name]: { type, msg } })
      // Not even the order of members changes.
      const expected = `{"detail":[{"loc":["body","pet"],"msg":"Input should be a valid string","type":"string_type"}]}`
      assert.strictEqual((yield* send({ path, json: { pet: 1 } })).text, expected)
    })
  )

  it.effect("is refused for every fault at once, in the order of its fields, unknown fields last", () =>
    expectAnswer({ path, json: faulty }, 422, invalid(...found, ...extra(["0", "zebra", "alpha"])))
  )

  it.effect("is refused for the first 100 of its faults, those of known fields first", () => {
    const names = unknown(10_000)
    const json = { ...Object.fromEntries(names.map((name) => [name, 1])), ...faulty }
    const all = [...found, ...extra(["0", ...names])]
    return expectAnswer({ path, json }, 422, invalid(...all.slice(0, 100)))
  })

  it.effect("is refused in at most 64 KiB, whatever the names", () =>
    Effect.gen(function* () {
      for (const character of [String.raw`\u0000`, String.raw`\ud800`, "\u20ac", '\\"']) {
        const fields = unknown(200).map((name) => `"${character.repeat(100)}${name}":1`)
        const { status, text } = yield* send({ raw: `{${fields.join(",")}}` })
        assert.isTrue(status === 422 && Buffer.byteLength(text) <= 65_536)
      }
    })
  )
})
