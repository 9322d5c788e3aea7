/**
 * The order of changes: every record has a position in it, which only grows.
 *
 * A position is the id of the transaction that wrote the record, above a base. Whoever reads up to the lowest id that
 * is still in progress, the horizon, misses nothing: what can still commit has an id at or above it. A time cannot do
 * that, since it is stamped before the commit.
 *
 * Ids mean nothing in another cluster, such as after a restore: `change_begin` finds that out by the place of each feed,
 * and begins a new order above all positions that there are. On another timeline, after a failover or a recovery to a
 * point in time, ids of transactions that did not survive are given again: the marks of `change_mark` prove up to where
 * two timelines agree.
 */
import { script } from "./script.ts"

export default script(String.raw`
-- Above which positions lie. Replaced where an order begins anew: see change_begin.
-- Not immutable, since plans fold such a function, and do not notice when it is replaced.
create function change_base() returns bigint language sql stable parallel safe return 0;

create function change_position() returns bigint language sql stable
  return change_base() + pg_current_xact_id()::text::bigint;

-- All transactions below it have ended, and their positions are complete.
create function change_horizon() returns bigint language sql stable parallel restricted
  return change_base() + pg_snapshot_xmin(pg_current_snapshot())::text::bigint;

-- Nothing that the snapshot sees is at or above it.
create function change_ceiling() returns bigint language sql stable parallel restricted
  return change_base() + pg_snapshot_xmax(pg_current_snapshot())::text::bigint;

-- How many transactions have an id at or above it.
create function change_in_flight() returns integer language sql stable
  return age(pg_snapshot_xmax(pg_current_snapshot())::xid);

-- The timeline that the server writes; null on a standby, which does not know.
create function change_timeline() returns integer language sql stable
  return case when not pg_is_in_recovery()
    then ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer end;

-- Where transaction ids mean the same: the cluster, the database and the table.
create function change_place(name text) returns text language sql stable
  return concat_ws('/',
    (select system_identifier from pg_control_system()),
    (select oid from pg_database where datname = current_database()),
    to_regclass(name)::oid);

create function change_wal(place pg_lsn) returns bigint language sql immutable parallel safe
  return (place - '0/0')::bigint;

create function change_token() returns text language sql volatile
  return left(gen_random_uuid()::text, 8);

create table change_feeds (
  table_name text collate "C" primary key,
  -- Names this order of changes. A cursor of another one has expired.
  token      text not null default change_token(),
  place      text not null
);

create table change_marks (
  timeline  integer primary key,
  token     text not null unique default change_token(),
  -- Every transaction below it had ended when the mark was written. Where the mark has survived, so have they.
  proven    bigint not null,
  -- Where the timeline left the one before it. Null where the server has been started again since, and does not know.
  forked_at pg_lsn,
  marked_at timestamptz not null default clock_timestamp()
);

-- The records that were deleted from their tables.
create table removals (
  organization_id text collate "C" not null,
  table_name      text collate "C" not null,
  id              text collate "C" not null,
  change_position bigint not null,
  primary key (organization_id, table_name, id)
);
create index removals_changes on removals (organization_id, table_name, change_position, id);

-- Each database keeps its own order: a publication of all tables would write another one's over it. What the triggers
-- of a replicated row write is let through.
create function change_kept() returns trigger language plpgsql as $function$ begin return null; end $function$;
do $kept$ declare name text; begin
  foreach name in array array['change_feeds', 'change_marks', 'removals'] loop
    execute format($create$
      create trigger kept before insert or update or delete on %1$I
        for each row when (pg_trigger_depth() = 0) execute function change_kept()
      $create$, name);
    execute format('alter table %I enable replica trigger kept', name);
  end loop;
end $kept$;

create function record_removed() returns trigger language plpgsql security definer as $function$
begin
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  insert into removals values (old.organization_id, tg_table_name, old.id, change_position())
    on conflict (organization_id, table_name, id) do update set change_position = excluded.change_position;
  return null;
end $function$;

create function records_truncated() returns trigger language plpgsql security definer as $function$
begin
  update change_feeds set token = change_token() where table_name = tg_table_name;
  delete from removals where table_name = tg_table_name;
  return null;
end $function$;

-- Called for every row, with the schema in its text: to set the search path for each row would cost more than the rest.
do $schema$ begin execute format($create$
create function record_changed() returns trigger language plpgsql as $function$
begin
  -- After a crash, ids of commits that were lost are given again. So nobody may see a commit that can be lost.
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  if tg_op = 'UPDATE' then
    new.change_position := old.change_position;
    -- What addField writes to have a record rendered again. A generated column is null here.
    if new.record = '' then
      new.change_position := %1$I.change_position();
      return new;
    end if;
    new.record := old.record;
    if new is not distinct from old then
      return new;
    elsif current_setting('session_replication_role') = 'replica' then
      -- A replicated row keeps the time that its publisher gave it.
    elsif tg_argv[0] = 'updated_at' then
      if new.updated_at is not distinct from old.updated_at then new.updated_at := greatest(now(), old.updated_at); end if;
    elsif tg_argv[0] = 'modified_at' then
      if new.modified_at is not distinct from old.modified_at then new.modified_at := greatest(now(), old.modified_at); end if;
    end if;
  end if;
  new.change_position := %1$I.change_position();
  return new;
end $function$
$create$, current_schema()); end $schema$;

-- Writes down how far all transactions have ended, for a server of another timeline to know how far it agrees with this.
create function change_mark() returns void language plpgsql security definer as $function$
declare
  newest change_marks;
  own bigint;
  lowest bigint;
begin
  if pg_is_in_recovery() then return; end if;
  select * into newest from change_marks order by timeline desc limit 1;
  if newest.timeline = change_timeline() and (
    newest.proven = change_ceiling() or newest.marked_at between clock_timestamp() - interval '0.5 s' and clock_timestamp()
  ) then return; end if;
  own := change_position();
  lowest := change_horizon();
  insert into change_marks (timeline, proven, forked_at) values (
    change_timeline(), case when lowest = own then own + 1 else lowest end,
    -- The end of the recovery, if that was of a standby: after a crash it would be another's.
    case when pg_last_wal_receive_lsn() is not null then pg_last_wal_replay_lsn() end
  )
    on conflict (timeline) do update set proven = excluded.proven, marked_at = clock_timestamp();
end $function$;

-- What each feed consists of. One is settled where it is the order that it was, with triggers that fire always.
create function change_feed_states() returns table (table_name text, is_whole boolean, is_settled boolean, triggers text)
language sql stable as $function$
  select f.table_name,
    count(t.oid) = 5 and exists (
      select from pg_index where indexrelid = to_regclass(f.table_name || '_changes') and indisvalid
    ),
    f.place = change_place(f.table_name) and coalesce(bool_and(t.tgenabled = 'A'), true),
    string_agg(concat_ws(' ', t.oid, t.xmin, t.tgenabled), ',' order by t.oid)
  from change_feeds f left join pg_trigger t on t.tgrelid = to_regclass(f.table_name)
    and t.tgfoid in ('record_changed'::regproc, 'record_removed'::regproc, 'records_truncated'::regproc)
  group by f.table_name, f.place
$function$;

-- Begins the order of a feed anew where its table is not what it was: after a restore, an upgrade, in a copy, or where
-- triggers were disabled. It waits for indexes and triggers, which a restore makes last. It looks for the highest
-- position before it locks writers out: what they write meanwhile has a position of this cluster.
create function change_begin() returns void language plpgsql security definer
set lock_timeout = '500ms' set enable_seqscan = off set enable_bitmapscan = off as $function$
declare
  feed text;
  fired text;
  highest bigint := -1;
  found bigint;
begin
  if pg_is_in_recovery() or (select bool_and(is_settled) from change_feed_states()) then return; end if;
  if not (select bool_and(is_whole) from change_feed_states())
    or not pg_try_advisory_xact_lock('change_feeds'::regclass::oid::bigint) then return; end if;
  select string_agg(triggers, ',' order by table_name) into fired from change_feed_states();
  for feed in select table_name from change_feed_states() where not is_settled loop
    execute format($query$
      with recursive owners (owner) as (
        (select t.organization_id from %1$I t order by t.organization_id limit 1)
        union all
        select (select t.organization_id from %1$I t where t.organization_id > owner order by t.organization_id limit 1)
        from owners where owner is not null
      )
      select max((select max(t.change_position) from %1$I t where t.organization_id = owner)) from owners
      $query$, feed) into found;
    highest := greatest(highest, found);
  end loop;
  highest := greatest(highest, (select max(change_position) from removals));
  -- A new base is for all feeds, and one alone is begun anew without it.
  for feed in select table_name from change_feed_states()
    where not is_settled or highest >= change_horizon() order by table_name
  loop
    execute format('lock table %I in share row exclusive mode', feed);
  end loop;
  if fired is distinct from (select string_agg(triggers, ',' order by table_name) from change_feed_states()) then
    return;
  end if;
  if highest >= change_horizon() then
    highest := greatest(highest, change_ceiling() + change_in_flight());
    execute format('create or replace function change_base() returns bigint language sql stable parallel safe return %s', highest + 1);
  end if;
  for feed in select table_name from change_feed_states() where not is_settled loop
    execute format('alter table %I enable always trigger zz_inserted', feed);
    execute format('alter table %I enable always trigger zz_changed', feed);
    execute format('alter table %I enable always trigger moved', feed);
    execute format('alter table %I enable always trigger removed', feed);
    execute format('alter table %I enable always trigger truncated', feed);
    update change_feeds set token = change_token(), place = change_place(table_name) where table_name = feed;
  end loop;
  -- Timelines are of a cluster. The new mark is the first one that the new order has.
  delete from change_marks where proven > change_ceiling() or timeline > change_timeline();
end $function$;

do $schema$ begin
  execute format('alter function record_removed set search_path = %1$I, pg_temp', current_schema());
  execute format('alter function records_truncated set search_path = %1$I, pg_temp', current_schema());
  execute format('alter function change_mark set search_path = %1$I, pg_temp', current_schema());
  execute format('alter function change_begin set search_path = %1$I, pg_temp', current_schema());
end $schema$;

revoke all on function change_begin, change_mark, record_changed, record_removed, records_truncated from public;
grant execute on function change_begin, change_mark to practice_data_api, practice_data_worker;
grant select on change_feeds, change_marks, removals to practice_data_api;
`)
