/** limit and offset. Contract: sections 4.1 and 8. */
import { assert, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { faults } from "../../../src/api/Faults.ts"
import { demo, InProcess, send } from "../../http/inProcess.ts"

const digits = "9".repeat(400)

/** The page that a raw value of a field asks for: how many of the charges, the first of them at which position. */
const pages = [
  ["limit", "1", 1, 0],
  ["limit", "99", 99, 0],
  ["limit", "1000", demo.charges.length, 0],
  ["limit", "null", 100, 0],
  ["limit", "2.0", 2, 0],
  ["limit", "1e1", 10, 0],
  ["offset", "0", 100, 0],
  ["offset", "-0", 100, 0],
  ["offset", "1", 100, 1],
  ["offset", "149", 1, 149],
  ["offset", "150", 0, 150],
  ["offset", "2147483647", 0, 150],
  ["offset", "null", 100, 0]
] as const

const outOfRange = {
  limit: ["0", "1001", "-1", "-0", "2147483647", "2147483648", "-2147483649", "1e400", "-1e400", digits, `-${digits}`],
  offset: ["-1", "2147483648", "9007199254740993", "-2147483649", "1e400", "-1e400", digits, `-${digits}`]
}

const notIntegers = [
  ["1.5", faults.intFromFloat],
  ["-0.1", faults.intFromFloat],
  ["1e-2", faults.intFromFloat],
  ["true", faults.int],
  ["false", faults.int],
  [`"100"`, faults.int],
  [`"abc"`, faults.int],
  [`""`, faults.int],
  ["[1]", faults.int],
  ["{}", faults.int]
] as const

const short = (raw: string) => (raw.length > 20 ? `an integer of ${raw.length} characters` : raw)

const isPage = Schema.is(Schema.Struct({ body: Schema.Array(Schema.Struct({ id: Schema.String })) }))

const idsOf = (json: unknown) => (isPage(json) ? json.body.map(({ id }) => id) : undefined)

layer(InProcess.layer())("a search", (it) => {
  it.effect("returns 100 records from the first on when nothing is said", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(
        idsOf((yield* send()).json),
        idsOf((yield* send({ json: { limit: 100, offset: 0 } })).json)
      )
      assert.strictEqual(idsOf((yield* send()).json)?.length, 100)
    })
  )

  it.effect.each(pages)("with %s %s returns %d records from position %d on", ([field, raw, count, from]) =>
    Effect.gen(function* () {
      const all = idsOf((yield* send({ json: { limit: 1000 } })).json)
      const answer = yield* send({ raw: `{"${field}":${raw}}` })
      assert.strictEqual(answer.status, 200)
      assert.deepStrictEqual(idsOf(answer.json), all?.slice(from, from + count))
      assert.strictEqual(idsOf(answer.json)?.length, count)
    })
  )

  it.effect.each([
    ["limit", { limit: 3, offset: 148 }, 2],
    ["offset", { limit: 1, offset: 149 }, 1]
  ] as const)("ends at the last record, whatever its %s", ([, json, count]) =>
    Effect.gen(function* () {
      assert.strictEqual(idsOf((yield* send({ json })).json)?.length, count)
    })
  )

  it.effect("tiles the whole by pages, without a gap or an overlap", () =>
    Effect.gen(function* () {
      const all = idsOf((yield* send({ json: { limit: 1000 } })).json)
      const tiles = yield* Effect.forEach([0, 40, 80, 120], (offset) => send({ json: { limit: 40, offset } }))
      assert.deepStrictEqual(
        tiles.flatMap(({ json }) => idsOf(json) ?? []),
        all
      )
    })
  )

  for (const [field, ranges] of [
    ["limit", "limit must be between 1 and 1000"],
    ["offset", "offset must be between 0 and 2147483647"]
  ] as const) {
    it.effect.each(outOfRange[field].map((raw) => [short(raw), raw] as const))(
      `is refused with 400 when ${field} is out of range: %s`,
      ([, raw]) =>
        Effect.gen(function* () {
          const answer = yield* send({ raw: `{"${field}":${raw}}` })
          assert.strictEqual(answer.status, 400)
          assert.deepStrictEqual(answer.json, { detail: ranges })
        })
    )

    it.effect.each(notIntegers)(`is refused with 422 when ${field} is no integer: %s`, ([raw, fault]) =>
      Effect.gen(function* () {
        const answer = yield* send({ raw: `{"${field}":${raw}}` })
        assert.strictEqual(answer.status, 422)
        assert.deepStrictEqual(answer.json, { detail: [{ loc: ["body", field], ...fault }] })
      })
    )
  }
})
