/** The package's entries, as other packages see them. */
import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect, Struct } from "effect"
import * as Contract from "../../../src/exports/index.ts"
import { build } from "../../../src/exports/testing.ts"
import { rowsOf } from "../../../src/records/Rows.ts"

const { paymentIntents, resources } = Contract

describe("practice-data", () => {
  it("exports every resource, and the schema of its record", () => {
    const exported = new Set<unknown>(Object.values(Contract))
    for (const resource of resources) {
      assert.isTrue(exported.has(resource), resource.name)
      assert.isTrue(exported.has(resource.record), resource.name)
    }
  })
})

describe("practice-data/testing", () => {
  it.effect("builds a valid record of every resource", () =>
    Effect.forEach(
      resources,
      Effect.fnUntraced(function* (resource: Contract.Resource) {
        const [row] = yield* rowsOf(resource, [build(resource)])
        assert.strictEqual(row?.organization, "org_oakridge")
      }),
      { discard: true }
    )
  )

  it("fills a record's fields with the examples of its schema", () => {
    assert.deepStrictEqual(
      Struct.pick(build(paymentIntents), ["id", "payment_split", "paid", "scheduled_date", "species"]),
      {
        id: "payment_intent_oakridge_0001",
        payment_split: { to_Platform: 2.5, to_Processor: 1.25, to_Clinic: 38.75 },
        paid: false,
        scheduled_date: DateTime.makeUnsafe("2026-01-31T09:30:00.000Z"),
        species: "Canine"
      }
    )
  })
})
