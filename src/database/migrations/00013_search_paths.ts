/**
 * The functions whose names Postgres looks up when they run find them in `pg_catalog` alone, or name the schema. Where
 * others may create in the schema of the records, their overload of a function or operator would run with the rights of
 * the owner, or of the writer of a record. A body that Postgres has parsed (`return`, `begin atomic`) looks up nothing.
 *
 * An UPDATE that changes nothing affects its row, and is no change. The worker's role reads which organizations there are.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { ownPath } from "./compileRecord.ts"
import { script } from "./script.ts"

/**
 * The functions that name what is in the schema of the records.
 *
 * @param home the schema, as an identifier
 * @param name the same, as a literal with the identifier
 */
const functions = (home: string, name: string) => String.raw`
create or replace function ${home}.change_place(name text) returns text language sql stable
  return concat_ws('/',
    (select system_identifier from pg_control_system()),
    (select oid from pg_database where datname = current_database()),
    (select oid from pg_class where relname = name and relnamespace = ${name}::regnamespace));

-- Called for every row that is updated: to set the search path would cost 3 % more. So it qualifies its names and operators.
create or replace function ${home}.record_changed() returns trigger language plpgsql as $function$
begin
  -- After a crash, ids of commits that were lost are given again. So nobody may see a commit that can be lost.
  if pg_catalog.current_setting('synchronous_commit') operator(pg_catalog.=) 'off' then
    perform pg_catalog.set_config('synchronous_commit', 'on', true);
  end if;
  if tg_op operator(pg_catalog.=) 'UPDATE' then
    new.change_position := old.change_position;
    -- What addField writes to have a record rendered again. A generated column is null here.
    if new.record operator(pg_catalog.=) '' then
      new.change_position := ${home}.change_position();
      return new;
    end if;
    new.record := old.record;
    if new operator(pg_catalog.=) old then
      return new;
    elsif pg_catalog.current_setting('session_replication_role') operator(pg_catalog.=) 'replica' then
      -- A replicated row keeps the time that its publisher gave it.
    elsif tg_argv[0] operator(pg_catalog.=) 'updated_at' then
      if new.updated_at operator(pg_catalog.=) old.updated_at then
        new.updated_at := greatest(pg_catalog.now(), old.updated_at);
      end if;
    elsif tg_argv[0] operator(pg_catalog.=) 'modified_at' then
      if new.modified_at operator(pg_catalog.=) old.modified_at then
        new.modified_at := greatest(pg_catalog.now(), old.modified_at);
      end if;
    end if;
  end if;
  new.change_position := ${home}.change_position();
  return new;
end $function$;

create or replace function ${home}.record_removed() returns trigger language plpgsql security definer ${ownPath}
as $function$
begin
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  insert into ${home}.removals values (old.organization_id, tg_table_name, old.id, ${home}.change_position())
    on conflict (organization_id, table_name, id) do update set change_position = excluded.change_position;
  return null;
end $function$;

create or replace function ${home}.records_truncated() returns trigger language plpgsql security definer ${ownPath}
as $function$
begin
  update ${home}.change_feeds set token = ${home}.change_token() where table_name = tg_table_name;
  delete from ${home}.removals where table_name = tg_table_name;
  return null;
end $function$;

create or replace function ${home}.change_feed_states()
returns table (table_name text, is_whole boolean, is_settled boolean, triggers text)
language sql stable ${ownPath} as $function$
  select f.table_name,
    count(t.oid) = 5 and exists (
      select from pg_index
      where indexrelid = to_regclass(format('%s.%I', ${name}, f.table_name || '_changes')) and indisvalid
    ),
    f.place = ${home}.change_place(f.table_name) and coalesce(bool_and(t.tgenabled = 'A'), true),
    string_agg(concat_ws(' ', t.oid, t.xmin, t.tgenabled), ',' order by t.oid)
  from ${home}.change_feeds f left join pg_trigger t
    on t.tgrelid = to_regclass(format('%s.%I', ${name}, f.table_name)) and t.tgfoid in (
      select oid from pg_proc where pronamespace = ${name}::regnamespace
        and proname in ('record_changed', 'record_removed', 'records_truncated')
    )
  group by f.table_name, f.place
$function$;

-- As before, with its names qualified.
create or replace function ${home}.change_begin() returns void language plpgsql security definer ${ownPath}
set lock_timeout = '500ms' set enable_seqscan = off set enable_bitmapscan = off as $function$
declare
  home constant text := ${name};
  feed text;
  fired text;
  highest bigint := -1;
  found bigint;
begin
  if pg_is_in_recovery() or (select bool_and(is_settled) from ${home}.change_feed_states()) then return; end if;
  if not (select bool_and(is_whole) from ${home}.change_feed_states())
    or not pg_try_advisory_xact_lock((home || '.change_feeds')::regclass::oid::bigint) then return; end if;
  select string_agg(triggers, ',' order by table_name) into fired from ${home}.change_feed_states();
  for feed in select table_name from ${home}.change_feed_states() where not is_settled loop
    execute format($query$
      with recursive owners (owner) as (
        (select t.organization_id from %1$s.%2$I t order by t.organization_id limit 1)
        union all
        select (
          select t.organization_id from %1$s.%2$I t where t.organization_id > owner order by t.organization_id limit 1
        )
        from owners where owner is not null
      )
      select max((select max(t.change_position) from %1$s.%2$I t where t.organization_id = owner)) from owners
      $query$, home, feed) into found;
    highest := greatest(highest, found);
  end loop;
  highest := greatest(highest, (select max(change_position) from ${home}.removals));
  -- A new base is for all feeds, and one alone is begun anew without it.
  for feed in select table_name from ${home}.change_feed_states()
    where not is_settled or highest >= ${home}.change_horizon() order by table_name
  loop
    execute format('lock table %s.%I in share row exclusive mode', home, feed);
  end loop;
  if fired is distinct from (select string_agg(triggers, ',' order by table_name) from ${home}.change_feed_states()) then
    return;
  end if;
  if highest >= ${home}.change_horizon() then
    highest := greatest(highest, ${home}.change_ceiling() + ${home}.change_in_flight());
    execute format(
      'create or replace function %s.change_base() returns bigint language sql stable parallel safe return %s',
      home, highest + 1
    );
  end if;
  for feed in select table_name from ${home}.change_feed_states() where not is_settled loop
    execute format('alter table %s.%I enable always trigger zz_inserted', home, feed);
    execute format('alter table %s.%I enable always trigger zz_changed', home, feed);
    execute format('alter table %s.%I enable always trigger moved', home, feed);
    execute format('alter table %s.%I enable always trigger removed', home, feed);
    execute format('alter table %s.%I enable always trigger truncated', home, feed);
    update ${home}.change_feeds f set token = ${home}.change_token(), place = ${home}.change_place(f.table_name)
      where f.table_name = feed;
  end loop;
  -- Timelines are of a cluster. The new mark is the first one that the new order has.
  delete from ${home}.change_marks where proven > ${home}.change_ceiling() or timeline > ${home}.change_timeline();
end $function$;

-- Those that name nothing of the schema, or name it in what was parsed or written by compileRecord.
do $paths$ declare named regprocedure; begin
  for named in
    select p.oid from pg_proc p where p.pronamespace = ${name}::regnamespace and (
      p.proname in ('change_kept', 'touch_api_key') or exists (
        select from pg_class t join pg_attribute a on a.attrelid = t.oid and a.attname = 'record'
        where t.relnamespace = p.pronamespace and t.relname || '_record' = p.proname
      )
    )
  loop
    execute format('alter function %s ${ownPath}', named);
  end loop;
end $paths$;

-- The operators' page tells registered organizations from those that an unsigned delivery made up.
grant select (organization_id) on ${home}.organizations to practice_data_worker;
`

export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const places = yield* sql<{ home: string; name: string; path: string }>`
    select home, pg_catalog.quote_literal(home) as name, path from (
      select pg_catalog.quote_ident(pg_catalog.current_schema()) as home,
        pg_catalog.current_setting('search_path') as path
    ) s`
  for (const { home, name, path } of places) {
    yield* sql`set local search_path = pg_catalog, pg_temp`
    yield* script(functions(home, name))
    yield* sql`select set_config('search_path', ${path}, true)`
  }
})
