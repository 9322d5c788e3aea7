/**
 * The roles of the service may do what their process does, and nothing else; functions of the schema run nobody else's code,
 * also where others may create in that schema, as in a database that was made before Postgres 15.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { resources } from "../../../src/api/records/index.ts"
import { decodeTexts } from "../../../src/database/Columns.ts"
import { feedOf, readerOf } from "../../support/changes.ts"
import { loginOf, TestDatabase } from "../../support/TestDatabase.ts"

const organization = "org_roles"

const tables = resources.map(({ table }) => table)
const marks = "(is_deleted deleted_at updated_at)"

/** The privileges of each role, by their kind: tables, and the columns of those on some columns. */
const privileges = {
  "api SELECT": [
    ...tables,
    "api_keys",
    "audit_log",
    "change_feeds",
    "change_marks",
    // Neither the payload nor why an attempt failed.
    "deletion_tasks (organization_id id idempotency_key invoices_count invoice_lines_count received_at scheduled_for state attempts started_at finished_at outcome)",
    "deletions (organization_id task_id undone_at verdict)",
    "deletions_unsettled",
    "migrations",
    "removals"
  ],
  "intake INSERT": [
    "deletion_tasks (organization_id id idempotency_key fingerprint payload invoices_count invoice_lines_count is_known received_at scheduled_for due_at)"
  ],
  "intake SELECT": [
    "deletion_tasks",
    "deletions_unsettled",
    "intake_secrets",
    "migrations",
    "organizations (organization_id)"
  ],
  "worker DELETE": ["deletions", "deletions_unsettled"],
  "worker INSERT": ["audit_log", "deletions", "deletions_unsettled"],
  "worker SELECT": [
    "audit_log",
    "change_feeds",
    "deletion_rows",
    "deletion_tasks",
    "deletion_work",
    "deletions",
    "deletions_unsettled",
    "invoice_lines",
    "invoices",
    "migrations",
    "organizations (organization_id)"
  ],
  "worker UPDATE": [
    "deletion_tasks (payload state attempts due_at claim_token started_at finished_at last_error outcome)",
    "deletions",
    "deletions_unsettled (written_by)",
    `invoice_lines ${marks}`,
    `invoices ${marks}`
  ],
  "writer DELETE": tables,
  "writer INSERT": tables,
  "writer SELECT": [...tables, "migrations"],
  "writer UPDATE": tables
}

const isRefused = (statement: Effect.Effect<ReadonlyArray<unknown>, SqlError>) =>
  Effect.map(Effect.flip(statement), ({ reason }) => assert.strictEqual(reason._tag, "AuthorizationError"))

