/**
 * Rules of searching that generated records seldom show (`Repository.test.ts`), in both stores: records written for the
 * rule, requests, and the ids they find.
 */
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Formatter, Struct } from "effect"
import * as DemoData from "../../../src/app/demo/DemoData.ts"
import { charges } from "../../../src/api/records/Charges.ts"
import { petBenefits, pets } from "../../../src/api/records/Pets.ts"
import { products } from "../../../src/api/records/Organizations.ts"
import type { Stored } from "../../../src/api/records/Resource.ts"
import * as OrganizationReads from "../../../src/database/OrganizationReads.ts"
import * as Records from "../../../src/records/Repository.ts"
import { toText } from "../../../src/database/Columns.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"
import { asKnown, type Dataset, dataset, storesOf } from "./stores.ts"

const demo = DemoData.recordsOf(DemoData.organizations[0])
const charge: Stored<typeof charges> = demo.charges[0]
const pet: Stored<typeof pets> = demo.pets[0]
const product: Stored<typeof products> = demo.products[0]
const benefit: Stored<typeof petBenefits> = demo["pet-benefits"][0]

/** Records that differ in what is given; without an id they are called 1, 2, 3. */
const many = <A extends { readonly id: string }>(record: A, ...given: ReadonlyArray<Partial<A>>) =>
  given.map((fields, index): A => ({ ...record, id: String(index + 1), ...fields }))

const noon = DateTime.makeUnsafe("2026-01-31T12:00:00.000Z")
const afterNoon = DateTime.makeUnsafe("2026-01-31T12:00:00.001Z")
const evening = DateTime.makeUnsafe("2026-01-31T18:00:00.000Z")

const codes = ["EXAM", "exam", "EXAM ", "É", "E\u0301", "%", ""]

const zeros = "0".repeat(100_000)

/** Columns of numbers hold up to 15 significant digits. */
const few = [100001, 100001, 100001.5, -7, 0, 1e20, null]
const numbers = few.concat(0.000123456789012345, -0.0000000000123456789012345, 1e-7, 1e-30, 999999999999999e6)

/** Texts by the ids of the numbers that they stand for. */
const numberTexts: Readonly<Record<string, ReadonlyArray<string>>> = {
  "1 2": [
    ..."100001 0100001 100001.0 +100001 1.00001e5 1.00001E+5 10000100e-02".split(" "),
    `${zeros}100001.${zeros}`,
    `0.${zeros}100001e${zeros.length + 6}`
  ],
  "3": ["100001.5", "100001.50"],
  "4": ["-7", "-007.0", "-0.0007e4"],
  "5": ["0", "-0", "+0.00", "0e999"],
  "6": ["100000000000000000000", "1e20"],
  "8": ["0.0001234567890123450"],
  "9": ["-0.0000000000123456789012345", "-1.23456789012345e-11"],
  "10": ["1e-7", "0.0000001"],
  "11": [`0.${"0".repeat(29)}1`],
  "12": ["999999999999999000000"],
  "": [
    ..."-100001 7 +1 1e5 1e e5 1e5.0 1e5e0 1.e5 1e21 1e-31 1e400 1e-400 100001. .5 1_00001 100,001 --7 0x186a1".split(
      " "
    ),
    ..."١ NaN Infinity null abc 0.0001234567890123451".split(" "),
    "",
    "100001 ",
    "100001\n",
    "9".repeat(100_000),
    `1e-${"9".repeat(400)}`
  ]
}

