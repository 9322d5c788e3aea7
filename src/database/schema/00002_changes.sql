-- Each write of a record renders its JSON, stamps the time of the change, and gives it a position in the order of changes.
--
-- A position is the id of the writing transaction, above a base. A reader up to the horizon, the lowest id in progress,
-- misses nothing: what commits later has an id at or above it. A time cannot do that: it is stamped before the commit.
--
-- Ids mean nothing in another cluster, such as after a restore. `change_begin` notices that by the place of each feed, and
-- starts a new order above all existing positions. After a failover, a recovery to a point in time, or a crash, ids of lost
-- transactions are given again: the marks of `change_mark` prove how far two histories agree.
--
-- Function bodies look up names in `pg_catalog` alone, or name the schema. Where others may create objects in the schema of
-- the tables, their overload of a function would otherwise run with the rights of the owner, or of a writer.

-- The base of positions. change_begin replaces it, which a plan with a folded, immutable function would not notice.
create function change_base() returns bigint language sql stable parallel safe return 0;

create function change_position() returns bigint language sql stable
  return change_base() + pg_current_xact_id()::text::bigint;

-- All transactions below it have ended, and their positions are complete.
create function change_horizon() returns bigint language sql stable parallel restricted
  return change_base() + pg_snapshot_xmin(pg_current_snapshot())::text::bigint;

-- Nothing that the snapshot sees is at or above it.
create function change_ceiling() returns bigint language sql stable parallel restricted
  return change_base() + pg_snapshot_xmax(pg_current_snapshot())::text::bigint;

-- The timeline that the server writes; null on a standby, which does not know.
create function change_timeline() returns integer language sql stable
  return case when not pg_is_in_recovery()
    then ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer end;

-- The scope of transaction ids: the cluster and the database.
create function change_scope() returns text language sql stable return concat_ws('/',
  (select system_identifier from pg_control_system()), (select oid from pg_database where datname = current_database()));

-- The scope of a table's changes.
create function change_place(name text) returns text language sql stable
  return concat_ws('/', change_scope(), to_regclass(format('home.%I', name))::oid);

create function change_token() returns text language sql volatile return left(gen_random_uuid()::text, 8);

-- The tables of records. Written by publish.
create table change_feeds (
  table_name text collate "C" primary key,
  token      text not null default change_token(), -- The order of changes: cursors of another one have expired.
  place      text not null, -- The cluster, database and table of the transaction ids. Empty if the feed is not whole.
  changed_at text,
  fields     text[] not null,
  triggers   text -- The triggers at the start of the order.
);

-- How far each run of the server has committed durably. A run that has ended has a negative timeline.
create table change_marks (
  timeline      integer primary key,
  token         text not null unique default change_token(), -- The mark in cursors.
  proven        bigint not null, -- Every transaction below had ended by then. Where the mark has survived, so have they.
  marked_at     timestamptz not null default clock_timestamp(),
  started_at    timestamptz not null,
  durable_until pg_lsn, -- If the mark has survived, so has the log before this position.
  kept_from     bigint not null default 0 -- Removals below are deleted: cursors that need them have expired.
);

-- Times of the order of changes, a row a minute at most: each change below a position is older than its time.
create table change_times (position bigint primary key, at timestamptz not null);

-- The records that were deleted from their tables.
create table removals (
  organization_id text collate "C" not null, table_name text collate "C" not null, id text collate "C" not null,
  change_position bigint not null,
  primary key (organization_id, table_name, id)
);
-- The only index by position: with another, a plan may read all removals to find those of a table.
create index removals_changes on removals (organization_id, table_name, change_position, id);

-- Each database keeps its own order: a publication of all tables would overwrite it. Writes by the triggers of a replicated
-- row pass, and all others, even where the triggers fire for these too: a restore with --disable-triggers leaves them so.
create function change_kept() returns trigger language plpgsql set search_path = pg_catalog, pg_temp
as $function$ begin return null; end $function$;
do $kept$ declare name text; begin
  foreach name in array array['change_feeds', 'change_marks', 'change_times', 'removals'] loop
    execute format($create$
      create trigger kept before insert or update or delete on %1$I
        for each row when (pg_trigger_depth() = 0 and current_setting('session_replication_role') = 'replica')
        execute function change_kept();
      alter table %1$I enable replica trigger kept
      $create$, name);
  end loop;
