/** The package's entries, as other packages see them. */
import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Struct } from "effect"
import * as Contract from "../../../src/app/exports/index.ts"
import * as TestingEntry from "../../../src/app/exports/testing.ts"
import { toRows } from "../../../src/records/Rows.ts"

const { paymentIntents, resources } = Contract

it.effect("practice-data exports every resource and its schema, and builds a valid record of it", () =>
  Effect.gen(function* () {
    const exported = new Set<unknown>(Object.values(Contract))
    const all: ReadonlyArray<Contract.Resource> = resources
    for (const resource of all) {
      assert.isTrue(exported.has(resource), resource.name)
      assert.isTrue(exported.has(resource.record), resource.name)
      const [row] = yield* toRows(resource, [TestingEntry.build(resource)])
      assert.strictEqual(row?.organization, "org_oakridge", resource.name)
    }
  })
)

it("practice-data/testing fills a record's fields with the examples of its schema", () => {
  const fields = ["id", "payment_split", "paid", "scheduled_date", "species"] as const
  assert.deepStrictEqual(Struct.pick(TestingEntry.build(paymentIntents), fields), {
    id: "payment_intent_oakridge_0001",
    payment_split: { to_Platform: 2.5, to_Processor: 1.25, to_Clinic: 38.75 },
    paid: false,
    scheduled_date: DateTime.makeUnsafe("2026-01-31T09:30:00.000Z"),
    species: "Canine"
  })
})
