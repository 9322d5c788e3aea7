-- Deletions: the tasks that deliveries schedule, and their facts.
--
-- A fact outlives the row that it is about. It is committed before any row is marked. From then on, triggers mark each row
-- that is written with the id of a fact, whoever writes it. A transaction that looked before may still bring such a row:
-- the worker notes the transactions that run after the fact was committed, and marks again as they end. So neither the
-- worker nor a writer waits for the other.

create table deletion_tasks (
  organization_id     text collate "C" not null,
  id                  uuid not null,
  idempotency_key     text collate "C" not null,
  fingerprint         bytea not null,
  payload             jsonb,
  invoices_count      integer not null,
  invoice_lines_count integer not null,
  received_at         timestamptz not null,
  scheduled_for       timestamptz not null,
  state               text not null default 'scheduled' check (state in ('scheduled', 'running', 'completed', 'dead', 'cancelled')),
  attempts            integer not null default 0,
  due_at              timestamptz,
  claim_token         uuid,
  started_at          timestamptz,
  finished_at         timestamptz,
  last_error          text,
  outcome             jsonb,
  unsettled_since     timestamptz,
  trace_parent        text,
  is_known            boolean not null default true,
  primary key (organization_id, id)
);

-- Without a leading organization: for tasks of all organizations.
create index deletion_tasks_scheduled on deletion_tasks (due_at) where state = 'scheduled';
create index deletion_tasks_running   on deletion_tasks (due_at) where state = 'running';
create index deletion_tasks_unsettled on deletion_tasks (unsettled_since) where unsettled_since is not null;
create index deletion_tasks_dead      on deletion_tasks (finished_at, organization_id, id) where state = 'dead';
create index deletion_tasks_payloads  on deletion_tasks (finished_at) where state = 'completed' and payload is not null;
create index deletion_tasks_cancelled on deletion_tasks (finished_at) where state = 'cancelled' and payload is not null;
create index deletion_tasks_unknown   on deletion_tasks (due_at) where state = 'scheduled' and not is_known;
create index deletion_tasks_order     on deletion_tasks (organization_id, state, scheduled_for, id);
-- Nulls first, though there are none: no other index has this order, which the planner could take and sort the rest.
create index deletion_tasks_turns     on deletion_tasks (organization_id nulls first, due_at) where state = 'scheduled';

comment on table deletion_tasks is 'A task for each delivery to the intake. Its id is derived from the organization and the key';
comment on column deletion_tasks.idempotency_key is 'Idempotency key of the delivery: one task has it';
comment on column deletion_tasks.scheduled_for is 'Time at which it was first due';
comment on column deletion_tasks.finished_at is 'Time at which it was completed, cancelled or dead';
comment on column deletion_tasks.last_error is 'The error of the last attempt that failed';
comment on column deletion_tasks.fingerprint is 'Hash of the payload: tells a repeated delivery from another one with the same key';
comment on column deletion_tasks.payload is 'The items; null once TASK_RETENTION is over';
comment on column deletion_tasks.due_at is 'The time to run, or the end of the lease of the worker that runs it';
comment on column deletion_tasks.claim_token is 'The claim of the worker that runs it';
comment on column deletion_tasks.outcome is 'Number of items by verdict';
comment on column deletion_tasks.unsettled_since is 'Time of the deletion, while transactions from before may still bring rows; otherwise null';
comment on column deletion_tasks.is_known is 'False if the organization had neither a row in organizations nor a signing secret: all such tasks share one limit';
comment on column deletion_tasks.trace_parent is 'Trace of the delivery, to which each run is linked';

-- A sender never repeats a delivery that was confirmed, so a crash may lose none.
create function commit_durably() returns trigger language plpgsql set search_path = pg_catalog, pg_temp
as $function$ begin perform set_config('synchronous_commit', 'on', true); return null; end $function$;
create trigger durable before insert on deletion_tasks
  for each statement when (current_setting('synchronous_commit') = 'off') execute function commit_durably();

create table deletions (
  organization_id text collate "C" not null,
  task_id         uuid not null,
  kind            text collate "C" not null check (kind in ('invoice', 'line')),
  item            integer not null,
  id              text collate "C" not null,
  deleted_at      timestamptz not null,
  verdict         text collate "C" not null,
  holds           boolean not null,
  undone_at       timestamptz,
  clinic_id       text collate "C",
  client_id       text collate "C",
  invoice_id      text collate "C",
  is_known        boolean not null,
  primary key (organization_id, task_id, kind, item)
);
-- By a hash, since the id of an item may be of any length. It comes first: statistics of a time when each organization had one
-- fact make any index of the organization as cheap. Those of tasks with one item do so too: `remembered` has the whole key.
create index deletions_id         on deletions (hashtextextended(id, 0), organization_id);
create index deletions_newest     on deletions (deleted_at);
create index deletions_remembered on deletions (organization_id, task_id, kind, item) where verdict = 'not_found';
create index deletions_unknown    on deletions (deleted_at) where verdict = 'not_found' and not is_known;

