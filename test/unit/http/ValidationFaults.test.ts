/** The items of a 422: the vocabulary, and all faults at once in the order of the endpoint's fields. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { InProcess, send, type Sent } from "../../http/inProcess.ts"

const search = "/api/v3/consumption-logs/search"

type Item = readonly [loc: ReadonlyArray<string | number>, msg: string, type: string]

const items = (...all: ReadonlyArray<Item>) => ({ detail: all.map(([loc, msg, type]) => ({ loc, msg, type })) })

/** Every row of the vocabulary that a body of the data API can produce. */
const vocabulary: ReadonlyArray<readonly [type: string, sent: Sent, item: Item]> = [
  ["missing", { raw: "" }, [["body"], "Field required", "missing"]],
  [
    "model_attributes_type",
    { raw: "[]" },
    [["body"], "Input should be a valid dictionary or object to extract fields from", "model_attributes_type"]
  ],
  ["json_invalid", { raw: `{"pet":"a",}` }, [["body", 11], "JSON decode error", "json_invalid"]],
  ["string_type", { json: { pet: 1 } }, [["body", "pet"], "Input should be a valid string", "string_type"]],
  [
    "string_unicode",
    { raw: String.raw`{"pet":"\u0000"}` },
    [["body", "pet"], "Input should be a valid string, unable to parse raw data as a unicode string", "string_unicode"]
  ],
  ["int_type", { json: { limit: "1" } }, [["body", "limit"], "Input should be a valid integer", "int_type"]],
  [
    "int_from_float",
    { json: { offset: 1.5 } },
    [["body", "offset"], "Input should be a valid integer, got a number with a fractional part", "int_from_float"]
  ],
  [
    "bool_type",
    { json: { include_deleted: "no" } },
    [["body", "include_deleted"], "Input should be a valid boolean", "bool_type"]
  ],
  [
    "datetime_type",
    { json: { modified_since: 0 } },
    [["body", "modified_since"], "Input should be a valid datetime", "datetime_type"]
  ],
  [
    "datetime_from_date_parsing",
    { json: { modified_since: "today" } },
    [
      ["body", "modified_since"],
      "Input should be a valid datetime or date, input is too short",
      "datetime_from_date_parsing"
    ]
  ],
  [
    "extra_forbidden",
    { json: { limits: 1 } },
    [["body", "limits"], "Extra inputs are not permitted", "extra_forbidden"]
  ],
  [
    "content_type",
    { headers: { "content-type": "text/plain" } },
    [["header", "content-type"], "Content-Type should be application/json", "content_type"]
  ]
]

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

const found = items(
  [["body", "organization"], "Input should be a valid string", "string_type"],
  [["body", "limit"], "Input should be a valid integer", "int_type"],
  [["body", "offset"], "Input should be a valid integer, got a number with a fractional part", "int_from_float"],
  [["body", "id"], "Input should be a valid string", "string_type"],
  [["body", "pet"], "Input should be a valid string", "string_type"],
  [["body", "product_code"], "Input should be a valid string", "string_type"],
  [["body", "invoice_line_id"], "Input should be a valid string", "string_type"],
  [["body", "include_deleted"], "Input should be a valid boolean", "bool_type"],
  [["body", "created_at_since"], "Input should be a valid datetime", "datetime_type"],
  [
    ["body", "updated_at_since"],
    "Input should be a valid datetime or date, input is not an ISO 8601 date and time",
    "datetime_from_date_parsing"
  ],
  [["body", "0"], "Extra inputs are not permitted", "extra_forbidden"],
  [["body", "zebra"], "Extra inputs are not permitted", "extra_forbidden"],
  [["body", "alpha"], "Extra inputs are not permitted", "extra_forbidden"]
)