end $kept$;

create function record_removed() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp
as $function$
begin
  perform set_config('synchronous_commit', 'on', true) where current_setting('synchronous_commit') = 'off';
  insert into home.removals values (old.organization_id, tg_table_name, old.id, home.change_position())
    on conflict (organization_id, table_name, id) do update set change_position = excluded.change_position;
  return null;
end $function$;

create function records_truncated() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp
as $function$
begin
  update home.change_feeds set token = home.change_token() where table_name = tg_table_name;
  delete from home.removals where table_name = tg_table_name;
  return null;
end $function$;

-- A number below a millionth, as JSON writes it: 1.5e-7.
create function tiny(value numeric) returns text language sql immutable strict parallel safe
  return regexp_replace(btrim(to_char(value, '9.99999999999999EEEE')), '[.]?0*e-0*', 'e-');

-- Texts joined by a space. Blank ones are left out; null if all are.
create function join_words(variadic words text[]) returns text language sql immutable parallel safe
  return nullif((select string_agg(trimmed(word), ' ' order by n) from unnest(words) with ordinality w (word, n)
    where trimmed(word) <> ''), '');

-- The SQL that renders a field of a record as JSON: of the column with its name in snake case, or of two special fields.
create function rendering(name text, field text) returns text language plpgsql stable set search_path = pg_catalog, pg_temp
as $function$
declare
  column_name constant text := lower(regexp_replace(replace(field, '.', '_'), '([a-z])([A-Z])', E'\\1_\\2', 'g'));
  value constant text := format('new.%I', column_name);
  type text;