comment on table deletions is 'The facts: each item of each task, with its verdict';
comment on column deletions.kind is 'invoice or line';
comment on column deletions.deleted_at is 'Time of the deletion, copied to marked rows';
comment on column deletions.verdict is 'deleted, not_found, or the reason of a mismatch. An item that was not found is judged once, when its row comes';
comment on column deletions.holds is 'True if each row with this id is deleted, and each line of this invoice';
comment on column deletions.undone_at is 'Time at which an operator undid the deletion';
comment on column deletions.clinic_id is 'Given by the item: must match the row';
comment on column deletions.client_id is 'Given by the item: must match the row';
comment on column deletions.invoice_id is 'Given by the item: must match the row';
comment on column deletions.is_known is 'True if the organization had a row in organizations';

create table deletion_arrivals (
  organization_id text collate "C" not null,
  task_id         uuid not null,
  kind            text collate "C" not null,
  item            integer not null,
  verdict         text collate "C" not null
);
create index deletion_arrivals_item on deletion_arrivals (organization_id, task_id, kind, item);
comment on table deletion_arrivals is 'Verdicts on rows that came after their deletion. Writers only add, so that none waits; the worker moves them to the facts';
comment on column deletion_arrivals.verdict is 'deleted, or the reason of a mismatch';

create table deletion_settler (
  is_only boolean primary key default true check (is_only),
  holder  uuid,
  until   timestamptz not null default '-infinity'
);
insert into deletion_settler default values;
comment on table deletion_settler is 'The lease of the worker that settles deletions';

-- The verdict on an item by what it says of its row, and what the row is. The first reason counts.
create function invoice_verdict(
  clinic_id text, client_id text, home_clinic text, servicing_clinic text, client text
) returns text language sql immutable parallel safe return case
  when clinic_id is not null and clinic_id is distinct from home_clinic and clinic_id is distinct from servicing_clinic
    then 'clinic_mismatch'
  when client_id is not null and client_id is distinct from client then 'client_mismatch'
  else 'deleted'
end;

create function line_verdict(invoice_id text, clinic_id text, invoice text, clinic text) returns text
language sql immutable parallel safe return case
  when invoice_id is not null and invoice_id is distinct from invoice then 'invoice_mismatch'
  when clinic_id is not null and clinic_id is distinct from clinic then 'clinic_mismatch'
  else 'deleted'
end;

-- The time of the deletion of a row that is written; null without one. `comes`: the row has this id from now on, so what
-- is remembered of it is judged. Only the index of ids serves the comparison of two columns. It is planned at each call: a
-- session would keep a plan that was made for few facts.
create function invoice_deleted(written invoices, comes boolean) returns timestamptz language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set plan_cache_mode = force_custom_plan as $function$
declare
  fact record;
  deleted timestamptz;
begin
  for fact in
    select d.*, a.verdict as judged from home.deletions d
    left join home.deletion_arrivals a using (organization_id, task_id, kind, item)
    where (hashtextextended(d.id, 0), d.organization_id) >= (hashtextextended(written.id, 0), written.organization_id)
      and (hashtextextended(d.id, 0), d.organization_id) <= (hashtextextended(written.id, 0), written.organization_id)
      and d.id = written.id and d.kind = 'invoice' and d.undone_at is null and (d.holds or d.verdict = 'not_found')
  loop
    if fact.judged is null and fact.verdict = 'not_found' and comes then
      fact.judged := home.invoice_verdict(
        fact.clinic_id, fact.client_id, written.home_clinic, written.servicing_clinic, written.client_id);
      insert into home.deletion_arrivals values (fact.organization_id, fact.task_id, fact.kind, fact.item, fact.judged);
    end if;
    if fact.holds or fact.judged = 'deleted' then deleted := least(deleted, fact.deleted_at); end if;
  end loop;
  return deleted;
end $function$;

create function line_deleted(written invoice_lines, comes boolean) returns timestamptz language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set plan_cache_mode = force_custom_plan as $function$
declare
  fact record;
  deleted timestamptz;
begin
  for fact in
    -- A look by each id: statistics may make the scan of all facts of an organization as cheap as `or`.
    select d.*, a.verdict as judged from (values (written.id, 'line'), (written.invoice, 'invoice')) named (named, by)
    cross join lateral (
      select * from home.deletions d
      where (hashtextextended(d.id, 0), d.organization_id) >= (hashtextextended(named, 0), written.organization_id)
        and (hashtextextended(d.id, 0), d.organization_id) <= (hashtextextended(named, 0), written.organization_id)
        and d.id = named and d.kind = by offset 0
    ) d
    left join home.deletion_arrivals a using (organization_id, task_id, kind, item)
    where d.undone_at is null and (d.holds or d.verdict = 'not_found')
  loop
    if fact.judged is null and fact.verdict = 'not_found' and comes and fact.kind = 'line' then
      fact.judged := home.line_verdict(fact.invoice_id, fact.clinic_id, written.invoice, written.clinic);
      insert into home.deletion_arrivals values (fact.organization_id, fact.task_id, fact.kind, fact.item, fact.judged);
    end if;
    if fact.holds or fact.judged = 'deleted' then deleted := least(deleted, fact.deleted_at); end if;
  end loop;
  return deleted;
