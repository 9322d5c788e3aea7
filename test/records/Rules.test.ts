/**
 * The rules of searching, one by one, each held by both stores: records written for the rule, requests, and the ids
 * that they find, in order. Contract: section 4.1.
 */
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Formatter, Schema, Struct } from "effect"
import { organizations, recordsOf } from "../../src/demo/DemoData.ts"
import { CurrentOrganization } from "../../src/api/CurrentOrganization.ts"
import { Charges } from "../../src/api/records/Charges.ts"
import { ConsumptionLogs } from "../../src/api/records/ConsumptionLogs.ts"
import { InvoiceLines } from "../../src/api/records/InvoiceLines.ts"
import { Invoices } from "../../src/api/records/Invoices.ts"
import { Organizations } from "../../src/api/records/Organizations.ts"
import { PetBenefits } from "../../src/api/records/PetBenefits.ts"
import { Pets } from "../../src/api/records/Pets.ts"
import { Products } from "../../src/api/records/Products.ts"
import type { Criteria } from "../../src/records/Repository.ts"
import { TestDatabase } from "../support/TestDatabase.ts"
import { type RecordOf, type Sample, sampleOf } from "./kinds.ts"

const demo = recordsOf(organizations[0])
const charge: RecordOf<typeof Charges> = demo.charges[0]
const invoice: RecordOf<typeof Invoices> = demo.invoices[0]
const line: RecordOf<typeof InvoiceLines> = demo.invoiceLines[0]
const log: RecordOf<typeof ConsumptionLogs> = demo.consumptionLogs[0]
const pet: RecordOf<typeof Pets> = demo.pets[0]
const product: RecordOf<typeof Products> = demo.products[0]
const benefit: RecordOf<typeof PetBenefits> = demo.petBenefits[0]

interface Rule {
  readonly rule: string
  readonly sample: Sample
  /** Requests, and the ids that each finds, separated by spaces. */
  readonly finds: ReadonlyArray<readonly [request: Criteria, ids: string]>
}

/** Records that differ in what is given; without an id they are called 1, 2, 3. */
const many = <A extends { readonly id: string }>(record: A, ...given: ReadonlyArray<Partial<A>>) =>
  Effect.succeed(given.map((fields, index): A => ({ ...record, id: String(index + 1), ...fields })))

const noon = DateTime.makeUnsafe("2026-01-31T12:00:00.000Z")
const afterNoon = DateTime.makeUnsafe("2026-01-31T12:00:00.001Z")
const evening = DateTime.makeUnsafe("2026-01-31T18:00:00.000Z")

const clinics = [
  { home_clinic: "x", servicing_clinic: "x" },
  { home_clinic: "x", servicing_clinic: "y" },
  { home_clinic: "y", servicing_clinic: "x" },
  { home_clinic: null, servicing_clinic: "x" },
  { home_clinic: "x", servicing_clinic: null },
  { home_clinic: null, servicing_clinic: null }
]

const deleted = [{ is_deleted: true }, { is_deleted: false }]

const zeros = "0".repeat(100_000)

const spelled: ReadonlyArray<readonly [string, string]> = [
  ["100001", "1 2"],
  ["0100001", "1 2"],
  ["100001.0", "1 2"],
  ["100001.000000000000", "1 2"],
  ["+100001", "1 2"],
  ["-100001", ""],
  ["100001.5", "3"],
  ["100001.50", "3"],
  ["-7", "4"],
  ["-007.0", "4"],
  ["7", ""],
  ["0", "5"],
  ["-0", "5"],
  ["+0.00", "5"],
  ["100000000000000000000", "6"],
  ["+1", ""],
  ["1.00001e5", "1 2"],
  ["1.00001E+5", "1 2"],
  ["10000100e-02", "1 2"],
  ["-0.0007e4", "4"],
  ["0e999", "5"],
  ["1e20", "6"],
  [`1${zeros}e-${zeros.length}`, ""],
  [`100001${zeros}e-${zeros.length}`, "1 2"],
  [`${zeros}100001.${zeros}`, "1 2"],
  [`0.${zeros}100001e${zeros.length + 6}`, "1 2"],
  ["1e5", ""],
  ["1e", ""],
  ["e5", ""],
  ["1e5.0", ""],
  ["1e5e0", ""],
  ["1.e5", ""],
  ["1e21", ""],
  ["1e-31", ""],
  ["1e400", ""],
  ["1e-400", ""],
  [`1e${"9".repeat(400)}`, ""],
  [`1e-${"9".repeat(400)}`, ""],
  ["100001.", ""],
  [".5", ""],
  ["100001 ", ""],
  [" 100001", ""],
  ["100001\n", ""],
  ["1_00001", ""],
  ["100,001", ""],
  ["--7", ""],
  ["0x186a1", ""],
  ["١", ""],
  ["NaN", ""],
  ["Infinity", ""],
  ["null", ""],
  ["abc", ""],
  ["", ""],
  ["100001.00000000000000000000000000000000000001", ""],
  ["99999999999999999999999999999999999999999999", ""],
  ["9".repeat(100_000), ""]
]

