/** How much a page of changes reads: about the changes that it tells, however deep the cursor is. */
import { assert, layer } from "@effect/vitest"
import { Effect, Formatter } from "effect"
import { charges } from "../../../src/api/records/Charges.ts"
import { invoices } from "../../../src/api/records/Invoices.ts"
import { pets } from "../../../src/api/records/Pets.ts"
import type { Resource } from "../../../src/api/records/Resource.ts"
import { eventually } from "../../support/eventually.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { changesCostOf, fill, organization } from "./cost.ts"

const rows = 4000

/** Waits until no transaction of another test holds the changes back. */
const untold = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  const [written] = yield* sql<{ next: string }>`select change_position()::text as next`
  yield* eventually(
    "changes that nobody holds back",
    Effect.map(
      sql<{ is: boolean }>`select change_horizon() > ${written?.next ?? ""}::bigint as is`,
      ([row]) => row?.is === true
    )
  )
})

/** The places of some changes, from the first to one after the last. */
const places = Effect.fnUntraced(function* ({ table }: Resource) {
  const { sql } = yield* TestDatabase
  const found = yield* sql<{ position: number; id: string }>`
    select change_position::float8 as position, id from (
      select change_position, id, row_number() over (order by change_position, id) as n from (
        select change_position, id from ${sql.literal(table)} where organization_id = ${organization}
        union all
        select change_position, id from removals where organization_id = ${organization} and table_name = ${table}
      ) t
    ) t where n % 997 = 1 order by n`
  const order = { feed: "00000000", mark: "00000000", ceiling: 0, wal: 0, target: 0, floor: 0 }
  return [undefined, ...found.map((place) => ({ ...order, ...place })), { ...order, position: 2 ** 50, id: "" }]
})

const check = Effect.fnUntraced(function* (resource: Resource) {
  yield* untold
  let told = 0
  for (const cursor of yield* places(resource)) {
    for (const limit of [1, 100, 1000]) {
      for (const cost of yield* changesCostOf(resource, cursor, limit)) {
        const message = `${resource.name} ${limit} ${Formatter.format(cursor)} costs ${Formatter.format(cost)}`
        // Of a removal, also whether there is a record again.
        assert.isAtMost(cost.rows, 2 * limit + 50, message)
        assert.isFalse(cost.scans.includes(`Seq Scan ${resource.table}`), message)
        assert.isFalse(cost.scans.includes("Seq Scan removals"), message)
        told += cost.told
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

    it.effect("where most of them are removals", () =>
      Effect.gen(function* () {
        const { sql } = yield* TestDatabase
        yield* fill(invoices, rows)
        yield* sql`delete from invoices where id not like '%5'`
        yield* sql`analyze removals`
        yield* check(invoices)
      })
    )

    it.effect("where what was removed exists again", () =>
      Effect.gen(function* () {
        const { sql } = yield* TestDatabase
        yield* fill(pets, rows)
        yield* sql`create temp table again as select organization_id, id from pets`
        yield* sql`delete from pets where organization_id = ${organization}`
        yield* sql`insert into pets (organization_id, id) select * from again`
        yield* check(pets)
      })
    )
  }
)
