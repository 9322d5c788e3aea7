/**
 * Distributing the tables by organization, without Citus: there is a fake of it.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { CurrentOrganization } from "../../../src/api/Authorization.ts"
import { resources } from "../../../src/api/records/index.ts"
import type { Database } from "../../../src/database/Database.ts"
import * as Distribution from "../../../src/database/Distribution.ts"
import { script } from "../../../src/database/Migrations.ts"
import * as DatabaseChecks from "../../../src/operations/doctor/DatabaseChecks.ts"
import { onDatabase } from "../../support/deletions/support.ts"
import { feedOf } from "../../support/Follower.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"

const records = resources.map(({ table }) => table)
const byOrganization = Distribution.byOrganization(records)

/** The functions of Citus that `distribute` calls. Records the distributed tables; refuses triggers unless its setting allows them. */
const fakeCitus = (sql: Database) =>
  script(`
create table public.pg_dist_partition (
  logicalrelid regclass primary key, partmethod "char" not null, partkey text, colocationid integer not null
);

create table public.commands (place serial, command text);

create function public.create_distributed_function(name regprocedure) returns void language sql
begin atomic
  insert into public.commands (command) values ('function ' || name::text);
end;

create function public.create_reference_table(name regclass) returns void language sql
begin atomic
  insert into public.pg_dist_partition values (name, 'n', null, 1);
end;

create function public.create_distributed_table(name regclass, key text, colocate_with text) returns void
language plpgsql as $citus$
begin
  if current_setting('citus.enable_unsafe_triggers', true) is distinct from 'on'
    and exists (select from pg_trigger where tgrelid = name and not tgisinternal) then
    raise exception 'cannot distribute relation "%" because it has triggers', name;
  end if;
  if colocate_with <> 'none' and not exists (select from public.pg_dist_partition where logicalrelid = colocate_with::regclass) then
    raise exception 'relation % is not distributed', colocate_with;
  end if;
  insert into public.pg_dist_partition values (name, 'h', key, 2);
end $citus$;

create function public.run_command_on_workers(command text)
returns table (nodename text, nodeport integer, success boolean, result text) language sql
begin atomic
  insert into public.commands (command) values (command);
  select 'worker', 5432, true, 'ALTER DATABASE';
end;
`).pipe(Effect.provideService(SqlClient.SqlClient, sql))

layer(TestDatabase.layerDatabases, onDatabase)("distribute", (it) => {
  it.effect("knows each table that a migrated database has", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const tables = yield* sql`select tablename from pg_tables where schemaname = 'public'`.values
      assert.sameMembers(tables.flat(), [...byOrganization, ...Distribution.references, ...Distribution.local])
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

  it.effect("refuses a database without Citus, and says what to do", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const refused = yield* Effect.flip(Distribution.distribute(sql, records))
      assert.strictEqual(refused._tag, "CannotDistribute")
      assert.include(refused.message, "create extension citus")
    })
  )

  it.effect("distributes all tables of organizations, copies the others, and does nothing a second time", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* fakeCitus(sql)
      assert.isFalse(yield* Distribution.hasDistributedTable(sql))
      const first = yield* Distribution.distribute(sql, records)
      assert.deepStrictEqual(first, {
        distributed: [...byOrganization],
        copied: [...Distribution.references],
        refused: []
      })
      assert.isTrue(yield* Distribution.hasDistributedTable(sql))
      const copied = yield* sql`select command from commands where command like 'function %'`
      assert.deepInclude(copied, { command: "function change_position()" })
      assert.lengthOf(copied, 10)
      const second = yield* Distribution.distribute(sql, records)
      assert.deepStrictEqual([second.distributed, second.copied], [[], []])
      const settings = yield* sql`
        select unnest(setconfig) from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase
        where d.datname = current_database()`.values
      const own = [
        "enable_bitmapscan=off",
        "enable_seqscan=off",
        "synchronous_commit=on",
        "citus.enable_unsafe_triggers=on"
      ]
      assert.includeMembers(settings.flat(), own)
    })
  )

  it.effect("leaves writers their times, and nothing that writes into another table", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const triggers = yield* sql`
        select from pg_trigger t join pg_proc p on p.oid = t.tgfoid
        where t.tgrelid = any (${byOrganization}::regclass[]) and p.proname in ('record_removed', 'records_truncated')`
      assert.isEmpty(triggers)
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

  it.effect("ends the feeds of changes, and the service and its doctor say so", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      const feed = yield* feedOf(yield* clientOf(url))
      const refused = yield* Effect.flip(feed({ limit: 10 }))
      assert.strictEqual(refused._tag, "ChangesNotServed")
      const [said] = yield* DatabaseChecks.feed(sql)
      assert.include(said?.message ?? "", "distributed")
    }).pipe(Effect.provideService(CurrentOrganization, CurrentOrganization.of({ id: "org_a" })))
  )

  it.effect("grants what Citus asks for an INSERT of some columns", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const [row] = yield* sql`
        select has_column_privilege('practice_data_intake', 'deletion_tasks', 'attempts', 'INSERT') as is_granted`
      assert.deepStrictEqual(row, { is_granted: true })
    })
  )

  it.effect("distributes what a run left that was cut short", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`delete from pg_dist_partition where logicalrelid = 'invoices'::regclass`
      assert.deepStrictEqual((yield* Distribution.distribute(sql, records)).distributed, ["invoices"])
    })
  )
})
