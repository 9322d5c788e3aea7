/** The fields of a request: the page, and filters of each type. `api/Endpoints` has the rules of organization and id. */
import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { faults } from "../../../src/api/Faults.ts"
import { searchable } from "../../../src/api/records/index.ts"
import { expectAnswer, InProcess, invalid, paths, send } from "../../support/inProcess.ts"

const get = "/api/v3/charges/get"

const isPage = Schema.is(Schema.Struct({ body: Schema.Array(Schema.Struct({ id: Schema.String })) }))

const idsOf = Effect.fnUntraced(function* (raw: string) {
  const { json } = yield* send({ raw })
  return isPage(json) ? json.body.map(({ id }) => id) : undefined
})

/** Values of a field, and the page that each asks for: how many of the 150 charges, from which position. */
const pages = [
  ["limit", "1", 1, 0],
  ["limit", "1000", 150, 0],
  ["limit", "null", 100, 0],
  ["limit", "2.0", 2, 0],
  ["limit", "1e1", 10, 0],
  ["offset", "-0", 100, 0],
  ["offset", "1", 100, 1],
  ["offset", "149", 1, 149],
  ["offset", "150", 0, 150],
  ["offset", "2147483647", 0, 150],
  ["offset", "null", 100, 0]
] as const

const digits = "9".repeat(400)
const outOfRange = {
  limit: ["0", "1001", "-1", "-0", "2147483648", "1e400", "-1e400", digits, `-${digits}`],
  offset: ["-1", "2147483648", "9007199254740993", "-2147483649", "1e400", "-1e400", digits, `-${digits}`]
}
const ranges = {
  limit: "limit must be between 1 and 1000",
  offset: "offset must be between 0 and 2147483647"
}

const kindOf = (filter: string) =>
  filter.startsWith("include_") ? faults.boolean : /_(since|before)$/.test(filter) ? faults.datetime : faults.string

/** A field, values in JSON that are of another type, and the fault. */
const otherTypes = [
  ["limit", ["true", `"100"`, `""`, "[1]", "{}"], faults.int],
  ["offset", ["false", `"abc"`], faults.int],
  ["limit", ["1.5", "-0.1"], faults.intFromFloat],
  ["offset", ["1e-2"], faults.intFromFloat],
  ["organization", ["1", "true", "[]", "{}"], faults.string],
  ["created_at_since", ["1767225600", "true", "[]", "{}"], faults.datetime]
] as const

const unstorable = [
  ["U+0000", String.raw`"charge\u0000_1"`],
  ["a high surrogate alone", String.raw`"\ud83dx"`],
  ["a low surrogate alone", String.raw`"x\ude00"`],
  ["a pair in the wrong order", String.raw`"\ude00\ud83d"`]
] as const

layer(InProcess.layer())("a field", (it) => {
  it.effect.each(pages)("%s %s asks for %d records from position %d on", ([field, raw, count, from]) =>
    Effect.gen(function* () {
      const all = yield* idsOf(`{"limit":1000}`)
      assert.strictEqual(all?.length, 150)
      const found = yield* idsOf(`{"${field}":${raw}}`)
      assert.deepStrictEqual(found, all?.slice(from, from + count))
      assert.strictEqual(found?.length, count)
    })
  )

  it.effect.each(["limit", "offset"] as const)("%s out of its range is 400", (field) =>
    Effect.forEach(outOfRange[field], (raw) =>
      expectAnswer({ raw: `{"${field}":${raw}}` }, 400, { detail: ranges[field] })
    )
  )

  it.effect.each(otherTypes)("%s is 422 where its type is another: %j", ([field, values, fault]) =>
    Effect.forEach(values, (raw) => expectAnswer({ raw: `{"${field}":${raw}}` }, 422, invalid([field, fault])))
  )

  it.effect.each(["Limit", "clinic_idd", "", "__proto__", "constructor", "toString"])(
    "that no endpoint has is 422 on each, lest a mistyped one widen the result: '%s'",
    (field) =>
      Effect.forEach(paths, (path) =>
        expectAnswer({ path, raw: `{"${field}":{"limit":1}}` }, 422, invalid([field, faults.extra]))
      )
  )

  it.effect("that is named twice means the last one", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* idsOf(`{"limit":5,"limit":2}`))?.length, 2)
      assert.strictEqual((yield* send({ raw: `{"limit":2,"limit":"x"}` })).status, 422)
    })
  )

  it.effect.each(unstorable)("with a text that no database can hold is 422: %s", ([, raw]) =>
    Effect.gen(function* () {
      for (const field of ["organization", "id", "clinic", "status"])
        yield* expectAnswer({ raw: `{"${field}":${raw}}` }, 422, invalid([field, faults.stringUnicode]))
      yield* expectAnswer({ path: get, raw: `{"id":${raw}}` }, 422, invalid(["id", faults.stringUnicode]))
    })
  )

  it.effect("with paired surrogates or control characters is fine", () =>
    Effect.forEach([String.raw`"\ud83d\ude00"`, `"😀"`, String.raw`"\u0001\u007f\uffff"`], (raw) =>
      expectAnswer({ raw: `{"status":${raw}}` }, 200, { body: [] })
    )
  )
})

layer(InProcess.layer())("a filter", (it) => {
  it.effect.each(searchable)("of $name of another type is 422", ({ filters, name }) => {
    const found = Object.keys(filters).map((filter) => [filter, kindOf(filter)] as const)
    const json = Object.fromEntries(found.map(([filter]) => [filter, 1]))
    return expectAnswer({ path: `/api/v3/${name}/search`, json }, 422, invalid(...found))
  })
})
