/** The fields of a request: the page, the organization, the id, and filters of each type. */
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Schema } from "effect"
import { IdRequired, OrgMismatch, RecordNotFound } from "../../../src/api/Errors.ts"
import { faults } from "../../../src/api/Faults.ts"
import { searchable } from "../../../src/api/records/index.ts"
import {
  demo,
  expectAnswer,
  InProcess,
  invalid,
  organization,
  other,
  paths,
  send,
  taskPaths
} from "../../support/inProcess.ts"

const get = "/api/v3/charges/get"
const gets = paths.filter((path) => path.endsWith("/get") && !path.includes("/organization/"))
const ownId = demo.charges[0]?.id

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

// A time at which several charges were created, others before it and others after it.
const pivot = demo.charges[74]?.created_at ?? DateTime.makeUnsafe(0)
const iso = DateTime.formatIso(pivot)
const [day = "", time = ""] = iso.replace("Z", "").split("T")
const at = (offset: number) => DateTime.formatIso(DateTime.add(pivot, { hours: offset })).replace("Z", "")

const sameTime = [
  `${day}T${time}`,
  `${day} ${time}`,
  `${day}T${time.slice(0, 5)}`,
  `${day}T${time.slice(0, 8)}.0`,
  `${day}T${time.slice(0, 8)}.000000Z`,
  `${day}T${time.slice(0, 8)}+00:00`,
  `${at(2)}+02:00`,
  `${at(-5).replace("T", " ")}-0500`
]

const since = (created_at_since: string) => send({ json: { created_at_since, limit: 1000 } })

