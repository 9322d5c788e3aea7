/** What the filters of a search find. */
import { assert } from "@effect/vitest"
import { DateTime, Effect } from "effect"
import { resourceOf, searchable } from "../../support/contract/Contract.ts"
import type { Filter } from "../../support/contract/Resource.ts"
import { all, everything, idsOf, satisfies, search, valueOf } from "../../support/Records.ts"
import { Service, type Tests } from "../../support/Service.ts"

const cases = searchable.flatMap((resource) =>
  Object.entries(resource.filters).map(([name, filter]) => ({ resource, path: resource.name, name, filter }))
)

const shown = cases.filter(({ filter }) => filter.compares !== "includes" && filter.fields.length > 0)
const texts = cases.filter(({ filter }) => filter.type === "string")
const times = cases.filter(({ filter }) => filter.type === "date-time")
const deletions = cases.filter(({ filter }) => filter.compares === "includes")

const nothing = (filter: Filter) => (filter.compares === "before" ? "0001-01-01T00:00:00Z" : "9999-12-31T23:59:59.999Z")

export const filters = (it: Tests) => {
  it.effect.each(shown)("/$path/search by $name finds the records that have the value, and no other", (filtered) =>
    Effect.gen(function* () {
      const client = yield* Service
      const { resource, name, filter } = filtered
      const records = yield* all(client, resource)
      const withValue = records.filter((record) => filter.fields.every((field) => record[field] !== null))
      const record = withValue[Math.floor(withValue.length / 2)]
      assert.isDefined(record)
      const value = record && valueOf(filter, record)
      const found = yield* search(client, resource, { ...everything(resource), [name]: value })
      const expected = records.filter(satisfies(filter, value))
      assert.isAbove(expected.length, 0)
      assert.deepStrictEqual(found, expected)
    })
  )

  it.effect.each(texts)(
    "/$path/search by $name is exact and case-sensitive, and empty where nothing has the value",
    (filtered) =>
      Effect.gen(function* () {
        const client = yield* Service
        const { resource, name, filter } = filtered
        const [first] = yield* all(client, resource)
        assert.isDefined(first)
        const value = String(first && filter.fields.length > 0 ? valueOf(filter, first) : "pet_oakridge_0001")
        const none = ["no-such-value", `${value} `, ` ${value}`, `${value}%`, "%", "_", "", value.slice(0, -1)]
        const otherCase = [value.toUpperCase(), value.toLowerCase()].filter((text) => text !== value)
        for (const text of [...none, ...otherCase]) {
          const found = yield* search(client, resource, { ...everything(resource), [name]: text })
          assert.deepStrictEqual(found, [], text)
        }
      })
  )

  it.effect.each(times)("/$path/search by $name finds nothing beyond the last time", ({ resource, name, filter }) =>
    Effect.gen(function* () {
      const client = yield* Service
      assert.deepStrictEqual(yield* search(client, resource, { [name]: nothing(filter) }), [])
    })
  )

  it.effect.each(times)("/$path/search by $name reads a time in any offset", ({ resource, name, filter }) =>
    Effect.gen(function* () {
      const client = yield* Service
      const records = yield* all(client, resource)
      const value = String(records[Math.floor(records.length / 2)]?.[filter.fields[0] ?? ""])
      const local = DateTime.formatIso(DateTime.add(DateTime.makeUnsafe(value), { hours: 2 }))
      const request = everything(resource)
      const found = yield* search(client, resource, { ...request, [name]: value })
      for (const same of [value.replace("Z", ""), value.replace("T", " "), local.replace("Z", "+02:00")]) {
        assert.deepStrictEqual(yield* search(client, resource, { ...request, [name]: same }), found, same)
      }
    })
  )

  it.effect.each(searchable)(
    "/$name/search with several filters finds the records that satisfy all of them",
    (resource) =>
      Effect.gen(function* () {
        const client = yield* Service
        const records = yield* all(client, resource)
        const used = Object.entries(resource.filters).filter(
          ([, { fields, compares }]) => fields.length > 0 && compares !== "includes" && compares !== "before"
        )
        for (const record of records.filter((_, index) => index % 40 === 3 || records.length <= 3)) {
          const values = Object.fromEntries(used.map(([name, filter]) => [name, valueOf(filter, record)] as const))
          const { id: _, ...others } = values
          const request = everything(resource)
          assert.deepStrictEqual(yield* search(client, resource, { ...request, ...values }), [record])
          const expected = records.filter((candidate) =>
            used.every(([name, filter]) => name === "id" || satisfies(filter, values[name])(candidate))
          )
          assert.deepStrictEqual(yield* search(client, resource, { ...request, ...others }), expected)
          assert.deepStrictEqual(yield* search(client, resource, { ...request, ...others, id: "no-such-id" }), [])
        }
      })
  )

  it.effect.each(searchable)("/$name/search takes a filter that is null as absent", (resource) =>
    Effect.gen(function* () {
      const client = yield* Service
      const nulls = Object.fromEntries(
        ["organization", "limit", "offset", ...Object.keys(resource.filters)].map((name) => [name, null])
      )
      const plain = yield* client.ask(`/${resource.name}/search`)
      assert.strictEqual((yield* client.ask(`/${resource.name}/search`, nulls)).text, plain.text)
    })
  )

  it.effect.each(deletions)(
    "/$path/search leaves deleted records out unless include_deleted is true",
    ({ resource, filter }) =>
      Effect.gen(function* () {
        const client = yield* Service
        const records = yield* search(client, resource, { limit: 1000, include_deleted: true })
        const kept = yield* search(client, resource, { limit: 1000 })
        assert.deepStrictEqual(yield* search(client, resource, { limit: 1000, include_deleted: false }), kept)
        assert.isBelow(kept.length, records.length)
        const ids = new Set(idsOf(kept))
        assert.deepStrictEqual(
          records.filter(({ id }) => ids.has(id)),
          kept
        )
        for (const field of filter.fields) {
          assert.deepStrictEqual(
            records.filter((record) => record[field] === false),
            kept
          )
        }
      })
  )

  it.effect("/pet-benefits/get answers a benefit that a search leaves out", () =>
    Effect.gen(function* () {
      const client = yield* Service
      const resource = resourceOf("pet-benefits")
      const kept = new Set(idsOf(yield* search(client, resource, { limit: 1000 })))
      const removed = idsOf(yield* all(client, resource)).filter((id) => !kept.has(id))
      assert.isAbove(removed.length, 0)
      for (const id of removed) {
        assert.strictEqual((yield* client.ask("/pet-benefits/get", { id })).status, 200)
        assert.deepStrictEqual(yield* search(client, resource, { id }), [])
      }
    })
  )

  it.effect("/charges/search by pet, which is not shown, parts the charges among the pets", () =>
    Effect.gen(function* () {
      const client = yield* Service
      const charges = resourceOf("charges")
      const pets = resourceOf("pets")
      const found = yield* Effect.forEach(yield* all(client, pets), ({ id }) =>
        search(client, charges, { limit: 1000, pet: id })
      )
      assert.isAbove(found.filter((part) => part.length > 0).length, 1)
      assert.sameMembers(idsOf(found.flat()), idsOf(yield* all(client, charges)))
      assert.strictEqual(found.flat().length, (yield* all(client, charges)).length)
    })
  )

  it.effect("/charges/search by invoice_pims_id takes the text as the number that it spells", () =>
    Effect.gen(function* () {
      const client = yield* Service
      const charges = resourceOf("charges")
      const find = (text: string) => search(client, charges, { invoice_pims_id: text })
      const found = yield* find("100007")
      assert.isAbove(found.length, 0)
      for (const same of ["100007.0", "0100007", "1.00007e5"]) assert.deepStrictEqual(yield* find(same), found, same)
      for (const none of ["x100007", "100007x", "", " ", "NaN", "Infinity", "9".repeat(400)]) {
        assert.deepStrictEqual(yield* find(none), [], none)
      }
    })
  )

  it.effect("/consumption-logs/search takes the later one of modified_since and updated_at_since", () =>
    Effect.gen(function* () {
      const client = yield* Service
      const logs = resourceOf("consumption-logs")
      const changes = [...new Set((yield* all(client, logs)).map((record) => record["updated_at"]))]
      const [early, late] = [changes[2], changes[5]]
      const find = (request: object) => search(client, logs, { ...everything(logs), ...request })
      const found = yield* find({ updated_at_since: late })
      assert.isAbove(found.length, 0)
      assert.deepStrictEqual(yield* find({ updated_at_since: early, modified_since: late }), found)
      assert.deepStrictEqual(yield* find({ updated_at_since: late, modified_since: early }), found)
    })
  )

  it.effect("/consumption-logs/search with invoice_line and invoice_line_id finds what both hold for", () =>
    Effect.gen(function* () {
      const client = yield* Service
      const logs = resourceOf("consumption-logs")
      const lines = [...new Set((yield* all(client, logs)).map((record) => record["invoice_line"]))]
      const find = (one: unknown, other: unknown) =>
        search(client, logs, { ...everything(logs), invoice_line: one, invoice_line_id: other })
      assert.isAbove((yield* find(lines[0], lines[0])).length, 0)
      assert.deepStrictEqual(yield* find(lines[0], lines[1]), [])
    })
  )
}
