/**
 * Distributing the tables by organization.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { CurrentOrganization } from "../../../src/api/Authorization.ts"
import { resources } from "../../../src/api/records/index.ts"
import * as Distribution from "../../../src/database/Distribution.ts"
import * as DatabaseChecks from "../../../src/operations/doctor/DatabaseChecks.ts"
import { onDatabase } from "../../support/deletions/tasks.ts"
import { feedOf } from "../../support/changes.ts"
import { clientOf, isDistributed, TestDatabase } from "../../support/TestDatabase.ts"

const records = resources.map(({ table }) => table)
const byOrganization = Distribution.byOrganization(records)
/** Those of the order of changes, which a distributed database lacks. */
const local = ["change_feeds", "change_marks", "change_times", "removals"]

layer(TestDatabase.layerDatabases, onDatabase)("distribute", (it) => {
  it.effect("knows each table that a migrated database has", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const tables = yield* sql`select tablename from pg_tables where schemaname = 'public'`.values
      assert.sameMembers(tables.flat(), [...byOrganization, ...Distribution.references, ...local])
      const led = yield* sql`
        select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attname = 'organization_id'
          and not exists (
            select from pg_index i where i.indrelid = c.oid and i.indisunique
              and not a.attnum = any (i.indkey::int2[])
          )`.values
      // A unique index without the organization cannot be kept over several servers.
      assert.includeMembers(led.flat(), [...byOrganization])
    })
  )

  it.effect.skipIf(isDistributed())("refuses a database without Citus, and says what to do", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const refused = yield* Effect.flip(Distribution.distribute(sql, records))
      assert.strictEqual(refused._tag, "CannotDistribute")
      assert.include(refused.message, "create extension citus")
    })
  )

  // A database of TEST_CITUS_URL was distributed when it was made.
  it.effect.runIf(isDistributed())("is idempotent, leaves writers their times, and no trigger of the order", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      assert.deepStrictEqual(yield* Distribution.distribute(sql, records), { distributed: [], copied: [] })
      assert.isTrue(yield* Distribution.hasDistributedTable(sql))
      yield* sql`
        insert into invoices (organization_id, id, status, created_at, updated_at)
        values ('org_a', 'i1', 'open', '2026-01-01', '2026-01-01')`
      yield* sql`update invoices set status = 'paid' where organization_id = 'org_a' and id = 'i1'`
      const [changed] = yield* sql<{ is_later: boolean }>`
        select updated_at > '2026-01-02' as is_later from invoices where organization_id = 'org_a' and id = 'i1'`
      assert.isTrue(changed?.is_later)
      yield* sql`delete from invoices where organization_id = 'org_a' and id = 'i1'`
      assert.isEmpty(yield* sql`select 1 from removals`)
    })
  )

  it.effect.runIf(isDistributed())("ends the feeds of changes, and the service and its doctor say so", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      const feed = yield* feedOf(yield* clientOf(url))
      const refused = yield* Effect.flip(feed({ limit: 10 }))
      assert.strictEqual(refused._tag, "ChangesNotServed")
      const [said] = yield* DatabaseChecks.feed(sql)
      assert.include(said?.message ?? "", "distributed")
    }).pipe(Effect.provideService(CurrentOrganization, CurrentOrganization.of({ id: "org_a" })))
  )
})