layer(InProcess.layer())("a 422", (it) => {
  it.effect.each(vocabulary)("says %s in the words that clients know", ([, sent, item]) =>
    Effect.gen(function* () {
      const answer = yield* send({ path: search, ...sent })
      assert.strictEqual(answer.status, 422)
      assert.deepStrictEqual(answer.json, items(item))
    })
  )

  it.effect("has every fault at once, in the order of the endpoint's fields, unknown fields last", () =>
    Effect.gen(function* () {
      const answer = yield* send({ path: search, json: faulty })
      assert.strictEqual(answer.status, 422)
      assert.deepStrictEqual(answer.json, found)
    })
  )

  it.effect("writes each item as loc, msg, type and nothing more, in compact JSON", () =>
    Effect.gen(function* () {
      const answer = yield* send({ json: { limit: "x" } })
      assert.strictEqual(
        answer.text,
        `{"detail":[{"loc":["body","limit"],"msg":"Input should be a valid integer","type":"int_type"}]}`
      )
      assert.match(answer.headers["content-type"] ?? "", /^application\/json\b/)
    })
  )

  it.effect("says nothing of what was sent", () =>
    Effect.gen(function* () {
      const secret = "4242424242424242"
      for (const json of [{ limit: secret }, { pet: [secret] }, { created_at_since: secret }, { more: secret }])
        assert.notInclude((yield* send({ path: search, json })).text, secret)
    })
  )

  it.effect("names a field whose name is no text", () =>
    Effect.gen(function* () {
      const answer = yield* send({ raw: String.raw`{"\ud800\u0000":1}` })
      assert.strictEqual(answer.status, 422)
      assert.deepStrictEqual(
        answer.json,
        items([["body", "\ud800\0"], "Extra inputs are not permitted", "extra_forbidden"])
      )
    })
  )

  it.effect.each([101, 400, 20_000])("lists the first 100 of %d faults", (count) =>
    Effect.gen(function* () {
      const names = Array.from({ length: count }, (_, index) => `field_${index}`)
      const answer = yield* send({ json: Object.fromEntries(names.map((name) => [name, 1])) })
      assert.deepStrictEqual(
        answer.json,
        items(
          ...names
            .slice(0, 100)
            .map((name): Item => [["body", name], "Extra inputs are not permitted", "extra_forbidden"])
        )
      )
    })
  )

  it.effect.each([200, 20_000])("lists the fields that the endpoint has before %d unknown ones", (count) =>
    Effect.gen(function* () {
      const names = Array.from({ length: count }, (_, index) => `field_${index}`)
      const answer = yield* send({
        path: search,
        json: { ...Object.fromEntries(names.map((name) => [name, 1])), ...faulty }
      })
      assert.deepStrictEqual(answer.json, {
        detail: [
          ...found.detail.slice(0, 10),
          ...items(
            ...["0", ...names.slice(0, 89)].map((name): Item => [
              ["body", name],
              "Extra inputs are not permitted",
              "extra_forbidden"
            ])
          ).detail
        ]
      })
    })
  )

  it.effect.each([
    ["of 64 characters is shown", "k".repeat(64), "k".repeat(64)],
    ["of 65 characters is cut short", "k".repeat(65), `${"k".repeat(64)}\u2026`],
    ["of a mebibyte is cut short", "k".repeat(1_000_000), `${"k".repeat(64)}\u2026`],
    ["is not cut within a character", `${"k".repeat(63)}\u{1f415}k`, `${"k".repeat(63)}\u2026`]
  ])("names a field whose name %s", ([, name = "", shown = ""]) =>
    Effect.gen(function* () {
      const body = yield* send({ json: { [name]: 1 } })
      assert.deepStrictEqual(body.json, items([["body", shown], "Extra inputs are not permitted", "extra_forbidden"]))
    })
  )

  it.effect("has at most 64 KiB, whatever the names", () =>
    Effect.gen(function* () {
      for (const character of [String.raw`\u0000`, String.raw`\ud800`, "\u20ac", '\\"']) {
        const fields = Array.from({ length: 200 }, (_, index) => `"${character.repeat(500)}${index}":1`)
        const answer = yield* send({ raw: `{${fields.join(",")}}` })
        assert.strictEqual(answer.status, 422)
        assert.isAtMost(new TextEncoder().encode(answer.text).length, 65_536)
      }
      const query = Array.from({ length: 200 }, (_, index) => `${"%00".repeat(64)}${index}`).join("&")
      const answer = yield* send({ path: `${search}?${query}` })
      assert.strictEqual(answer.status, 422)
      assert.isAtMost(new TextEncoder().encode(answer.text).length, 65_536)
    })
  )
})
