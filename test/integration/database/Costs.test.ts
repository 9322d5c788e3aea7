/**
 * What searches cost. One reads little of a table, whichever filter it has and however many records the organization has,
 * and a simple one is planned once.
 */
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Formatter, Layer } from "effect"
import { charges } from "../../../src/api/records/Charges.ts"
import { consumptionLogs } from "../../../src/api/records/Invoices.ts"
import { resources as all, searchable } from "../../../src/api/records/index.ts"
import type { Resource } from "../../../src/api/records/Resource.ts"
import type { Page } from "../../../src/api/records/Requests.ts"
import { inOrder } from "../../../src/database/Database.ts"
import * as OrganizationReads from "../../../src/database/OrganizationReads.ts"
import * as Records from "../../../src/records/Repository.ts"
import { searchQuery } from "../../../src/records/SearchQuery.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"
import { tagsOf } from "../../support/tries.ts"
import { filters, meaningOf } from "../records/expected.ts"
import { asKnown } from "../records/stores.ts"
import { blocksOf, explain, fill, nodesOf, organization, rowsOf } from "./plans.ts"

/** What a page of a search reads: rows of the table, blocks of it and its indexes, and by which kinds of scan. */
const costOf = Effect.fnUntraced(function* (
  resource: Resource,
  criteria: Records.FilterValues,
  owner = organization,
  page: Page = { limit: 100, offset: 0 }
) {
  const query = searchQuery(resource, criteria, page)
  const plan = yield* explain(query.text, [owner, ...query.values], query.isPlannedOnce)
  const scans = nodesOf(plan).filter((node) => node["Relation Name"] === resource.table)
  return { rows: rowsOf(scans), blocks: blocksOf(scans), scans: scans.map((node) => node["Node Type"]) }
})

// The first statement of a session reads up to 15 blocks of the catalogs as well.
const nothing = { rows: 0, blocks: 20 }
// Few records are found by an index of one column, once for each way in which a search can find them.
const few = { rows: 25, blocks: 40 }
const page = { rows: 110, blocks: 150 }

type Check = readonly [criteria: Records.FilterValues, found: typeof page, owner?: string]

/** The first page reads about the rows that it shows, and never looks for them through the table. */
const checkCost = Effect.fnUntraced(function* (resource: Resource, [criteria, found, owner]: Check) {
  const cost = yield* costOf(resource, criteria, owner)
  const message = `${resource.name} ${Formatter.format(criteria)} costs ${Formatter.format(cost)}`
  assert.isAtMost(cost.rows, found.rows, message)
  assert.isAtMost(cost.blocks, found.blocks, message)
  assert.notInclude(cost.scans, "Seq Scan", message)
})

const rows = 1000

/** The time of the record with a number. */
const timeOf = (n: number) => DateTime.formatIso(DateTime.makeUnsafe(Date.UTC(2026, 0, 1) + n * 1000))

const [early, late] = ["2020-01-01", "2030-01-01"]
const middle = [timeOf(rows * 0.45), page] as const

/** Values of a filter by its sign, and how much the first page of each may read. */
const questions: Readonly<Record<string, ReadonlyArray<readonly [string | boolean, typeof page]>>> = {
  "#": [
    ["987654321", nothing],
    ["no number", nothing],
    ["77", few]
  ],
  ">=": [[late, nothing], [timeOf(rows - 10), few], middle, [early, page]],
  "<": [[early, nothing], [timeOf(10), few], middle, [late, page]],
  "-": [
    [true, page],
    [false, page]
  ]
}

const checksOf = (resource: Resource) =>
  Object.keys(filters[resource.name] ?? {}).flatMap((filter) => {
    const own = filter === "id" ? "id_77" : `${filter}_77`
    const asked =
      questions[meaningOf(resource.name, filter).sign] ??
      ([
        ["nowhere", nothing],
        [own, few]
      ] as const)
    return asked.map(([value, found]): Check => [{ [filter]: value }, found])
  })

const resources: ReadonlyArray<Resource> = all
const only = (...names: ReadonlyArray<string>) => resources.filter(({ name }) => names.includes(name))