/** Rules, records, and requests with the ids that each finds, separated by spaces. */
const rules: ReadonlyArray<{
  rule: string
  given: Dataset
  finds: ReadonlyArray<readonly [Records.FilterValues, ids: string]>
}> = [
  {
    rule: "records of one time are ordered by the bytes of their ids, not by language, case or UTF-16",
    given: dataset(pets, many(pet, ...["😀", "a", "～", "é", "B", "Z1", "b", "Z", "a b", "e"].map((id) => ({ id })))),
    finds: [[{}, "B Z Z1 a a b b e é ～ 😀"]]
  },
  {
    rule: "text is matched exactly: case, accents, blanks and wildcards count",
    given: dataset(products, many(product, ...codes.map((product_code) => ({ product_code })))),
    finds: [
      ...codes.map((product_code, index) => [{ product_code }, String(index + 1)] as const),
      [{ product_code: "EXA" }, ""],
      [{ product_code: null }, "1 2 3 4 5 6 7"]
    ]
  },
  {
    rule: "clinic of a charge is its home_clinic or its servicing_clinic: a charge with both is found once",
    given: dataset(
      charges,
      many(
        charge,
        { home_clinic: "x", servicing_clinic: "x" },
        { home_clinic: "x", servicing_clinic: "y" },
        { home_clinic: null, servicing_clinic: "x" }
      )
    ),
    finds: [
      [{ clinic: "x" }, "1 2 3"],
      [{ clinic: "y", created_at_since: "2000-01-01" }, "2"]
    ]
  },
  {
    rule: "invoice_pims_id of a charge matches the number that the text stands for; text that is no number matches nothing",
    given: dataset(charges, many(charge, ...numbers.map((invoice_pims_id) => ({ invoice_pims_id })))),
    finds: Object.entries(numberTexts).flatMap(([ids, texts]) =>
      texts.map((invoice_pims_id) => [{ invoice_pims_id }, ids] as const)
    )
  },
  {
    rule: "since is inclusive and before is exclusive, so that windows tile time without overlap",
    given: dataset(
      petBenefits,
      many(
        benefit,
        { created_at: noon, updated_at: noon },
        { created_at: noon, updated_at: afterNoon },
        { created_at: evening, updated_at: evening }
      )
    ),
    finds: [
      [{ updated_at_since: "2026-01-31T12:00:00Z" }, "1 2 3"],
      [{ updated_at_since: "2026-01-31T12:00:00.000001Z" }, "2 3"],
      [{ updated_at_since: "2026-01-31T12:00:00.0000000001Z" }, "2 3"],
      [{ updated_at_since: "2026-01-31T12:00:00.001Z" }, "2 3"],
      [{ updated_before: "2026-01-31T12:00:00.001Z" }, "1"],
      [{ updated_before: "2026-01-31T12:00:00.0010001Z" }, "1 2"],
      [{ updated_before: "2026-01-31T12:00:00Z" }, ""],
      [{ created_at_since: "2026-01-31 13:00+01:00", created_before: "2026-01-31T18:00:00" }, "1 2"],
      [{ created_at_since: "2026-01-31T18:00:00Z" }, "3"],
      [{ created_before: "2026-02-01" }, "1 2 3"],
      [{ created_at_since: "0001-01-01T00:00:00+23:59", created_before: "9999-12-31T23:59:59-23:59" }, "1 2 3"]
    ]
  },
  {
    rule: "a benefit is not removed by default",
    given: dataset(petBenefits, [Struct.omit(benefit, ["removed"])]),
    finds: [[{}, benefit.id]]
  }
]

const idsOf = (page: string): ReadonlyArray<string> =>
  JSON.parse(page).body.map((record: { readonly id: string }) => record.id)

layer(TestDatabase.layerDatabases, { excludeTestServices: true })((it) => {
  for (const { rule, given, finds } of rules) {
    it.effect(rule, () =>
      Effect.gen(function* () {
        const { memory, postgres } = yield* storesOf(given)
        for (const [store, repository] of Object.entries({ memory, postgres })) {
          for (const [request, ids] of finds) {
            const found = yield* repository.search(request, { limit: 1000, offset: 0 })
            const search = `in ${store}: ${Formatter.format(request).slice(0, 100)}`
            assert.strictEqual(idsOf(toText(found)).join(" "), ids, search)
          }
        }
      }).pipe(asKnown("org_oakridge"))
    )
  }

  it.effect("a deep page has the order of all pages, also where Postgres joins its records by a hash", () =>
    Effect.gen(function* () {
      const ids = Array.from({ length: 300 }, (_, index) => ({ id: String((index * 7) % 300) }))
      const { memory } = yield* storesOf(dataset(products, many(product, ...ids)))
      const { url } = yield* TestDatabase
      const sql = yield* clientOf(url, { settings: { enable_nestloop: "off", enable_mergejoin: "off" } })
      const page = { limit: 100, offset: 100 }
      const found = yield* Records.make(OrganizationReads.make(sql), products, 1).search({}, page)
      assert.strictEqual(toText(found), toText(yield* memory.search({}, page)))
    }).pipe(asKnown("org_oakridge"))
  )
})
