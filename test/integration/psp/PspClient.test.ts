/**
 * The rules of every processor client: the fake in memory, and Stripe's own client over a socket to a double of Stripe; and
 * the account of a clinic, in the table of clinics and in the fake.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Option, Redacted } from "effect"
import type { PspKind } from "../../../src/api/Psp.ts"
import { PspClient } from "../../../src/psp/PspClient.ts"
import type { PageRequest } from "../../../src/psp/PspPage.ts"
import { CurrentOrganization } from "../../../src/api/CurrentOrganization.ts"
import { RecordStoreDown } from "../../../src/api/Errors.ts"
import { RecordDatabase } from "../../../src/database/Database.ts"
import { ClinicAccounts } from "../../../src/psp/ClinicAccounts.ts"
import { compact } from "../../support/inProcess.ts"
import { StripeDouble } from "../../support/StripeDouble.ts"
import { kinds } from "../../support/stripe/rules.ts"
import { accounts, empty, harbor, oak, platform, secretKey, thousand } from "../../support/stripe/accounts.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const layerStripe = Layer.unwrap(
  Effect.map(StripeDouble, ({ url }) =>
    PspClient.layerStripe({ secretKey: Redacted.make(secretKey), apiUrl: Option.some(url) })
  )
).pipe(Layer.provide(StripeDouble.layer({ key: secretKey, accounts, platform })))

const list = (kind: PspKind, account: string, page: PageRequest) =>
  Effect.flatMap(PspClient, (client) => client.list(kind, account, page))

const idOf = (object: unknown) =>
  typeof object === "object" && object !== null && "id" in object ? String(object.id) : undefined

const idsOf = (data: ReadonlyArray<unknown>) => data.map(idOf)

/** The ids of all pages, each starting after the last object of the one before. */
const walk = Effect.fnUntraced(function* (kind: PspKind, account: string, page: PageRequest) {
  const ids: Array<string | undefined> = []
  let hasMore = true
  while (hasMore) {
    const startingAfter = ids.at(-1)
    const found = yield* list(kind, account, { ...page, startingAfter })
    assert.isAtMost(found.data.length, page.limit)
    // A page that says there are more is full.
    if (found.hasMore) assert.strictEqual(found.data.length, page.limit)
    ids.push(...idsOf(found.data))
    hasMore = found.hasMore
  }
  return ids
})

const made = (kind: PspKind, account: string) => accounts[account]?.[kind] ?? []

const suites = [
  ["PspClient.layerMemory", PspClient.layerMemory(accounts)],
  ["PspClient.layerStripe", layerStripe]
] as const

for (const [name, client] of suites) {
  layer(client, { excludeTestServices: true })(name, (it) => {
    // Each second has eight of them.
    it.effect.each([7, 8, 100])("walks through a thousand objects in pages of %d, each once, in order", (limit) =>
      Effect.gen(function* () {
        const { ids, ...bounds } = thousand
        assert.strictEqual(ids.length, 1000)
        assert.deepStrictEqual(yield* walk("balance-transactions", oak, { limit, ...bounds }), ids)
      })
    )

    it.effect.each(kinds)("shows each account its own %s alone, as they are, also when all are read at once", (kind) =>
      Effect.gen(function* () {
        const owners = [oak, harbor, empty, platform, oak, harbor]
        const pages = yield* Effect.forEach(owners, (account) => list(kind, account, { limit: 100 }), {
          concurrency: "unbounded"
        })
        const expected = owners.map((account) => made(kind, account).slice(-100).toReversed())
        // Unknown fields, odd names and values, and their order are passed on.
        assert.strictEqual(yield* compact(pages.map(({ data }) => data)), yield* compact(expected))
      })
    )

    it.effect("takes each bound of time to be inclusive, also alone", () =>
      Effect.gen(function* () {
        const { createdGte, createdLte, ids } = thousand
        const until = yield* list("balance-transactions", oak, { limit: 1, createdLte })
        assert.deepStrictEqual(idsOf(until.data), ids.slice(0, 1))
        const since = yield* walk("balance-transactions", oak, { limit: 100, createdGte })
        assert.strictEqual(since.at(-1), ids.at(-1))
      })
    )

    it.effect("finds the object to start after among all of the account, whatever the bounds", () =>
      Effect.gen(function* () {
        const { ids, ...bounds } = thousand
        const newer = made("balance-transactions", oak).at(-1)?.id
        const older = made("balance-transactions", oak)[0]?.id
        const page = { limit: 2, ...bounds }
        const afterNewer = yield* list("balance-transactions", oak, { ...page, startingAfter: newer })
        assert.deepStrictEqual([idsOf(afterNewer.data), afterNewer.hasMore], [ids.slice(0, 2), true])
        const afterOlder = yield* list("balance-transactions", oak, { ...page, startingAfter: older })
        assert.deepStrictEqual(afterOlder, { data: [], hasMore: false })
      })
    )

    it.effect("says that there is no more when the page holds the last object and is full, or is empty", () =>
      Effect.gen(function* () {
        assert.isFalse((yield* list("charges", oak, { limit: 20 })).hasMore)
        assert.isTrue((yield* list("charges", oak, { limit: 19 })).hasMore)
        const nothing = { data: [], hasMore: false }
        assert.deepStrictEqual(yield* list("charges", empty, { limit: 10 }), nothing)
        assert.deepStrictEqual(yield* list("charges", oak, { limit: 10, createdGte: Number.MAX_SAFE_INTEGER }), nothing)
        const last = made("charges", oak)[0]?.id
        assert.deepStrictEqual(yield* list("charges", oak, { limit: 10, startingAfter: last }), nothing)
      })
    )

    it.effect.each([
      ["of another account", made("charges", harbor)[0]?.id],
      ["of another kind", made("refunds", oak)[0]?.id],
      ["empty", ""],
      ["of odd characters", "ch_\u{1F436}&limit=1#%00\r\n"],
      ["longer than any address can be", "c".repeat(100_000)]
    ])("knows no object to start after that is %s", ([, startingAfter]) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(list("charges", oak, { limit: 10, startingAfter }))
        assert.strictEqual(error._tag, "CursorUnknown")
      })
    )

    it.effect.each(["acct_unknown", "__proto__"])("knows no account %s", (account) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(list("charges", account, { limit: 10 }))
        assert.strictEqual(error._tag, "AccountDisconnected")
      })
    )
  })
}

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
  Effect.flatMap(ClinicAccounts, (found) => found.find(clinic)).pipe(
    Effect.provideService(CurrentOrganization, CurrentOrganization.known(organization))
  )

for (const [name, store] of [
  ["ClinicAccounts.layerMemory", ClinicAccounts.layerMemory(clinics)],
  ["ClinicAccounts.layer", layerPostgres]
] as const) {
  layer<ClinicAccounts, unknown>(store, { excludeTestServices: true })(name, (it) => {
    it.effect("finds the account of an organization's clinic, by its exact id", () =>
      Effect.gen(function* () {
        for (const { account, clinic, organization } of clinics) {
          assert.strictEqual(yield* find(organization, clinic), account)
        }
        for (const clinic of ["clinic_3", "CLINIC_1", "clinic_1 "]) assert.isUndefined(yield* find("org_a", clinic))
      })
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