const texts = Object.keys(filters[charges.name] ?? {}).filter(
  (filter) => filter !== "id" && meaningOf(charges.name, filter).sign === "="
)
const frequent = "case when n % 2 = 0 then 'frequent' else 'value_' || n / 6 end"

/** Tables whose values are unevenly distributed: the SQL of their columns, and what is looked for. */
const skewed: ReadonlyArray<readonly [Resource, where: string, given: Readonly<Record<string, string>>, ...Check[]]> = [
  [
    charges,
    "for a large organization where others are small",
    { organization_id: "case when n % 2 = 0 then 'org_large' else 'org_' || n end" },
    [{}, page],
    [{}, { rows: 1, blocks: 10 }, "org_77"]
  ],
  [
    charges,
    "for a frequent value where all others are rare",
    Object.fromEntries(
      texts.flatMap((filter) => meaningOf(charges.name, filter).columns.map((column) => [column, frequent]))
    ),
    ...texts.flatMap((filter): Check[] => [
      [{ [filter]: "frequent" }, page],
      [{ [filter]: "value_77" }, few]
    ])
  ],
  ...only("charges", "invoices").map(
    (resource) =>
      [
        resource,
        "for a clinic whose clients are its own",
        { home_clinic: "'clinic_' || n % 2", servicing_clinic: "'clinic_' || n % 2" },
        [{ clinic: "clinic_1" }, page]
      ] as const
  ),
  ...only("pet-benefits", "consumption-logs", "invoices", "invoice-lines").map(
    (resource) =>
      [
        resource,
        "where nearly all records are deleted",
        { [meaningOf(resource.name, "include_deleted").columns[0] ?? ""]: "n % 1000 <> 0" },
        [{}, few],
        [{ updated_at_since: "2026-01-01" }, few],
        [{ created_at_since: "2026-01-01" }, few]
      ] as const
  )
]

layer(TestDatabase.layerDatabases, { excludeTestServices: true })((it) => {
  for (const resource of searchable)
    it.effect(
      `${resource.name}: a search reads little more than it finds, by any filter and by none`,
      () =>
        Effect.gen(function* () {
          yield* fill(resource, rows)
          const checks: ReadonlyArray<Check> = [[{}, page], [{}, nothing, "org_without_records"], ...checksOf(resource)]
          yield* Effect.forEach(checks, (check) => checkCost(resource, check), { concurrency: 4 })
        }),
      { tags: tagsOf(resource.name) }
    )

  it.effect("a deep page skips in the index, and reads the rows that it shows", () =>
    Effect.gen(function* () {
      // In a small table, it is found as fast in other ways.
      yield* fill(charges, 6000)
      const cost = yield* costOf(charges, {}, undefined, { limit: 100, offset: 4500 })
      assert.isAtMost(cost.rows, 4800)
      assert.isAtMost(cost.blocks, 360)
      assert.include(cost.scans, "Index Only Scan")
      assert.notInclude(cost.scans, "Seq Scan")
    })
  )

  it.effect.each(skewed)("$name: the first page is short $1", ([resource, , given, ...checks]) =>
    Effect.gen(function* () {
      yield* fill(resource, rows, given)
      for (const check of checks) yield* checkCost(resource, check)
    })
  )
})

const filled = Layer.provideMerge(Layer.effectDiscard(fill(consumptionLogs, rows)), TestDatabase.layer)

layer(filled, { excludeTestServices: true })((it) => {
  it.effect.each([
    ["a page", {}],
    ["a poll that finds nothing new", { updated_at_since: late }],
    ["a filter that matches much", { home_clinic: "home_clinic_7" }]
  ] as const)("a simple search is planned for no values in particular: %s", ([, criteria]) =>
    Effect.gen(function* () {
      const sql = yield* clientOf((yield* TestDatabase).url, { settings: inOrder })
      const { search } = Records.make(OrganizationReads.make(sql), consumptionLogs)
      for (let times = 0; times < 12; times++) yield* asKnown(organization)(search(criteria, { limit: 100, offset: 0 }))
      const plans = yield* sql`
        select custom_plans::int as made, generic_plans > 0 as "isReused" from pg_prepared_statements
        where statement like '%from consumption' || '_logs%'`.unprepared
      assert.deepStrictEqual(plans, [{ made: 5, isReused: true }])
    })
  )
})