layer(TestDatabase.layerDatabases, { excludeTestServices: true })("the roles of the service", (it) => {
  it.effect("have exactly these privileges on tables, cannot log in by themselves, and create nothing", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const found = yield* sql<{ role: string; name: string }>`
        select substr(r.rolname, 15) || ' ' || p as role, c.relname || case
          when has_table_privilege(r.oid, c.oid, p) then ''
          else ' (' || (
            select string_agg(attname, ' ' order by attnum) from pg_attribute
            where attrelid = c.oid and attnum > 0 and not attisdropped and has_column_privilege(r.oid, c.oid, attnum, p)
          ) || ')' end as name
        from pg_roles r, pg_class c, unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER', 'REFERENCES']) p
        where starts_with(r.rolname, 'practice_data_') and not r.rolcanlogin
          and c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f')
          and case when p in ('DELETE', 'TRUNCATE', 'TRIGGER') then has_table_privilege(r.oid, c.oid, p)
            else has_any_column_privilege(r.oid, c.oid, p) end`
      const expected = Object.entries(privileges).flatMap(([role, names]) => names.map((name) => ({ role, name })))
      assert.sameDeepMembers([...found], expected)
      const mighty = yield* sql`
        select rolname from pg_roles where rolname like 'practice_data%' and (rolcanlogin or rolsuper or rolcreaterole
          or rolcreatedb or rolbypassrls or has_schema_privilege(oid, 'public', 'CREATE'))`
      assert.deepStrictEqual(mighty, [])
    })
  )

  it.effect("the data API reads a writer's records, and alone records the day of a key's use", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const [api, writer] = [yield* loginOf("api"), yield* loginOf("writer")]
      yield* writer`insert into invoices (organization_id, id) values (${organization}, 'a'), (${organization}, 'b')`
      yield* writer`update invoices set is_deleted = true where id = 'a'`
      const { read } = readerOf(yield* feedOf(api), organization)
      assert.isTrue((yield* read()).records.find(({ id }) => id === "a")?.["is_deleted"])
      yield* writer`delete from invoices where id = 'b'`
      assert.deepStrictEqual((yield* read()).removed, ["b"])
      yield* sql`
        insert into api_keys (organization_id, id, name, prefix, key_hash)
        values ('org_a', 'used', 'Used', 'pda', '\\x01'), ('org_a', 'other', 'Other', 'pda', '\\x02')`
      yield* api.unsafe("select touch_api_key('\\x01'), touch_api_key('\\xff')")
      const keys = yield* decodeTexts(sql`
        select concat_ws(' ', id, last_used_on = (now() at time zone 'UTC')::date, revoked_at) as text from api_keys order by id`)
      assert.deepStrictEqual(keys, ["other", "used t"])
      for (const role of ["intake", "worker"] as const)
        yield* isRefused((yield* loginOf(role)).unsafe("select touch_api_key('\\x01')"))
    })
  )

  it.effect.each(["api", "worker"] as const)(
    "%s: cannot use a function with its owner's rights for anything else",
    (role) =>
      Effect.gen(function* () {
        const { sql } = yield* TestDatabase
        const login = yield* loginOf(role)
        const orders = sql`select f.*, (select count(*)::int from removals) as removals from change_feeds f order by table_name`
        const before = yield* orders
        // A table of the same name, whose removals and whose end are none of the invoices'.
        yield* login`create temp table invoices (organization_id text, id text)`
        for (const trigger of [
          "delete on pg_temp.invoices for each row execute function record_removed()",
          "truncate on pg_temp.invoices for each statement execute function records_truncated()"
        ])
          yield* isRefused(login.unsafe(`create trigger mine after ${trigger}`))
        // Names that a search path of the caller would find first.
        yield* login`create temp table change_feeds (table_name text, token text, place text)`
        yield* login`create temp table change_marks (timeline int, token text, proven bigint, marked_at timestamptz)`
        yield* login`create function pg_temp.change_ceiling() returns bigint language sql return 1`
        yield* login`set search_path = pg_temp, public`
        yield* login`select public.change_begin(), public.change_mark()`
        assert.deepStrictEqual(yield* orders, before)
        assert.deepStrictEqual(yield* login`select * from pg_temp.change_marks`, [])
      })
  )
})

/** Rules of all tables and functions of the schema. Each query finds what breaks one. */
const classes = `any ('{${resources.map(({ table }) => table).join()}}'::regclass[])`

const rules = [
  [
    "each table has a primary key, so that a publication of all tables refuses no change",
    `select relname from pg_class c where relkind = 'r' and relnamespace = 'public'::regnamespace
       and not exists (select from pg_index where indrelid = c.oid and indisprimary)`
  ],
  [
    "each index of a table of records leads with the organization",
    `select i.indexrelid::regclass from pg_index i
       join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
     where i.indrelid = ${classes} and a.attname <> 'organization_id'`
  ],
  [
    "each index of a table of records orders text by bytes",
    `select i.indexrelid::regclass from pg_index i, unnest(i.indcollation::oid[]) as used(oid)
       join pg_collation c on c.oid = used.oid where i.indrelid = ${classes} and c.collname <> 'C'`
  ],
  [
    "each table of records refuses a blank id, and an organization with blanks around it",
    `select c.oid::regclass from pg_class c where c.oid = ${classes} and 2 <> (
       select count(*) from pg_constraint where conrelid = c.oid and convalidated
         and conname in ('id_not_blank', 'organization_id_without_blanks_around'))`
  ],
  [
    "a function finds its names whatever the search path is; only the owner calls a procedure",
    `select proname from pg_proc
     where pronamespace = current_schema()::regnamespace and case prokind
       when 'p' then has_function_privilege('public', oid, 'EXECUTE')
       else (prosecdef or prosqlbody is null) and not coalesce(proconfig, '{}') @> array['search_path=pg_catalog, pg_temp']
         -- Those of the worker fire triggers of others.
         and (prosecdef or proname not in ('deletion_settings', 'mark_rows', 'finish_deletion', 'run_deletion'))
     end`
  ]
] as const

layer(TestDatabase.layer, { excludeTestServices: true })("in the schema", (it) => {
  it.effect.each(rules)("%s", ([, query]) =>
    Effect.flatMap(TestDatabase, ({ sql }) =>
      Effect.map(sql.unsafe(query), (found) => assert.deepStrictEqual(found, []))
    )
  )
})