end $function$;

-- Keeps the mark of a row that is updated, and of one that logical replication inserts. The first time of a deletion stays.
create function keep_deleted() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp
as $function$
declare
  comes constant boolean :=
    tg_op = 'INSERT' or (new.organization_id, new.id) is distinct from (old.organization_id, old.id);
  deleted timestamptz;
begin
  if tg_table_name = 'invoices' then
    deleted := home.invoice_deleted(new, comes);
  else
    deleted := home.line_deleted(new, comes);
  end if;
  if deleted is null then return new; end if;
  if tg_op = 'UPDATE' and old.is_deleted then
    deleted := coalesce(old.deleted_at, deleted);
  elsif new.is_deleted then
    return new;
  end if;
  new.is_deleted := true;
  new.deleted_at := deleted;
  return new;
end $function$;

-- Marks the rows that a statement has inserted. One look for each id in a single query costs a COPY little; a trigger for
-- each row would cost it a fifth. Looks are in the order of the index, where each finds the pages of the one before it. The
-- plan is kept for statements of any size, so that it may depend on no number of rows or facts: `limit` and `offset` leave
-- a look by the index alone.
do $marks$ declare name text; kind text; keys text; moved text; begin
  for name, kind, keys, moved in values
    ('invoices', 'invoice', 'select organization_id, id, hashtextextended(id, 0) as hash from written', 'false'),
    ('invoice_lines', 'line', 'select organization_id, n.id, hashtextextended(n.id, 0) as hash from written n
        union all select organization_id, n.id, hashtextextended(n.invoice, 0) from written n', 'new.invoice is distinct from old.invoice')
  loop
    execute format($create$
create function %1$s_inserted() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_memoize = off set enable_incremental_sort = off set jit = off as $function$
declare
  organizations text[];
  ids text[];
begin
  -- There never was a fact. To look for one would read those that were deleted, for as long as a transaction may see them.
  if pg_relation_size('home.deletions') = 0 then return null; end if;
  select array_agg(organization_id), array_agg(id) into organizations, ids from (
    select distinct n.organization_id, n.id from (%3$s order by hash) n
    cross join lateral (
      select from home.deletions d
      where d.organization_id = n.organization_id and hashtextextended(d.id, 0) = n.hash limit 1
    ) d
  ) hits;
  if ids is null then return null; end if;
  -- At once: an UPDATE of each row would take a millisecond, most of it to prepare the checks of the table. Materialized, as
  -- each verdict is left once: statistics of an empty table would have all rows compared with all that are named.
  with named as materialized (
    select hit.organization_id, hit.id, inserted.place, home.%2$s_deleted(inserted.written, true) as deleted
    from unnest(organizations, ids) hit (organization_id, id)
    -- Statistics may be of a time when any index found this row as soon. For this order and limit, only the primary key does.
    cross join lateral (
      select i as written, i.ctid as place from home.%1$s i
      where (i.organization_id, i.id) >= (hit.organization_id, hit.id) and (i.organization_id, i.id) <= (hit.organization_id, hit.id)
      order by i.organization_id, i.id limit 1
    ) inserted
  )
  update home.%1$s t set is_deleted = true, deleted_at = named.deleted from named
  where named.deleted is not null and not t.is_deleted and t.ctid = named.place
    and t.organization_id = named.organization_id and t.id = named.id;
  return null;
end $function$ $create$, name, kind, keys);
    execute format($create$
-- Fired after those of others, which may change the row, and before `zz_written`, which renders it.
create trigger zz_deleted_changed before update on %1$s for each row when (
  old.is_deleted and (not new.is_deleted or new.deleted_at is distinct from old.deleted_at)
  or new.id <> old.id or new.organization_id <> old.organization_id or %2$s
) execute function keep_deleted();
create trigger deleted_inserted after insert on %1$s referencing new table as written
  for each statement execute function %1$s_inserted();
-- Rows of logical replication fire no triggers of statements.
create trigger zz_deleted_replicated before insert on %1$s for each row execute function keep_deleted();
alter table %1$s enable always trigger zz_deleted_changed, enable replica trigger zz_deleted_replicated;
    $create$, name, moved);
  end loop;
end $marks$;

-- Their feeds are whole with these triggers.
update change_feeds set triggers = change_triggers(table_name) where table_name in ('invoices', 'invoice_lines');