begin
  if field = 'wellnes_plan_name' then
    return 'to_json(home.join_words(new.plan_name, new.species, new.plan_header))::text';
  elsif field = 'payment_modifications' then
    return format('to_json(nullif(%s, ''{}''))::text', value);
  end if;
  select format_type(atttypid, null) into strict type from pg_attribute
    where attrelid = ('home.' || quote_ident(name))::regclass and attname = column_name;
  return case
    when type in ('text', 'text[]') then format('to_json(%s)::text', value)
    when type = 'numeric' then format(
      'case when %1$s <> 0 and abs(%1$s) < 0.000001 then home.tiny(%1$s) else trim_scale(%1$s)::text end', value)
    when type = 'timestamp with time zone' then format(
      $$'"' || to_char(%s at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"'$$, value)
    when type = 'date' then format($$'"' || to_char(%s::timestamp, 'YYYY-MM-DD') || '"'$$, value)
    else format('%s::text', value)
  end;
end $function$;

-- Makes the trigger function of a table of records, `TABLE_written`. The JSON is written out for every field: a function
-- for each kind of value would cost a writer 1.8 times as much. `a.b` is the field `b` of the object `a`.
create procedure render(name text) language plpgsql as $procedure$
declare
  feed change_feeds;
  json text;
  on_update text := ''; on_change text := ''; on_insert text := ''; kept text := '';
  own constant text := (
    select string_agg(format('$.%I', attname), ', ' order by attnum) from pg_attribute
    where attrelid = name::regclass and attnum > 0 and not attisdropped and attname not in ('record', 'change_position')
  );
begin
  select * into strict feed from change_feeds where table_name = name;
  select string_agg(format('%L || coalesce(%s, ''null'')%s', opening || to_json(field) || ':', rendering(name, path), closing),
      E'\n    || ' order by n) || E'\n    || ''}'''
    into json
    from (
      select n, path, field,
        case n when 1 then '{' else ',' end
          || case when parent <> coalesce(lag(parent) over (order by n), '') then to_json(parent) || ':{' else '' end as opening,
        case when parent <> coalesce(lead(parent) over (order by n), '') then ' || ''}''' end as closing
      from unnest(feed.fields) with ordinality f (path, n)
      cross join lateral (select substring(path from '^(.*)[.]'), substring(path from '[^.]*$')) p (parent, field)
    ) fields;
  if feed.changed_at is not null then
    on_update := format($update$
      new.%1$I := case when keeps_times then greatest(new.%1$I, old.%1$I) else old.%1$I end;$update$, feed.changed_at);
    -- A change is later than the one before it, whatever the clock says. The last time has none after it.
    on_change := format($change$
      if keeps_times then null;
      elsif now() >= old.%1$I then new.%1$I := now();
      else new.%1$I := least(old.%1$I + interval '1 microsecond', timestamptz '9999-12-31 23:59:59.999999+00');
      end if;$change$, feed.changed_at);
    on_insert := format($insert$
  elsif not keeps_times then
    new.%1$I := now();$insert$, feed.changed_at);
  end if;
  if name in ('invoices', 'invoice_lines') then
    -- A look costs some microseconds, however many facts there are; next to none in a transaction that began to write while
    -- its organization had no task. The sweep applies those that it misses, and judges the facts of a row that comes.
    select format($kept$
  if tg_op = 'INSERT' or (%1$s, new.organization_id) is distinct from (%2$s, old.organization_id)
    or old.is_deleted and (not new.is_deleted or new.deleted_at is distinct from old.deleted_at) then
    known := current_setting('practice_data.deletes', true);
    if substr(known, 2) is distinct from new.organization_id then
      known := exists (
        select from home.deletion_tasks t where t.organization_id = new.organization_id)::integer || new.organization_id;
      perform set_config('practice_data.deletes', known, true);
    end if;
    if left(known, 1) = '1' then
      perform from home.deletions d where %4$s;
      if found then
        for fact in
          select d.*, d.verdict = 'not_found' and d.kind = %3$L and (
              tg_op = 'INSERT' or (new.id, new.organization_id) is distinct from (old.id, old.organization_id)
            ) as is_new, home.deletion_verdict(d.invoice_id, d.clinic_id, d.client_id, %5$s) as fits
          from home.deletions d where %4$s
        loop
          if fact.is_new then
            insert into home.deletions_unsettled (organization_id, task_id) values (new.organization_id, fact.task_id);
          end if;
          if fact.holds or fact.is_new and fact.fits = 'deleted' then deleted := least(deleted, fact.deleted_at); end if;
        end loop;
        -- The first time of a deletion stays.
        if deleted is not null and (old.is_deleted or not new.is_deleted) then
          new.deleted_at := case when old.is_deleted then coalesce(old.deleted_at, deleted) else deleted end;
          new.is_deleted := true;
        end if;
      end if;
    end if;
  end if;$kept$, keys.new, keys.old, keys.kind, keys.named, keys.own) into kept
    from (values
      ('invoices', 'new.id', 'old.id', 'invoice', 'd.organization_id = new.organization_id and d.undone_at is null
          and home.deletion_key(d.organization_id, d.id) = home.deletion_key(new.organization_id, new.id)
          and d.kind = ''invoice'' and d.id = new.id',
        'null, array[new.home_clinic, new.servicing_clinic], new.client_id'),
      ('invoice_lines', 'new.id, new.invoice', 'old.id, old.invoice', 'line',
        'd.organization_id = new.organization_id and d.undone_at is null and home.deletion_key(d.organization_id, d.id)
          = any (array[home.deletion_key(new.organization_id, new.id), home.deletion_key(new.organization_id, new.invoice)])
          and d.id = case when d.kind = ''line'' then new.id else new.invoice end',
        'new.invoice, array[new.clinic], null')
    ) keys (table_name, new, old, kind, named, own) where table_name = name;
  end if;
  execute format($create$
create or replace function %1$I() returns trigger language plpgsql set search_path = pg_catalog, pg_temp
%7$s as $written$
declare
  keeps_times constant boolean := coalesce(nullif(current_setting('practice_data.keep_times', true), '')::boolean, false);
  known text;
  fact record;
  deleted timestamptz;
begin
  -- After a crash, ids of commits that were lost are given again. So nobody may see a commit that can be lost.
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;%6$s
  if tg_op = 'UPDATE' then
    -- An empty record asks for the row to be rendered again. Otherwise an UPDATE that changes nothing is no change.
    if new.record is distinct from '' then
      new.record := old.record;
      new.change_position := old.change_position;%2$s
      -- A column that somebody added is none of the record's: one that is generated is still null here.
      if (%8$s) is not distinct from (%9$s) then return new; end if;%3$s
    end if;%4$s
  end if;
  new.change_position := home.change_position();
  new.record := %5$s;
  return new;
end $written$ $create$, name || '_written', on_update, on_change, on_insert, json, kept,
    case kept when '' then '' else 'security definer set enable_seqscan = off' end,
    replace(own, '$.', 'new.'), replace(own, '$.', 'old.'));
end $procedure$;

-- The triggers of a feed; null where it is not whole. What changes a trigger makes another version of its row.
create function change_triggers(name text) returns text language sql stable set search_path = pg_catalog, pg_temp
as $function$
  select string_agg(concat_ws(' ', t.oid, t.xmin), ',' order by t.oid)
  from (values
    ('zz_written', name || '_written', 23), ('moved', 'record_removed', 17),
    ('removed', 'record_removed', 9), ('truncated', 'records_truncated', 32)
  ) made (name, function, type)
  join pg_trigger t on t.tgrelid = to_regclass(format('home.%I', $1)) and t.tgname = made.name and t.tgtype = made.type
    and t.tgfoid = to_regprocedure(format('home.%I()', made.function))
    and t.tgattr = ''::int2vector and (t.tgqual is null) = (made.name <> 'moved')
  having count(*) = 4 and (
    select count(*) = 2 from pg_index i
    where i.indexrelid in (to_regclass(format('home.%I', $1 || '_changes')), to_regclass('home.removals_changes'))
      and i.indisvalid
  )
$function$;

-- Makes an empty table the feed of a resource: adds the columns that the database writes, the checks of values, the trigger
-- function, the triggers, which fire also for rows of logical replication, the index of its changes, and the grants.
create procedure publish(name text, changed_at text, fields text) language plpgsql as $procedure$
begin
  execute format('alter table %I add column record text not null, add column change_position bigint not null', name);
  call describe_records(name);
  call validate_records(name);
  insert into change_feeds (table_name, place, changed_at, fields)
    values (name, change_place(name), changed_at, regexp_split_to_array(fields, '[[:space:]]+'));
  call render(name);
  execute format($create$
    -- Triggers fire in the order of their names: this one comes after those that change the row.
    create trigger zz_written before insert or update on %1$I for each row execute function %2$I();
    create trigger moved after update on %1$I for each row
      when (old.id is distinct from new.id or old.organization_id is distinct from new.organization_id)
      execute function record_removed();
    create trigger removed after delete on %1$I for each row execute function record_removed();
    create trigger truncated after truncate on %1$I for each statement execute function records_truncated();
    create index %3$I on %1$I (organization_id, change_position, id);
    alter table %1$I enable always trigger zz_written, enable always trigger moved, enable always trigger removed,
      enable always trigger truncated;
  $create$, name, name || '_written', name || '_changes');
  update change_feeds set triggers = change_triggers(name) where table_name = name;
  execute format('grant select on %I to practice_data_api', name);
  execute format('grant select, insert, update, delete on %I to practice_data_writer', name);
end $procedure$;

call publish('organizations', 'updated_at', 'id name created_at updated_at');
call publish('clinics', null, 'id clinic_pims_id name time_zone url organization');
call publish('products', 'modified_at', 'id clinic product_code pims_id product_name retail_price member_price
  member_cancellation_price created_at modified_at');
call publish('pets', 'updated_at', 'id name species breed sex date_of_birth clinic client_id created_at updated_at');
call publish('subscriptions', 'updated_at', 'id pet clinic plan_name status start_date end_date cancelled_at price
  billing_frequency auto_renew created_at updated_at');
call publish('pet_benefits', 'updated_at', 'id pet subscription benefit_name benefit_description wellness_plan_name
  is_addon revenue_to_recognize_per_unit retail_value provided remaining is_unlimited rounding_addition is_perk
  in_kind_discount parent_petbenefit created_at updated_at inactivation_date activation_date product_ids');
call publish('payment_plans', 'updated_at', 'id subscription pet clinic status payment_amount number_of_payments
  payments_made frequency next_payment_date created_at updated_at');
call publish('payment_intents', 'updated_at', 'id clinic_name clinic_id pet subscription wellnes_plan_name
  payment_amount payment_split.to_Platform payment_split.to_Processor payment_split.to_Clinic scheduled_date
  captured_date paid isRefunded IsTest created_at updated_at isModifyCatchupPayment payment_modifications
  processor_payment_intent_id attempt_number original_amount_received refunded_amount');
call publish('cancellation_payment_intents', 'updated_at', 'id clinic_name clinic_id date discounted
  discounted_amount new_price percent_discount pet subscription wellnes_plan_name payments payment_amount
  payment_or_refund paymentIntent_or_refund_id total_benefits_consumed_at_retail_price
  total_benefits_consumed_at_discounted_price reason early_cancellation_fee refund_ids isSucceeded IsTest created_at
  updated_at');
call publish('invoices', 'updated_at', 'id home_clinic servicing_clinic client_id pet invoice_pims_id invoice_date
  status subtotal discount tax total is_deleted deleted_at created_at updated_at');
call publish('invoice_lines', 'updated_at', 'id invoice clinic pet invoice_line_pims_id product_code product_name
  quantity unit_price discount total is_deleted deleted_at created_at updated_at');
call publish('consumption_logs', 'updated_at', 'id home_clinic servicing_clinic invoice_pims_id invoice_date
  invoice_line invoice_line_aje_delta_discounted invoice_line_aje_delta_gross invoice_line_pims_id pet pet_benefit
  product_code product_name qty_available_on_plan qty_consumed qty_in_plan qty_out_of_plan qty_remaining
  revenue_in_plan_total revenue_out_of_plan_total revenue_to_recognize_total revenue_to_recognize_per_unit
  is_unlimited_benefit subscription created_at updated_at is_deleted');
call publish('charges', 'updated_at', 'id home_clinic servicing_clinic invoice invoice_pims_id payment_method_id
  status original_amount current_amount net_paid paid_amount overpaid_amount outstanding_balance refunded_amount
  created_at updated_at');
call publish('charge_payments', 'updated_at', 'id currency status amount charge created_at updated_at');
call publish('charge_adjustments', 'updated_at', 'id charge amount reason created_at updated_at');
call publish('charge_refunds', 'updated_at', 'id refund_date amount charge created_at updated_at');

-- Writes down how far all transactions have ended, for a later run of the server to know how far it agrees with this one.
create function change_mark() returns void language plpgsql security definer set search_path = pg_catalog, pg_temp
as $function$
declare
  own constant integer := home.change_timeline();
  started constant timestamptz := pg_postmaster_start_time();
  newest home.change_marks;
  lowest bigint; ceiling bigint; ended pg_lsn;
begin
  if pg_is_in_recovery() then return; end if;
  -- Nobody may have a cursor of a mark that a crash can lose.
  perform set_config('synchronous_commit', 'on', true) where current_setting('synchronous_commit') = 'off';
  select * into newest from home.change_marks order by timeline desc limit 1;
  select home.change_base() + pg_snapshot_xmax(pg_current_snapshot())::text::bigint into ceiling;
  if (newest.timeline, newest.started_at) is distinct from (own, started) then
    lock table home.change_marks in share row exclusive mode;
    -- Timelines that this server has not come to are of another cluster.
    delete from home.change_marks where timeline > own;
    select * into newest from home.change_marks order by timeline desc limit 1;
  -- Written once a minute where nothing happens, so that its age tells whether there was a run without a mark.
  elsif (newest.marked_at between
    clock_timestamp() - case newest.proven when ceiling then interval '1 min' else interval '0.5 s' end and clock_timestamp()
  ) then return;
  end if;

  if (newest.timeline, newest.started_at) is distinct from (own, started) then
    if newest.timeline = own then
      -- Where the run before ended and this one began. What was written meanwhile by a run without a mark may be another
      -- history, so it is known only of a run whose mark is not much older than its end.
      ended := case
        when pg_last_wal_replay_lsn() is not null then
          case when newest.marked_at > started - interval '5 min' then greatest(pg_last_wal_replay_lsn(), (
            -- The page on which this run began to write: on those before it, half a record may follow the last whole one.
            -- What no commit waits for is flushed by whole pages, so readers may have seen the log up to there.
            select '0/0'::pg_lsn + div(checkpoint_lsn - '0/0', page) * page
            from pg_control_checkpoint(), cast(current_setting('wal_block_size') as numeric) page
            -- Only the checkpoint at the end of the recovery: others write more before their record.
            where checkpoint_lsn = redo_lsn and current_setting('wal_level') <> 'minimal'
          )) end
        -- Only the checkpoint of a shutdown: others begin before their record is written.
        else (
          select checkpoint_lsn from pg_control_checkpoint()
          where checkpoint_lsn = redo_lsn and checkpoint_time < started
            and newest.marked_at > checkpoint_time - interval '5 min'
        )
      end;
    -- The end of the recovery, if that was of a standby: after a crash it would be another's. A promotion replays each whole
    -- record that was received, unless the recovery had a target before.
    elsif pg_last_wal_receive_lsn() is not null then
      ended := greatest(pg_last_wal_replay_lsn(), case when not exists (
        select from pg_settings where name ~ '^recovery_target(_lsn|_name|_time|_xid)?$' and setting <> ''
      ) then pg_last_wal_receive_lsn() end);
    end if;
    update home.change_marks set
      durable_until = greatest(durable_until, ended),
      timeline = case timeline when own then (select least(min(timeline), 0) - 1 from home.change_marks) else timeline end
    where timeline = newest.timeline and timeline > 0;
    insert into home.change_marks (timeline, started_at, proven, kept_from)
      values (own, started, 0, coalesce(newest.kept_from, 0));
    -- A server that restarts again and again for weeks has fewer.
    delete from home.change_marks
    where timeline < 0 and timeline >= (select min(timeline) + 1000 from home.change_marks);
  end if;

  select home.change_base() + pg_snapshot_xmin(pg_current_snapshot())::text::bigint into lowest;
  ceiling := home.change_base() + pg_current_xact_id()::text::bigint;
  update home.change_marks set
    proven = case lowest when ceiling then ceiling + 1 else lowest end,
    durable_until = pg_current_wal_insert_lsn(),
    marked_at = clock_timestamp()
  where timeline = own;
  if (select at from home.change_times order by position desc limit 1)
    between clock_timestamp() - interval '1 min' and clock_timestamp() then return; end if;
  -- The clock was set back: with these rows, newer changes would have no time until the clock reaches them.
  delete from home.change_times where at > clock_timestamp();
  insert into home.change_times values (ceiling, clock_timestamp()) on conflict do nothing;
end $function$;

-- Forgets the order of more than 31 days ago, and the removals before: only cursors that have expired need those. A cursor
-- that is used is never below what the mark proves. Each minute, it looks at another 2 MiB of the removals.
create function change_forget() returns void language plpgsql security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_bitmapscan = off as $function$
declare
  newest home.change_marks;
  oldest bigint;
  blocks constant numeric := 2097152 / current_setting('block_size')::numeric;
  steps constant numeric := greatest(ceil(pg_relation_size('home.removals') / 2097152.0), 1);
  first constant numeric := blocks * mod(floor(extract(epoch from clock_timestamp()) / 60), steps);
begin
  if pg_is_in_recovery() then return; end if;
  select * into newest from home.change_marks order by timeline desc limit 1;
  select max(position) into oldest from home.change_times
    where at < clock_timestamp() - interval '31 days' and position <= newest.proven;
  if oldest > newest.kept_from then
    update home.change_marks set kept_from = oldest where timeline = newest.timeline;
    delete from home.change_times where position < oldest;
  end if;
  -- The place of a reader who has seen all is one below the mark.
  delete from home.removals
    where ctid >= format('(%s,0)', trunc(first))::tid and ctid < format('(%s,0)', trunc(first + blocks))::tid
      and change_position < newest.kept_from - 1;
end $function$;

-- The feeds: whole ones have their triggers and the indexes that readers use. One is settled where its order is the one that
-- it was, with the triggers of its beginning: whoever disables or drops one, writes, and makes it again, leaves another.
create function change_feed_states() returns table (table_name text, is_whole boolean, is_settled boolean, triggers text)
language sql stable set search_path = pg_catalog, pg_temp as $function$
  select f.table_name, t.triggers is not null,
    coalesce(f.place = home.change_place(f.table_name) and f.triggers = t.triggers, false), t.triggers
  from home.change_feeds f cross join lateral home.change_triggers(f.table_name) t (triggers)
$function$;

-- Begins the order of a feed anew where its table is not what it was: after a restore, an upgrade, in a copy, or where
-- triggers were not those that they are. It waits for indexes and triggers, which a restore makes last; until then, readers
-- are refused. It looks for the highest position before it locks writers out: what they write meanwhile has a position of
-- this cluster.
create function change_begin() returns void language plpgsql security definer set search_path = pg_catalog, pg_temp
set lock_timeout = '3s' set enable_seqscan = off set enable_bitmapscan = off as $function$
declare
  feed text; fired text; unsettled text;
  highest bigint := -1; found bigint;
begin
  if pg_is_in_recovery() or (select bool_and(is_settled) from home.change_feed_states()) then return; end if;
  if not pg_try_advisory_xact_lock('home.change_feeds'::regclass::oid::bigint) then return; end if;
  if not (select bool_and(is_whole) from home.change_feed_states()) then
    update home.change_feeds set token = home.change_token(), place = ''
      where place <> '' and table_name in (select s.table_name from home.change_feed_states() s where not is_whole);
    return;
  end if;
  select string_agg(triggers, ',' order by table_name),
      string_agg(format('home.%I', table_name), ', ' order by table_name) filter (where not is_settled)
    into fired, unsettled from home.change_feed_states();
  -- Postgres ends an autovacuum for a lock that waits for a second. No writer queues behind this one.
  execute format('lock table %s in share update exclusive mode', unsettled);
  perform set_config('lock_timeout', '500ms', true);
  -- A writer that keeps a table fails this before the tasks are noted: that would be undone, and done again each second.
  begin
    execute format('lock table %s in share row exclusive mode', unsettled);
    raise exception 'free';
  exception when raise_exception then null;
  end;
  -- Invoices and lines that were written without triggers may have been deleted before.
  if exists (
    select from home.change_feed_states() s where not s.is_settled and s.table_name in ('invoices', 'invoice_lines')
  ) then
    insert into home.deletions_unsettled (organization_id, task_id) select distinct organization_id, task_id from home.deletions;
  end if;
  for feed in select table_name from home.change_feed_states() where not is_settled loop
    execute format($query$
      with recursive owners (owner) as (
        (select t.organization_id from home.%1$I t order by t.organization_id limit 1)
        union all
        select (
          select t.organization_id from home.%1$I t where t.organization_id > owner order by t.organization_id limit 1
        )
        from owners where owner is not null
      )
      select max((select max(t.change_position) from home.%1$I t where t.organization_id = owner)) from owners
      $query$, feed) into found;
    highest := greatest(highest, found);
  end loop;
  highest := greatest(highest, (select max(change_position) from home.removals));
  -- A new base is for all feeds, and one alone is begun anew without it.
  execute format('lock table %s in share row exclusive mode', (
    select string_agg(format('home.%I', table_name), ', ' order by table_name) from home.change_feed_states()
    where not is_settled or highest >= home.change_horizon()
  ));
  if fired is distinct from (select string_agg(triggers, ',' order by table_name) from home.change_feed_states()) then
    return;
  end if;
  if highest >= home.change_horizon() then
    -- Ids that were given meanwhile are below it.
    highest := greatest(highest, home.change_ceiling() + age(pg_snapshot_xmax(pg_current_snapshot())::xid));
    execute format(
      'create or replace function home.change_base() returns bigint language sql stable parallel safe return %s',
      highest + 1
    );
  end if;
  for feed in select table_name from home.change_feed_states() where not is_settled loop
    execute format('alter table home.%I enable always trigger zz_written, enable always trigger moved,
      enable always trigger removed, enable always trigger truncated', feed);
    update home.change_feeds
      set token = home.change_token(), place = home.change_place(table_name), triggers = home.change_triggers(table_name)
      where table_name = feed;
  end loop;
  -- Timelines are of a cluster. The new mark is the first one that the new order has.
  delete from home.change_marks where proven > home.change_ceiling() or timeline > home.change_timeline();
  delete from home.change_times where position > home.change_ceiling();
end $function$;
