/** How much a page of changes reads: about the changes that it tells, however deep the cursor is. */
import { assert, layer } from "@effect/vitest"
import { Effect, Formatter } from "effect"
import { charges } from "../../../src/api/records/Charges.ts"
import { invoices } from "../../../src/api/records/Invoices.ts"
import type { Resource } from "../../../src/api/records/Resource.ts"
import { searchable } from "../../../src/api/records/index.ts"
import { ofAll, ofResource } from "../../../src/records/FeedPages.ts"
import * as Walk from "../../../src/records/Walk.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { changesCostOf, fill, organization } from "./cost.ts"

const rows = 3000

/** Walks that have come to some changes, from the first to one after the last, with transactions that had not ended. */
const walks = Effect.fnUntraced(function* ({ table }: Resource) {
  const { sql } = yield* TestDatabase
  const found = yield* sql<{ position: number; id: string }>`
    select change_position::float8 as position, id from (
      select change_position, id, row_number() over (order by change_position, id) as n from (
        select change_position, id from ${sql.literal(table)} where organization_id = ${organization}
        union all
        select change_position, id from removals where organization_id = ${organization} and table_name = ${table}
      ) t
    ) t where n % 997 = 1 order by n`
  const feeds = Object.fromEntries(searchable.map(({ name }) => [name, ""]))
  const places = [...found, { position: 2 ** 50, id: "" }].map((place): Walk.Place => ({ ...place, branch: "~" }))
  return [
    Walk.opened(feeds),
    ...places.map((place): Walk.Walk => ({ feeds, place, running: [3, 5, 1000, place.position - 1] }))
  ]
})

const check = Effect.fnUntraced(function* (resource: Resource) {
  let told = 0
  for (const kind of [ofResource(resource), ofAll(searchable)]) {
    for (const walk of yield* walks(resource)) {
      for (const limit of [1, 1000]) {
        for (const cost of yield* changesCostOf(kind, walk, limit)) {
          const message = `${kind.name} ${limit} ${Formatter.format(walk)} costs ${Formatter.format(cost)}`
          // Of a removal, also whether there is a record again. Each resource has a first row of each range.
          assert.isAtMost(cost.rows, 2 * limit + 50 + 10 * kind.resources.length, message)
          assert.isFalse(cost.scans.includes(`Seq Scan ${resource.table}`), message)
          assert.isFalse(cost.scans.includes("Seq Scan removals"), message)
          told += cost.told
        }
      }
    }
  }
  assert.isAbove(told, rows)
})

layer(TestDatabase.layerDatabases, { excludeTestServices: true })(
  "a page of changes reads little more than it tells",
  (it) => {
    it.effect("of records that were written at once, and of some that were written since", () =>
      Effect.gen(function* () {
        const { sql } = yield* TestDatabase
        yield* fill(charges, rows)
        yield* sql`insert into charges (organization_id, id) select 'org_other', 'id_' || n from generate_series(1, 2000) n`
        for (let n = 0; n < 5; n++) yield* sql`update charges set pet = ${String(n)} where id like ${`id_${n + 1}7%`}`
        yield* check(charges)
      })
    )

    it.effect("where most of them are removals, some of records that exist again", () =>
      Effect.gen(function* () {
        const { sql } = yield* TestDatabase
        yield* fill(invoices, rows)
        yield* sql`delete from invoices where id not like '%5'`
        yield* sql`insert into invoices (organization_id, id) select organization_id, id from removals where id like '%3'`
        yield* sql`analyze removals`
        yield* check(invoices)
      })
    )
  }
)
