/**
 * Compiles the functions that render records to PL/pgSQL. Postgres starts an executor for every call of an SQL function
 * that it cannot inline, and it does not inline an immutable one that calls to_json or to_char: three quarters of the cost
 * of rendering. PL/pgSQL evaluates the same expression without one, and returns the same bytes.
 */
import { script } from "./script.ts"

/** The clause of a function that resolves names when it runs: others may create functions in the schema of the records. */
export const ownPath = "set search_path = pg_catalog, pg_temp"

/**
 * Compiles the function `TABLE_record` of each table of records, or of one, unless it is PL/pgSQL already. The body is read
 * without a search path, so that it names schemas: a restore has no search path.
 */
export const compileRecord = (table?: string) =>
  script(String.raw`
do $compile$
declare
  path text := current_setting('search_path');
  home regnamespace := current_schema()::regnamespace;
  render record;
begin
  perform set_config('search_path', '', true);
  for render in
    select p.proname as name, pg_get_function_arguments(p.oid) as arguments, pg_get_function_sqlbody(p.oid) as body
    from pg_proc p
    join pg_class t on t.relnamespace = p.pronamespace and t.relname || '_record' = p.proname
    join pg_attribute a on a.attrelid = t.oid and a.attname = 'record'
    where p.pronamespace = home and p.prosqlbody is not null ${table === undefined ? "" : `and t.relname = '${table}'`}
  loop
    execute format(
      'create or replace function %s.%I(%s) returns text language plpgsql immutable parallel safe ${ownPath} as %L',
      home, render.name, render.arguments, format(E'begin\n  %s;\nend', render.body)
    );
  end loop;
  perform set_config('search_path', path, true);
end $compile$`)