const noTimes = [
  ["", " ", "now", "1767225600", "20260131", "2026-01", "2026-1-31", "2026-02-30", "2026-02-29", "2026-13-01"],
  ["2026-01-00", "2026-01-31T24:01", "2026-01-31T10:60", "2026-01-31T10:00:61", "2026-01-31T", "2026-01-31T10"],
  ["2026-01-31T10:00:00.Z", "2026-01-31T10:00:00+25:00", "2026-01-31  10:00", " 2026-01-31", "2026-01-31 "],
  ["2026-01-31T10:00:00Z; drop table charges", "Sat, 31 Jan 2026 10:00:00 GMT", "P1D", "-2026-01-31"]
].flat()

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

  it.effect("that is a page tiles the whole with others, and without one there are 100 records", () =>
    Effect.gen(function* () {
      const tiles = yield* Effect.forEach([0, 40, 80, 120], (offset) => idsOf(`{"limit":40,"offset":${offset}}`))
      const all = yield* idsOf(`{"limit":1000}`)
      assert.deepStrictEqual(tiles.flat(), all)
      assert.deepStrictEqual(yield* idsOf("{}"), all?.slice(0, 100))
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

  it.effect.each([
    [get, "limit"],
    [get, "status"],
    ["/api/v3/organization/get", "id"],
    ["/api/v3/products/search", "updated_at_since"],
    ["/api/v3/charges/search", "include_deleted"]
  ] as const)("of another endpoint is 422: %s has no %s", ([path, field]) =>
    expectAnswer({ path, json: { [field]: null } }, 422, invalid([field, faults.extra]))
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

layer(InProcess.layer())("organization", (it) => {
  const everywhere = [...paths, ...taskPaths]

  it.effect.each(everywhere)("may be absent, null or the key's own on %s, to the same effect", (path) =>
    Effect.gen(function* () {
      const name = path.includes("/invoice-deletions/") ? "task_id" : "id"
      const id = path.endsWith("/get") && !path.includes("/organization/") ? { [name]: "none" } : {}
      const absent = yield* send({ path, json: id })
      assert.include([200, 404], absent.status)
      for (const given of [null, organization])
        yield* expectAnswer({ path, json: { ...id, organization: given } }, absent.status, absent.json)
    })
  )

  it.effect.each(everywhere)("is 400 on %s when it is another's, blank or not quite the key's", (path) =>
    Effect.forEach([other.organization, "", " ", `${organization} `, organization.toUpperCase()], (given) =>
      expectAnswer({ path, json: { organization: given } }, 400, { detail: new OrgMismatch().detail })
    )
  )
})

layer(InProcess.layer())("the id of a single-record read", (it) => {
  it.effect.each(gets)("is required by %s: none or a blank one is 400", (path) =>
    Effect.forEach([{}, { id: null }, { id: "" }, { id: "\t\r\n" }, { id: "\u00a0\u2003" }], (json) =>
      expectAnswer({ path, json }, 400, { detail: new IdRequired().detail })
    )
  )

  it.effect("is 422 when it is no string", () =>
    Effect.forEach(["1", "true", "[]", `{"$ne":""}`], (raw) =>
      expectAnswer({ path: get, raw: `{"id":${raw}}` }, 422, invalid(["id", faults.string]))
    )
  )

  it.effect("is 404 with the same text whether no organization has it or another one does", () =>
    Effect.gen(function* () {
      assert.deepInclude((yield* send({ path: get, json: { id: ownId } })).json, { id: ownId })
      for (const id of ["none", other.demo.charges[0]?.id, ownId?.toUpperCase(), ` ${ownId}`])
        yield* expectAnswer({ path: get, json: { id } }, 404, { detail: new RecordNotFound().detail })
    })
  )
})

layer(InProcess.layer())("a filter", (it) => {
  it.effect.each(searchable)("of $name that is null is as if absent, and of another type 422", ({ filters, name }) =>
    Effect.gen(function* () {
      const path = `/api/v3/${name}/search`
      const names = Object.keys(filters)
      const all = (value: unknown) => Object.fromEntries(names.map((filter) => [filter, value]))
      assert.isNotEmpty(names)
      const { text } = yield* send({ path })
      assert.strictEqual((yield* send({ path, json: all(null) })).text, text)
      const found = names.map((filter) => [filter, kindOf(filter)] as const)
      yield* expectAnswer({ path, json: all(1) }, 422, invalid(...found))
    })
  )

  it.effect.each(searchable)("of $name by time has each record on one side of a bound", ({ filters, name }) =>
    Effect.gen(function* () {
      const path = `/api/v3/${name}/search`
      const { text } = yield* send({ path })
      for (const bound of Object.keys(filters).filter((filter) => /_(since|before)$/.test(filter))) {
        const [none, all] = bound.endsWith("_since") ? ["2999-01-01", "1999-01-01"] : ["1999-01-01", "2999-01-01"]
        assert.strictEqual((yield* send({ path, json: { [bound]: none } })).text, `{"body":[]}`)
        assert.strictEqual((yield* send({ path, json: { [bound]: all } })).text, text)
        assert.strictEqual((yield* send({ path, json: { [bound]: "soon" } })).status, 422)
      }
    })
  )

  it.effect("that is a boolean is 422 when it is not written true or false", () =>
    Effect.forEach(["1", "0", `"true"`, `""`, "[]", "1.0"], (raw) =>
      expectAnswer(
        { path: "/api/v3/consumption-logs/search", raw: `{"include_deleted":${raw}}` },
        422,
        invalid(["include_deleted", faults.boolean])
      )
    )
  )
})

layer(InProcess.layer())("a date-time", (it) => {
  it.effect("is an instant, inclusive as a lower bound, in each way to write it; a date is its midnight in UTC", () =>
    Effect.gen(function* () {
      const { text } = yield* since(iso)
      for (const { id, created_at } of demo.charges)
        assert.strictEqual(text.includes(`"id":"${id}"`), DateTime.isGreaterThanOrEqualTo(created_at, pivot))
      for (const written of sameTime) assert.strictEqual((yield* since(written)).text, text, written)
      assert.strictEqual((yield* since(day)).text, (yield* since(`${day}T00:00:00Z`)).text)
    })
  )

  it.effect.each(noTimes)("is 422, with the reason, when it is '%s'", (written) =>
    Effect.gen(function* () {
      const { status, text } = yield* send({ json: { created_at_since: written } })
      assert.strictEqual(status, 422)
      assert.match(
        text,
        /^\{"detail":\[\{"loc":\["body","created_at_since"\],"msg":"Input should be a valid datetime or date, [a-z][^"]+","type":"datetime_from_date_parsing"\}\]\}$/
      )
    })
  )
})
