/** The account of a clinic, in the table of clinics and in the fake. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { CurrentOrganization } from "../../../src/api/CurrentOrganization.ts"
import { RecordStoreDown } from "../../../src/api/Errors.ts"
import { RecordDatabase } from "../../../src/database/Database.ts"
import { ClinicAccounts } from "../../../src/psp/ClinicAccounts.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const clinics = [
  { organization: "org_a", clinic: "clinic_1", account: "acct_a" },
  { organization: "org_a", clinic: "clinic_2", account: null },
  { organization: "org_a", clinic: "Clinic_1", account: "acct_of_another_case" },
  { organization: "org_b", clinic: "clinic_1", account: "acct_b" },
  { organization: "org_b", clinic: "clinic_3", account: "acct_b3" }
]

const filled = Layer.effectDiscard(
  Effect.flatMap(RecordDatabase, (sql) =>
    Effect.forEach(clinics, ({ organization, clinic: id, account: processor_account }) => {
      return sql`insert into clinics ${sql.insert({ organization_id: organization, id, organization, processor_account })}`
    })
  )
)

const layerPostgres = ClinicAccounts.layer.pipe(
  Layer.provideMerge(filled),
  Layer.provideMerge(TestDatabase.layerDatabases)
)

const find = (organization: string, clinic: string) =>
  Effect.flatMap(ClinicAccounts, (accounts) => accounts.find(clinic)).pipe(
    Effect.provideService(CurrentOrganization, CurrentOrganization.known(organization))
  )

const suites = [
  ["ClinicAccounts.layerMemory", ClinicAccounts.layerMemory(clinics)],
  ["ClinicAccounts.layer", layerPostgres]
] as const

for (const [name, accounts] of suites) {
  layer<ClinicAccounts, unknown>(accounts, { excludeTestServices: true })(name, (it) => {
    it.effect.each([
      ...clinics.map(({ organization, clinic, account }) => [organization, clinic, account] as const),
      ["org_a", "clinic_3", undefined],
      ["org_b", "clinic_2", undefined],
      ["org_a", "CLINIC_1", undefined],
      ["org_a", "clinic_1 ", undefined],
      ["org_a", "", undefined],
      ["org_a", "%", undefined],
      ["org_a", "' or true --", undefined],
      ["org_c", "clinic_1", undefined]
    ] as const)("finds of %s's '%s': %s", ([organization, clinic, account]) =>
      Effect.map(find(organization, clinic), (found) => assert.strictEqual(found, account))
    )
  })
}

layer<ClinicAccounts | RecordDatabase, unknown>(layerPostgres, { excludeTestServices: true })((it) => {
  it.effect("ClinicAccounts.layer fails with RecordStoreDown when the table cannot be read", () =>
    Effect.gen(function* () {
      const sql = yield* RecordDatabase
      yield* sql`alter table clinics rename to elsewhere`
      const error = yield* Effect.flip(find("org_a", "clinic_1"))
      assert.strictEqual(error._tag, "RecordStoreDown")
      assert.strictEqual(error.detail, RecordStoreDown.from({ _tag: "Refused" }).detail)
    })
  )
})
