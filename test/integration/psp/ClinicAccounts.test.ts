/** The account of a clinic: in the table of clinics, in the fake, and when the table cannot be read. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { RecordDatabase } from "../../../src/database/Database.ts"
import { RecordStoreDown } from "../../../src/api/Errors.ts"
import { CurrentOrganization } from "../../../src/api/CurrentOrganization.ts"
import { ClinicAccounts } from "../../../src/psp/ClinicAccounts.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const clinics = [
  { organization: "org_a", clinic: "clinic_1", account: "acct_a" },
  { organization: "org_a", clinic: "clinic_2", account: null },
  { organization: "org_a", clinic: "Clinic_1", account: "acct_of_another_case" },
  { organization: "org_b", clinic: "clinic_1", account: "acct_b" },
  { organization: "org_b", clinic: "clinic_3", account: "acct_b3" }
] as const

const filled = Layer.effectDiscard(
  Effect.gen(function* () {
    const sql = yield* RecordDatabase
    for (const { organization, clinic, account } of clinics) {
      yield* sql`insert into clinics ${sql.insert({
        organization_id: organization,
        id: clinic,
        organization,
        processor_account: account
      })}`
    }
  })
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
    it.effect.each(clinics)("finds the account of $organization's $clinic: $account", (known) =>
      Effect.gen(function* () {
        assert.strictEqual(yield* find(known.organization, known.clinic), known.account)
      })
    )

    it.effect.each([
      ["org_a", "clinic_3"],
      ["org_b", "clinic_2"],
      ["org_a", "CLINIC_1"],
      ["org_a", "clinic_1 "],
      ["org_a", ""],
      ["org_a", "%"],
      ["org_a", "' or true --"],
      ["org_c", "clinic_1"]
    ] as const)("finds no clinic of %s that is '%s', whether or not another organization has it", ([owner, clinic]) =>
      Effect.gen(function* () {
        assert.isUndefined(yield* find(owner, clinic))
      })
    )
  })
}

layer<ClinicAccounts | RecordDatabase, unknown>(layerPostgres, { excludeTestServices: true })(
  "ClinicAccounts.layer, when the table cannot be read,",
  (it) => {
    it.effect("says that the record store cannot be reached", () =>
      Effect.gen(function* () {
        const sql = yield* RecordDatabase
        yield* sql`alter table clinics rename to elsewhere`
        assert.deepStrictEqual(yield* Effect.flip(find("org_a", "clinic_1")), new RecordStoreDown())
      })
    )
  }
)
