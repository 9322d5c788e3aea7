/**
 * What searches cost. One reads little of a table, whichever filter it has and however many records the organization has,
 * and a simple one is planned once.
 */
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Formatter } from "effect"
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
import { fill, organization } from "./filled.ts"
import { blocksOf, explain, nodesOf, rowsOf } from "./plans.ts"

/**
 * What a page of a search reads: rows of the table, blocks of it and its indexes, and by which kinds of scan.
 */
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

/** The first page reads about the rows that it shows, and never looks for them through the table. */
const checkCost = Effect.fnUntraced(function* (
  resource: Resource,
  criteria: Records.FilterValues,
  found: { readonly rows: number; readonly blocks: number },
  owner?: string
) {
  const cost = yield* costOf(resource, criteria, owner)
  const message = `${resource.name} ${Formatter.format(criteria)} costs ${Formatter.format(cost)}`
  assert.isAtMost(cost.rows, found.rows, message)
  assert.isAtMost(cost.blocks, found.blocks, message)
  assert.notInclude(cost.scans, "Seq Scan", message)
})

// The first statement of a session reads up to 15 blocks of the catalogs as well.
const nothing = { rows: 0, blocks: 20 }
// Few records are found by an index of one column, once for each way in which a search can find them.
const few = { rows: 25, blocks: 40 }
const page = { rows: 110, blocks: 150 }

/** The time of the record with a number. */
const timeOf = (n: number) => DateTime.formatIso(DateTime.makeUnsafe(Date.UTC(2026, 0, 1) + n * 1000))

/** Values of a filter, and how much the first page of each may read. */
const questionsOf = (
  resource: string,
  filter: string,
  rows: number
): ReadonlyArray<readonly [string | boolean, typeof page]> => {
  switch (meaningOf(resource, filter).sign) {
    case "=":
      return [
        ["nowhere", nothing],
        [filter === "id" ? "id_77" : `${filter}_77`, few]
      ]
    case "#":
      return [
        ["987654321", nothing],
        ["no number", nothing],
        ["77", few]
      ]
    case ">=":
      return [
        ["2030-01-01", nothing],
        [timeOf(rows - 10), few],
        [timeOf(rows * 0.45), page],
        ["2020-01-01", page]
      ]
    case "<":
      return [
        ["2020-01-01", nothing],
        [timeOf(10), few],
        [timeOf(rows * 0.45), page],
        ["2030-01-01", page]
      ]
    default:
      return [
        [true, page],
        [false, page]
      ]
  }
}

const resources: ReadonlyArray<Resource> = all
const only = (...names: ReadonlyArray<string>) => resources.filter(({ name }) => names.includes(name))

interface Skewed {
  readonly resource: Resource
  readonly where: string
  readonly given: Readonly<Record<string, string>>
  readonly checks: ReadonlyArray<readonly [criteria: Records.FilterValues, found: typeof page, owner?: string]>
}

const texts = Object.keys(filters[charges.name] ?? {}).filter(
  (filter) => filter !== "id" && meaningOf(charges.name, filter).sign === "="
)
const frequent = "case when n % 2 = 0 then 'frequent' else 'value_' || n / 6 end"

/** Tables whose values are unevenly distributed. */
const skewed: ReadonlyArray<Skewed> = [
  {
    resource: charges,
    where: "for a large organization where others are small",
    given: { organization_id: "case when n % 2 = 0 then 'org_large' else 'org_' || n end" },
    checks: [
      [{}, page],
      [{}, { rows: 1, blocks: 10 }, "org_77"]
    ]
  },
  {
    resource: charges,
    where: "for a frequent value where all others are rare",
    given: Object.fromEntries(
      texts.flatMap((filter) => meaningOf(charges.name, filter).columns.map((column) => [column, frequent] as const))
    ),
    checks: texts.flatMap(
      (filter) =>
        [
          [{ [filter]: "frequent" }, page],
          [{ [filter]: "value_77" }, few]
        ] as const
    )
  },
  ...only("charges", "invoices").map((resource) => ({
    resource,
    where: "for a clinic whose clients are its own",
    given: { home_clinic: "'clinic_' || n % 2", servicing_clinic: "'clinic_' || n % 2" },
    checks: [[{ clinic: "clinic_1" }, page] as const]
  })),
  ...only("pet-benefits", "consumption-logs", "invoices", "invoice-lines").map((resource) => ({
    resource,
    where: "where nearly all records are deleted",
    given: { [meaningOf(resource.name, "include_deleted").columns[0] ?? ""]: "n % 1000 <> 0" },
    checks: [{}, { updated_at_since: "2026-01-01" }, { created_at_since: "2026-01-01" }].map(
      (criteria) => [criteria, few] as const
    )
  }))
]

layer(TestDatabase.layerDatabases, { excludeTestServices: true })((it) => {
  for (const resource of searchable)
    it.effect(
      `${resource.name}: a search reads little more than it finds, by any filter and by none`,
      () =>
        Effect.gen(function* () {
          const rows = 1000
          yield* fill(resource, rows)
          yield* checkCost(resource, {}, page)
          yield* checkCost(resource, {}, nothing, "org_without_records")
          const questions = Object.keys(filters[resource.name] ?? {}).flatMap((filter) =>
            questionsOf(resource.name, filter, rows).map(([value, found]) => [{ [filter]: value }, found] as const)
          )
          yield* Effect.forEach(questions, ([criteria, found]) => checkCost(resource, criteria, found), {
            concurrency: 4
          })
        }),
      { tags: tagsOf(resource.name) }
    )

  it.effect("a deep page skips in the index, and reads the rows that it shows", () =>
    Effect.gen(function* () {
      // In a small table, it is found as fast in other ways.
      const rows = 6000
      yield* fill(charges, rows)
      const cost = yield* costOf(charges, {}, undefined, { limit: 100, offset: rows * 0.75 })
      assert.isAtMost(cost.rows, rows * 0.75 + 300)
      assert.isAtMost(cost.blocks, rows * 0.06)
      assert.include(cost.scans, "Index Only Scan")
      assert.notInclude(cost.scans, "Seq Scan")
    })
  )

  it.effect.each(skewed)("$resource.name: the first page is short $where", ({ checks, given, resource }) =>
    Effect.gen(function* () {
      yield* fill(resource, 1000, given)
      for (const [criteria, found, owner] of checks) yield* checkCost(resource, criteria, found, owner)
    })
  )
})

const simple: ReadonlyArray<readonly [name: string, criteria: Records.FilterValues]> = [
  ["a page", {}],
  ["a poll that finds nothing new", { updated_at_since: "2030-01-01" }],
  ["a filter that matches much", { home_clinic: "home_clinic_7" }]
]

layer(TestDatabase.layer, { excludeTestServices: true })((it) => {
  it.effect("a simple search is planned for no values in particular", () =>
    Effect.gen(function* () {
      yield* fill(consumptionLogs, 1000)
      for (const [name, criteria] of simple) {
        const pool = { settings: inOrder, maxConnections: 1 }
        const sql = yield* clientOf((yield* TestDatabase).url, pool)
        const search = Records.make(OrganizationReads.make(sql), consumptionLogs).search(criteria, {
          limit: 100,
          offset: 0
        })
        for (let times = 0; times < 12; times++) yield* asKnown(organization)(search)
        const plans = yield* sql`
          select custom_plans::int as made, generic_plans > 0 as "isReused" from pg_prepared_statements
          where statement like '%from consumption' || '_logs%'`.unprepared
        assert.deepStrictEqual<unknown>(plans, [{ made: 5, isReused: true }], name)
      }
    })
  )
})
