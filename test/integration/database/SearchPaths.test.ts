/**
 * Functions of the schema run nobody else's code, also where others may create in that schema, as in a database that was
 * made before Postgres 15.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { resources } from "../../../src/api/records/index.ts"
import { loginOf, TestDatabase } from "../../support/TestDatabase.ts"

const tables = resources.map(({ table }) => table)

/** The functions whose body is a text, in which names are looked up when they run. */
const textual = "pronamespace = current_schema()::regnamespace and prosqlbody is null"

/**
 * Has an attacker make overloads of all that the functions call, for arguments that fit better than the system's own:
 * each text in a body that stands before a parenthesis, for many types, and all operators for types without their own.
 */
const plant = `
do $plant$
declare
  trap constant text := 'language plpgsql as $trap$ begin
    if current_user <> session_user or session_user not like ''login_api%'' then
      raise exception ''% ran as %'', ''NAME'', current_user;
    end if;
    return null;
  end $trap$';
  called text;
  given text;
  made int := 0;
begin
  for called in
    select distinct name[1] from pg_proc, regexp_matches(prosrc, '(\\w+)\\(', 'g') name
    where ${textual} and exists (select from pg_proc o where o.proname = name[1])
  loop
    foreach given in array array[
      'text', 'name', 'oid', 'bigint', 'text[]', 'api_instant', 'api_decimal', 'invoices', '"char"',
      'text, text', 'text, name', 'name, text', 'text, bigint', 'text, text, text', 'text, text, bigint',
      'text, oid, xid, "char"', 'text, bigint, oid, oid', 'text, text, boolean', 'text, oid, oid',
      'text, variadic text[]', 'text, variadic oid[]', 'text, variadic bigint[]'
    ] loop
      begin
        execute pg_catalog.format('create function public.%I(%s) returns text ', called, given) || replace(trap, 'NAME', called);
        made := made + 1;
      exception when duplicate_function or undefined_object or invalid_function_definition then null;
      end;
    end loop;
  end loop;
  foreach given in array array[
    'api_instant, api_instant', 'api_decimal, api_decimal', 'api_decimal, integer', 'text[], text[]', 'text, text',
    'api_texts, api_texts', 'api_texts, text[]', 'oid, regnamespace', 'oid, regclass', 'oid, regproc', 'bigint, bigint',
    'bigint, integer', 'text, name', 'name, text', 'numeric, numeric', 'numeric, integer'
  ] || array(select pg_catalog.format('%1$s, %1$s', relname) from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r')
  loop
    foreach called in array array['=', '<>', '*=', '<', '>', '<=', '>=', '||', '+', '-'] loop
      execute pg_catalog.format(
        'create function public.trap_%s(%s) returns %s ', made, given,
        case when called in ('||', '+', '-') then 'text' else 'boolean' end
      ) || replace(trap, 'NAME', 'operator ' || called || ' of ' || given);
      execute pg_catalog.format(
        'create operator public.%s (leftarg = %s, rightarg = %s, function = public.trap_%s)', called,
        split_part(given, ', ', 1), split_part(given, ', ', 2), made
      );
      made := made + 1;
    end loop;
  end loop;
end $plant$`

layer(TestDatabase.layer, { excludeTestServices: true })("a function of the schema", (it) => {
  it.effect("that looks up names when it runs has a search path of its own, or qualifies all that it calls", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const others = yield* sql.unsafe<{ name: string; body: string }>(
        `select proname as name, prosrc as body from pg_proc
         where (prosecdef or ${textual}) and pronamespace = current_schema()::regnamespace
           and not coalesce(proconfig, '{}') @> array['search_path=pg_catalog, pg_temp'] order by 1`
      )
      assert.deepStrictEqual(
        others.map(({ name }) => name),
        ["record_changed"]
      )
      const calls = [...(others[0]?.body ?? "").matchAll(/([\w.]*)\(/g)].map(([, called = ""]) => called)
      assert.isNotEmpty(calls)
      const keywords = ["greatest", "operator"]
      assert.deepStrictEqual(
        calls.filter((called) => !keywords.includes(called) && !/^(pg_catalog|public)\./.test(called)),
        []
      )
    })
  )

  it.effect("runs nothing of an attacker's where everybody may create in the schema", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      for (const table of tables) {
        const id = table === "organizations" ? "org_a" : "a"
        yield* sql.unsafe(`insert into ${table} (organization_id, id) values ('org_a', '${id}')`)
      }
      yield* sql`alter table pets disable trigger zz_changed`
      // As after a restore: positions are above those of this cluster.
      yield* sql`update pets set change_position = 1000000000000`
      yield* sql`grant create on schema public to public`
      const attacker = yield* loginOf("api")
      const worker = yield* loginOf("worker")
      yield* attacker.unsafe(plant)
      const [planted] = yield* attacker<{ count: number }>`
        select count(*)::int as count from pg_proc where proowner = current_user::regrole`
      assert.isAbove(planted?.count ?? 0, 500)

      yield* attacker`select change_begin(), change_mark(), touch_api_key('\\x01')`
      const settled = yield* attacker`select 1 from change_feed_states() where not is_settled`
      assert.deepStrictEqual(settled, [])
      yield* worker`update invoices set is_deleted = true, deleted_at = '2026-01-31', updated_at = '2026-01-31'`
      yield* worker`select change_mark()`
      // By the owner, with a path that finds the attacker's before the system's.
      for (const table of tables) {
        yield* sql.unsafe(`update ${table} set change_position = 0`)
        yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`set local synchronous_commit = off`
            yield* sql.unsafe(`update ${table} set created_at = '2026-01-31'`)
            yield* sql.unsafe(
              `update ${table} set organization_id = 'org_b'${table === "organizations" ? ", id = 'org_b'" : ""}`
            )
            yield* sql.unsafe(`delete from ${table}`)
          })
        )
        yield* sql.unsafe(`truncate ${table}`)
      }
      yield* sql`
        insert into payment_intents (organization_id, id, payment_modifications, payment_amount, scheduled_date)
        values ('org_a', 'b', '{x}', 0.0000001, '2026-01-31')`
    }).pipe(Effect.scoped)
  )
})