const rules: ReadonlyArray<Rule> = [
  {
    rule: "records of one time are ordered by the bytes of their ids, not by language, case or UTF-16",
    sample: sampleOf(Pets, many(pet, ...["😀", "a", "～", "é", "B", "Z1", "b", "Z", "a b", "e"].map((id) => ({ id })))),
    finds: [[{}, "B Z Z1 a a b b e é ～ 😀"]]
  },
  {
    rule: "the time of the last change comes before the id",
    sample: sampleOf(Pets, many(pet, { updated_at: evening }, { updated_at: afterNoon }, { updated_at: noon })),
    finds: [[{}, "3 2 1"]]
  },
  {
    rule: "products are ordered by modified_at, whatever their created_at",
    sample: sampleOf(
      Products,
      many(product, { modified_at: evening, created_at: noon }, { modified_at: noon, created_at: evening })
    ),
    finds: [[{}, "2 1"]]
  },
  {
    rule: "text is matched exactly: case, accents, blanks and wildcards count",
    sample: sampleOf(
      Products,
      many(product, ...["EXAM", "exam", "EXAM ", "É", "E\u0301", "%", ""].map((product_code) => ({ product_code })))
    ),
    finds: [
      [{ product_code: "EXAM" }, "1"],
      [{ product_code: "exam" }, "2"],
      [{ product_code: "EXAM " }, "3"],
      [{ product_code: "É" }, "4"],
      [{ product_code: "E\u0301" }, "5"],
      [{ product_code: "%" }, "6"],
      [{ product_code: "" }, "7"],
      [{ product_code: "EXA" }, ""],
      [{ product_code: null }, "1 2 3 4 5 6 7"]
    ]
  },
  ...[sampleOf(Charges, many(charge, ...clinics)), sampleOf(Invoices, many(invoice, ...clinics))].map(
    (sample, index): Rule => ({
      rule: `the clinic of ${index === 0 ? "a charge" : "an invoice"} is its home or its servicing clinic, found once`,
      sample,
      finds: [
        [{ clinic: "x" }, "1 2 3 4 5"],
        [{ clinic: "y" }, "2 3"],
        [{ clinic: "" }, ""],
        [{ clinic: "x", created_at_since: "2000-01-01", id: "2" }, "2"],
        [{ clinic: "y", created_at_since: "2000-01-01" }, "2 3"]
      ]
    })
  ),
  {
    rule: "the pet of a charge is matched although no one is shown it",
    sample: sampleOf(Charges, many(charge, { pet: "p" }, { pet: "q" })),
    finds: [[{ pet: "p" }, "1"]]
  },
  {
    rule: "invoice_pims_id of a charge matches the number that the text spells; text that spells none matches nothing",
    sample: sampleOf(
      Charges,
      many(charge, ...[100001, 100001, 100001.5, -7, 0, 1e20].map((invoice_pims_id) => ({ invoice_pims_id })))
    ),
    finds: spelled.map(([invoice_pims_id, ids]) => [{ invoice_pims_id }, ids])
  },
  {
    rule: "zeros after the point are not among the 15 digits that a number has",
    sample: sampleOf(
      Charges,
      many(charge, { invoice_pims_id: 0.000123456789012345 }, { invoice_pims_id: -0.0000000000123456789012345 })
    ),
    finds: [
      [{ invoice_pims_id: "0.000123456789012345" }, "1"],
      [{ invoice_pims_id: "0.0001234567890123450" }, "1"],
      [{ invoice_pims_id: "0.0001234567890123451" }, ""],
      [{ invoice_pims_id: "-0.0000000000123456789012345" }, "2"],
      [{ invoice_pims_id: "-1.23456789012345e-11" }, "2"]
    ]
  },
  {
    rule: "a number that JSON writes with an exponent is spelled so, and by its decimals",
    sample: sampleOf(
      Charges,
      many(charge, ...[1e-7, -2.5e-10, 1e-30, 999999999999999e6].map((invoice_pims_id) => ({ invoice_pims_id })))
    ),
    finds: [
      [{ invoice_pims_id: "1e-7" }, "1"],
      [{ invoice_pims_id: "0.0000001" }, "1"],
      [{ invoice_pims_id: "-2.5e-10" }, "2"],
      [{ invoice_pims_id: "-0.00000000025" }, "2"],
      [{ invoice_pims_id: `0.${"0".repeat(29)}1` }, "3"],
      [{ invoice_pims_id: "999999999999999000000" }, "4"]
    ]
  },
  {
    rule: "a number that is not there is spelled by nothing",
    sample: sampleOf(Charges, many(charge, { invoice_pims_id: null })),
    finds: ["0", "", "null", "NaN"].map((invoice_pims_id) => [{ invoice_pims_id }, ""])
  },
  {
    rule: "since is inclusive and before is exclusive, so that windows tile time without overlap",
    sample: sampleOf(
      PetBenefits,
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
    rule: "a record that was changed before it was created is found by both times",
    sample: sampleOf(
      Pets,
      many(pet, { created_at: evening, updated_at: noon }, { created_at: noon, updated_at: evening })
    ),
    finds: [
      [{ created_at_since: "2026-01-31T12:00:00Z" }, "1 2"],
      [{ created_at_since: "2026-01-31T12:00:01Z" }, "1"],
      [{ updated_at_since: "2026-01-31T12:00:01Z" }, "2"],
      [{ created_at_since: "2026-01-31T12:00:01Z", updated_at_since: "2026-01-31T12:00:01Z" }, ""]
    ]
  },
  {
    rule: "modified_since and updated_at_since of consumption logs filter the same time: the later one decides",
    sample: sampleOf(ConsumptionLogs, many(log, { updated_at: noon }, { updated_at: evening })),
    finds: [
      [{ modified_since: "2026-01-31T12:00:00Z", updated_at_since: "2026-01-31T13:00:00Z" }, "2"],
      [{ modified_since: "2026-01-31T13:00:00Z", updated_at_since: "2026-01-31T12:00:00Z" }, "2"],
      [{ modified_since: "2026-01-31T12:00:00Z", updated_at_since: null }, "1 2"]
    ]
  },
  {
    rule: "invoice_line and invoice_line_id of consumption logs filter the same field: both must hold",
    sample: sampleOf(ConsumptionLogs, many(log, { invoice_line: "x" }, { invoice_line: "y" })),
    finds: [
      [{ invoice_line_id: "x" }, "1"],
      [{ invoice_line: "x", invoice_line_id: "x" }, "1"],
      [{ invoice_line: "x", invoice_line_id: "y" }, ""]
    ]
  },
  ...Object.entries({
    "deleted consumption logs": sampleOf(ConsumptionLogs, many(log, ...deleted)),
    "deleted invoices": sampleOf(Invoices, many(invoice, ...deleted)),
    "deleted invoice lines": sampleOf(InvoiceLines, many(line, ...deleted)),
    "removed pet benefits": sampleOf(PetBenefits, many(benefit, { removed: true }, { removed: false }))
  }).map(([records, sample]): Rule => ({
    rule: `${records} are left out unless include_deleted asks for them`,
    sample,
    finds: [
      [{}, "2"],
      [{ include_deleted: false }, "2"],
      [{ include_deleted: null }, "2"],
      [{ include_deleted: true }, "1 2"],
      [{ id: "1" }, ""],
      [{ id: "1", include_deleted: true }, "1"]
    ]
  })),
  {
    rule: "a benefit of which nothing says that it was removed was not removed",
    sample: sampleOf(
      PetBenefits,
      Effect.succeed([
        { ...Struct.omit(benefit, ["removed"]), id: "1" },
        { ...benefit, id: "2", removed: true }
      ])
    ),
    finds: [
      [{}, "1"],
      [{ include_deleted: true }, "1 2"]
    ]
  },
  {
    rule: "an organization finds its own record alone",
    sample: sampleOf(
      Organizations,
      Effect.succeed(organizations.flatMap((organization) => recordsOf(organization).organizations))
    ),
    finds: [[{}, "org_oakridge"]]
  }
]

const readIds = Schema.decodeEffect(
  Schema.fromJsonString(Schema.Struct({ body: Schema.Array(Schema.Struct({ id: Schema.String })) }))
)

const repositories = {
  memory: ({ memory }: Sample) => memory,
  Postgres: (sample: Sample) =>
    Effect.andThen(
      Effect.flatMap(TestDatabase, ({ sql }) => sample.load(sql)),
      sample.postgres
    )
}

layer(TestDatabase.layerDatabases, { excludeTestServices: true })((it) => {
  for (const [store, repositoryOf] of Object.entries(repositories)) {
    for (const { rule, sample, finds } of rules) {
      it.effect(`in ${store}: ${rule}`, () =>
        Effect.gen(function* () {
          const repository = yield* repositoryOf(sample)
          for (const [request, ids] of finds) {
            const found = yield* repository.search(request, { limit: 1000, offset: 0 })
            const { body } = yield* readIds(found)
            assert.strictEqual(body.map(({ id }) => id).join(" "), ids, Formatter.format(request).slice(0, 100))
          }
        }).pipe(Effect.provideService(CurrentOrganization, CurrentOrganization.known("org_oakridge")))
      )
    }
  }
})
