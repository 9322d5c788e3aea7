/** Date-times of requests: ISO 8601 date and time. */
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect } from "effect"
import { faults } from "../../../src/api/Faults.ts"
import { searchable } from "../../../src/api/records/index.ts"
import { demo, InProcess, paths, send } from "../../http/inProcess.ts"

// A time at which several charges were created, others before it and others after it.
const pivot = demo.charges[74]?.created_at ?? DateTime.makeUnsafe(0)
const iso = DateTime.formatIso(pivot)
const [day = "", time = ""] = iso.replace("Z", "").split("T")
const hours = (offset: number) => DateTime.formatIso(DateTime.add(pivot, { hours: offset })).replace("Z", "")

const same = [
  iso,
  `${day}T${time}`,
  `${day} ${time}`,
  `${day} ${time}Z`,
  `${day}T${time.slice(0, 5)}`,
  `${day}T${time.slice(0, 8)}`,
  `${day}T${time.slice(0, 8)}.0`,
  `${day}T${time.slice(0, 8)}.000000Z`,
  `${day}T${time.slice(0, 8)}+00:00`,
  `${hours(2)}+02:00`,
  `${hours(-5)}-05:00`,
  `${hours(-5).replace("T", " ")}-0500`
]

const refused = [
  "",
  " ",
  "now",
  "yesterday",
  "1767225600",
  "1767225600000",
  "20260131",
  "2026",
  "2026-01",
  "2026-1-31",
  "2026-02-30",
  "2026-02-29",
  "2026-13-01",
  "2026-00-10",
  "2026-01-00",
  "2026-01-31T24:01",
  "2026-01-31T10:60",
  "2026-01-31T10:00:61",
  "2026-01-31T",
  "2026-01-31T10",
  "2026-01-31T10:00:00.Z",
  "2026-01-31T10:00:00+25:00",
  "2026-01-31T10:00:00+",
  "2026-01-31  10:00",
  " 2026-01-31",
  "2026-01-31 ",
  "2026-01-31T10:00:00Z; drop table charges",
  "31/01/2026",
  "Sat, 31 Jan 2026 10:00:00 GMT",
  "P1D",
  "-2026-01-31"
]

layer(InProcess.layer())("a date-time of a request", (it) => {
  it.effect("is an instant, inclusive as a lower bound", () =>
    Effect.gen(function* () {
      const { text } = yield* send({ json: { created_at_since: iso, limit: 1000 } })
      for (const { id, created_at } of demo.charges)
        assert.strictEqual(text.includes(`"id":"${id}"`), DateTime.isGreaterThanOrEqualTo(created_at, pivot))
    })
  )

  it.effect.each(same)("may be written %s", (written) =>
    Effect.gen(function* () {
      const expected = yield* send({ json: { created_at_since: iso, limit: 1000 } })
      const answer = yield* send({ json: { created_at_since: written, limit: 1000 } })
      assert.deepStrictEqual([answer.status, answer.text], [200, expected.text])
    })
  )

  it.effect("that is a date alone is its midnight in UTC", () =>
    Effect.gen(function* () {
      const date = yield* send({ json: { created_at_since: day, limit: 1000 } })
      const midnight = yield* send({ json: { created_at_since: `${day}T00:00:00Z`, limit: 1000 } })
      assert.deepStrictEqual([date.status, date.text], [200, midnight.text])
    })
  )

  it.effect.each(refused)("is refused with 422, and the reason, when it is '%s'", (written) =>
    Effect.gen(function* () {
      const answer = yield* send({ json: { created_at_since: written } })
      assert.strictEqual(answer.status, 422)
      assert.match(
        answer.text,
        /^\{"detail":\[\{"loc":\["body","created_at_since"\],"msg":"Input should be a valid datetime or date, [a-z][^"]+","type":"datetime_from_date_parsing"\}\]\}$/
      )
    })
  )

  it.effect.each(["1767225600", "1767225600.5", "true", "[]", "{}"])(
    "is refused with 422 when it is no string: %s",
    (raw) =>
      Effect.gen(function* () {
        const answer = yield* send({ raw: `{"created_at_since":${raw}}` })
        assert.strictEqual(answer.status, 422)
        assert.deepStrictEqual(answer.json, { detail: [{ loc: ["body", "created_at_since"], ...faults.datetime }] })
      })
  )

  it.effect.each(searchable)("is read by every bound of $name", ({ name, filters }) =>
    Effect.gen(function* () {
      const path = `/api/v3/${name}/search`
      assert.include(paths, path)
      for (const bound of Object.keys(filters).filter((filter) => /_(since|before)$/.test(filter))) {
        const none = bound.endsWith("_since") ? "2999-01-01" : "1999-01-01"
        const all = bound.endsWith("_since") ? "1999-01-01" : "2999-01-01"
        assert.strictEqual((yield* send({ path, json: { [bound]: none } })).text, `{"body":[]}`)
        assert.strictEqual((yield* send({ path, json: { [bound]: all } })).text, (yield* send({ path })).text)
        assert.strictEqual((yield* send({ path, json: { [bound]: "soon" } })).status, 422)
      }
    })
  )
})
