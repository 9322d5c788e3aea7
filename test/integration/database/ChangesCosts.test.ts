/** What changes cost: a page reads about the changes that it tells, however deep the cursor is, and is planned once. */
import { assert, layer } from "@effect/vitest"
import { Effect, Formatter } from "effect"
import { charges } from "../../../src/api/records/Charges.ts"
import { resources as all, searchable } from "../../../src/api/records/index.ts"
import { inOrder } from "../../../src/database/Database.ts"
import { makeChangesQuery } from "../../../src/changes/FeedStores.ts"
import * as Walk from "../../../src/changes/Walk.ts"
import { feedOf } from "../../support/changes.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"
import { asKnown } from "../records/stores.ts"
import { blocksOf, explain, fill, organization, rowsOf, scansOf } from "./plans.ts"

/** What a page of changes reads: rows of all tables, and by which kinds of scan, planned for this walk and for any. */
const changesCostOf = Effect.fnUntraced(function* (walk: Walk.Walk, limit: number, owner = organization) {
  const query = makeChangesQuery(searchable)([walk], limit, "")
  const plans = yield* Effect.forEach([false, true], (isPlannedOnce) =>
    explain(query.text, [owner, ...query.values], isPlannedOnce)
  )
  return plans.map((plan) => {
    const scans = scansOf(plan)
    const isScanned = scans.some((node) => node["Node Type"] === "Seq Scan" && node["Relation Name"] === "charges")
    return { rows: rowsOf(scans), blocks: blocksOf(scans), told: rowsOf([plan]), isScanned }
  })
})

const names = searchable.map(({ name }) => name)

const feedsOf = (read: ReadonlyArray<string>) => Object.fromEntries(read.map((name) => [name, ""]))

layer(TestDatabase.layer, { excludeTestServices: true })((it) => {
  it.effect("a page of changes is planned once, whatever its limit", () =>
    Effect.gen(function* () {
      const sql = yield* clientOf((yield* TestDatabase).url, { settings: inOrder })
      yield* sql`select change_mark()`
      const changes = yield* feedOf(sql)
      for (let limit = 1; limit <= 12; limit++) yield* asKnown(organization)(changes({ limit }))
      const plans = yield* sql`
        select generic_plans > 0 as "isReused" from pg_prepared_statements where statement like '%json_to_recordset%'`
        .unprepared
      assert.deepStrictEqual(plans, [{ isReused: true }])
    })
  )
})

/** Walks that have come to some charges, from the first to one after the last, with transactions that had not ended. */
const walks = Effect.fnUntraced(function* (read: ReadonlyArray<string>) {
  const { sql } = yield* TestDatabase
  const found = yield* sql<{ position: number; id: string }>`
    select change_position::float8 as position, id from (
      select change_position, id, row_number() over (order by change_position, id) as n
      from charges where organization_id = ${organization}
    ) t where n % 749 = 1 order by n`
  const feeds = feedsOf(read)
  const places = [...found, { position: 2 ** 50, id: "" }].map((place): Walk.Place => ({ ...place, branch: "~" }))
  return [
    Walk.fromStart(feeds),
    ...places.map((place): Walk.Walk => ({ feeds, place, running: [3, 5, 1000, place.position - 1] }))
  ]
})

layer(TestDatabase.layerDatabases, { excludeTestServices: true })("a page of changes reads what it tells", (it) => {
  it.effect("of records that were written at once, and of some that were written since", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* fill(charges, 1500)
      yield* sql`insert into charges (organization_id, id) select 'org_other', 'id_' || n from generate_series(1, 1000) n`
      for (let n = 0; n < 5; n++) yield* sql`update charges set pet = ${String(n)} where id like ${`id_${n + 1}7%`}`
      let told = 0
      for (const read of [names, ["charges"]])
        for (const walk of yield* walks(read))
          for (const limit of [1, 1000])
            for (const cost of yield* changesCostOf(walk, limit)) {
              const message = `${read.join()} ${limit} ${Formatter.format(walk)} costs ${Formatter.format(cost)}`
              // In each range, changes are read until there are enough. Each resource has a first row of each range.
              assert.isAtMost(cost.rows, 4 * limit + 50 + 10 * read.length, message)
              assert.isFalse(cost.isScanned, message)
              told += cost.told
            }
      assert.isAbove(told, 1500)
    })
  )

  it.effect("beside many removals that it does not tell", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const others: ReadonlyArray<string> = all.flatMap(({ name }) =>
        name === "invoices" || name === "charges" ? [] : [name]
      )
      const owner = "org_removed"
      const insert = (name: string) =>
        sql`insert into pets (organization_id, id) select ${owner}, ${name} || n from generate_series(1, 20) n`
      yield* insert("early_")
      const [begun] = yield* sql<{ at: number }>`select change_position()::float8 as at`
      const place: Walk.Place = { position: begun?.at ?? 0, id: "", branch: "" }
      yield* sql`
        insert into removals
        select ${owner}, case n % 2 when 0 then 'invoices' else 'charges' end, 'removed_' || n, change_position()
        from generate_series(1, 30000) n`
      yield* insert("late_")
      const loaded = 2 ** 50
      const cases: ReadonlyArray<readonly [string, Walk.Walk, number]> = [
        ["a first load", Walk.fromStart(feedsOf(names)), 40],
        ["a load of one table", Walk.fromStart(feedsOf(["pets"])), 40],
        ["a page within a load", { ...Walk.fromStart(feedsOf(names)), place, floor: loaded }, 20],
        ["other resources", { feeds: feedsOf(others), place, running: [place.position] }, 20],
        ["one resource", { feeds: feedsOf(["pets"]), place, running: [] }, 20],
        ["nothing new", { feeds: feedsOf(names), place: { ...place, position: loaded }, running: [] }, 0],
        ["removals alone", { feeds: feedsOf(["invoices"]), place, running: [] }, 1001]
      ]
      for (const [name, walk, told] of cases) {
        for (const cost of yield* changesCostOf(walk, 1000, owner)) {
          const message = `${name} costs ${Formatter.format(cost)}`
          // The first rows are of the key and the snapshot. Of a removal, it looks for a record.
          assert.include([told + 1, told + 2], cost.told, message)
          assert.isAtMost(cost.rows, told + 40, message)
          assert.isAtMost(cost.blocks, 3 * told + 300, message)
        }
      }
    })
  )
})
