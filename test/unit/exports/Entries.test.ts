/** The package's entries, as other packages see them. */
import { assert, it } from "@effect/vitest"
import { DateTime, Effect, Record, Struct } from "effect"
import * as Contract from "../../../src/exports/index.ts"
import * as ServerEntry from "../../../src/exports/server.ts"
import * as TestingEntry from "../../../src/exports/testing.ts"
import { rowsOf } from "../../../src/records/Rows.ts"

const { paymentIntents, resources } = Contract

it("practice-data exports every resource, and the schema of its record", () => {
  const exported = new Set<unknown>(Object.values(Contract))
  for (const resource of resources) {
    assert.isTrue(exported.has(resource), resource.name)
    assert.isTrue(exported.has(resource.record), resource.name)
  }
})

it.effect("practice-data/testing builds a valid record of every resource", () =>
  Effect.forEach(
    resources,
    Effect.fnUntraced(function* (resource: Contract.Resource) {
      const [row] = yield* rowsOf(resource, [TestingEntry.build(resource)])
      assert.strictEqual(row?.organization, "org_oakridge")
    }),
    { discard: true }
  )
)

it("practice-data/testing fills a record's fields with the examples of its schema", () => {
  assert.deepStrictEqual(
    Struct.pick(TestingEntry.build(paymentIntents), ["id", "payment_split", "paid", "scheduled_date", "species"]),
    {
      id: "payment_intent_oakridge_0001",
      payment_split: { to_Platform: 2.5, to_Processor: 1.25, to_Clinic: 38.75 },
      paid: false,
      scheduled_date: DateTime.makeUnsafe("2026-01-31T09:30:00.000Z"),
      species: "Canine"
    }
  )
})

it("the modules of the entries export what other packages may import, and nothing else", () => {
  const { ApiKeys, App, Config, Databases, Migrations, Server, Worker } = ServerEntry
  const { DemoData, DemoProcessor } = TestingEntry
  const modules = { ApiKeys, App, Config, Databases, DemoData, DemoProcessor, Migrations, Server, Worker }
  assert.deepStrictEqual(
    Record.map(modules, (module: object) => Object.keys(module).toSorted().join(" ")),
    {
      ApiKeys: "ApiKey checksumOf create generate list revoke",
      App: "dataApi databases intake intakeServices intakeServicesMemory run serve services servicesMemory",
      Config: "config isLoopback variables",
      Databases: "afterMigration beginAnew layer namesOf poolsOf",
      DemoData: "demoKeys organizations recordsOf",
      DemoProcessor: "accountOf accounts",
      Migrations: "NotMigrated all isMigrated migrate missing openSchema requireMigrated untilMigrated",
      Server:
        "appOf dataApiHandlers dataApiRoutes endpointsOf intakeHandlers intakePath intakeRoutes middleware middlewareOfApis operationsRoutes routes serve",
      Worker: "backoff layer layerRetention make makeRound optionsFor run"
    }
  )
})
