-- Deletions: the tasks that deliveries schedule, and their facts.
--
-- A fact outlives the row that it is about. Once it is committed, the trigger `zz_written` marks each row that it names as it
-- is written, whoever writes it. A transaction that looked before may still bring such a row: the sweep of the worker waits
-- for those that were open, and marks again as they end. So neither the worker nor a writer waits for the other.

-- A task for each delivery to the intake. Its id is derived from the organization and the key.
create table deletion_tasks (
  organization_id text collate "C" not null, id uuid not null, primary key (organization_id, id),
  idempotency_key text collate "C" not null, fingerprint bytea not null,
  payload         jsonb, -- The items; null once TASK_RETENTION is over.
  invoices_count  integer not null, invoice_lines_count integer not null,
  is_known        boolean not null default true, -- The organization had a row or a signing secret. All others share a limit.
  received_at     timestamptz not null, scheduled_for timestamptz not null,
  state           text not null default 'scheduled' check (state in ('scheduled', 'running', 'completed', 'dead', 'cancelled')),
  attempts        integer not null default 0,
  due_at          timestamptz, -- When to run. One that runs is taken over then, unless its worker has its row locked.
  claim_token     uuid,
  started_at      timestamptz, finished_at timestamptz,
  last_error      text, outcome jsonb
);

-- Without a leading organization: for tasks of all organizations.
create index deletion_tasks_open    on deletion_tasks (due_at) where state in ('scheduled', 'running');
create index deletion_tasks_ended   on deletion_tasks (state, finished_at, organization_id, id)
  where state = 'dead' or state in ('completed', 'cancelled') and payload is not null;
create index deletion_tasks_unknown on deletion_tasks (due_at) where state = 'scheduled' and not is_known;
create index deletion_tasks_order   on deletion_tasks (organization_id, scheduled_for, id);
create index deletion_tasks_state   on deletion_tasks (organization_id, state, scheduled_for, id);

-- A sender never repeats a delivery that was confirmed, so a crash may lose none.
create function commit_durably() returns trigger language plpgsql set search_path = pg_catalog, pg_temp
as $function$ begin perform set_config('synchronous_commit', 'on', true); return null; end $function$;
create trigger durable before insert on deletion_tasks
  for each statement when (current_setting('synchronous_commit') = 'off') execute function commit_durably();

-- The key by which a writer looks for the facts of an id: narrow, and with room for ids of any length.
create function deletion_key(organization_id text, id text) returns bigint language sql immutable parallel safe
return hashtextextended(id collate "C", hashtextextended(organization_id collate "C", 0));

-- The facts: each item of each task, with its verdict, and the other ids that it gives: its row must match them. A verdict is
-- `deleted`; `failed`: a row could not be marked; `not_found`: judged when its row comes; `forgotten`: about to go; or the
-- reason of a mismatch. A fact that holds deletes each row with its id, and each line of this invoice.
create table deletions (
  organization_id text collate "C" not null, task_id uuid not null,
  kind            text collate "C" not null check (kind in ('invoice', 'line')),
  item            integer not null,
  id              text collate "C" not null,
  clinic_id       text collate "C", client_id text collate "C", invoice_id text collate "C",
  deleted_at      timestamptz not null, undone_at timestamptz,
  verdict         text collate "C" not null,
  holds           boolean not null generated always as (
    verdict in ('deleted', 'failed')
    or verdict = 'not_found' and clinic_id is null and client_id is null and invoice_id is null
  ) stored,
  -- With the organization in front, a plan of a time without statistics would read all its facts by this index.
  primary key (task_id, kind, item, organization_id)
);
create index deletions_key        on deletions (deletion_key(organization_id, id));
create index deletions_remembered on deletions (organization_id) where verdict = 'not_found';
create index deletions_forgotten  on deletions (organization_id, task_id) where verdict = 'forgotten';

-- Tasks whose facts are to be applied again, for transactions that were open at `since`. Workers, operators and writers of rows
-- only add, so that none waits.
create table deletions_unsettled (
  organization_id text collate "C" not null, id uuid not null default gen_random_uuid(), primary key (organization_id, id),
  task_id         uuid not null,
  since           timestamptz not null default clock_timestamp(),
  written_by      xid8 not null default pg_current_xact_id()
);
create index deletions_unsettled_order on deletions_unsettled (written_by, organization_id, task_id);
create index deletions_unsettled_task  on deletions_unsettled (organization_id, task_id);

-- The verdict on an item: what it says of its row must fit. The first reason counts.
create function deletion_verdict(
  invoice_id text, clinic_id text, client_id text, invoice text, clinics text[], client text
) returns text language sql immutable parallel safe return case
  when invoice_id is not null and invoice_id is distinct from invoice then 'invoice_mismatch'
  when clinic_id is not null and clinic_id = any (clinics) is not true then 'clinic_mismatch'
  when client_id is not null and client_id is distinct from client then 'client_mismatch'
  else 'deleted'
end;

-- The rows that facts name: each invoice and line by its id, and each line of an invoice. `fits`: the verdict on the item.
-- `is_next`: a line is marked after its invoice.
create view deletion_rows as
  select d.*, 'invoices' as table_name, null as line, t.id as invoice, t.is_deleted, t.deleted_at as row_deleted_at,
    t.updated_at as row_updated_at,
    deletion_verdict(null, d.clinic_id, d.client_id, null, array[t.home_clinic, t.servicing_clinic], t.client_id) as fits,
    true as is_next
  from deletions d join invoices t on t.organization_id = d.organization_id and t.id = d.id
  where d.kind = 'invoice'
  union all
  select d.*, 'invoice_lines', t.id, t.invoice, t.is_deleted, t.deleted_at, t.updated_at,
    deletion_verdict(d.invoice_id, d.clinic_id, null, t.invoice, array[t.clinic], null), true
  from deletions d join invoice_lines t on t.organization_id = d.organization_id and t.id = d.id
  where d.kind = 'line'
  union all
  select d.*, 'invoice_lines', t.id, t.invoice, t.is_deleted, t.deleted_at, t.updated_at, null,
    not exists (select from invoices i where i.organization_id = d.organization_id and i.id = d.id and not i.is_deleted)
  from deletions d join invoice_lines t on t.organization_id = d.organization_id and t.invoice = d.id
  where d.kind = 'invoice';

-- What is left to be done: rows to be marked or unmarked, and facts to be judged, since their row came. A mark of another time
-- than that of a deletion is the loader's. A fact that is about to be forgotten is kept if it has marked a row.
create view deletion_work as select * from (
  select r.*,
    r.undone_at is null and r.holds and not r.is_deleted and r.is_next as to_mark,
    r.undone_at is not null and r.is_deleted and (
      select bool_or(f.undone_at is not null and f.deleted_at = r.row_deleted_at) and not bool_or(f.undone_at is null and f.holds)
      from deletions f
      where deletion_key(f.organization_id, f.id)
          = any (array[deletion_key(r.organization_id, r.line), deletion_key(r.organization_id, r.invoice)])
        and f.organization_id = r.organization_id and f.id = case when f.kind = 'line' then r.line else r.invoice end
    ) as to_unmark,
    r.undone_at is null and (
      r.verdict = 'not_found' and r.fits is not null
      or r.verdict = 'forgotten' and r.is_deleted and r.row_deleted_at = r.deleted_at
    ) as to_judge
  from deletion_rows r
) work
where to_mark or to_unmark or to_judge;

-- The work of the worker. Each call of such a function is a transaction of its own, which keeps nobody waiting, and which Citus
-- runs beside the rows. They have the search path of their caller, since triggers of others look up names in it.
--
-- Its settings: rows are looked up by their ids, however few or many the planner takes them for; without the index by
-- invoice, as in a first load, the lines are read once.
create function deletion_settings() returns void language sql as $function$
  select set_config('lock_timeout', '500ms', true), set_config('enable_seqscan', 'off', true),
    set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true),
    set_config('enable_nestloop', has_index::text, true), set_config('enable_hashjoin', (not has_index)::text, true),
    set_config('plan_cache_mode', case when to_regclass('pg_dist_partition') is null then 'force_generic_plan' else 'auto' end, true)
  from (select to_regclass('home.invoice_lines_search_invoice') is not null) i (has_index)
$function$;

-- Marks invoices or lines at their times, or takes away the marks of those without one. A row that was deleted before keeps its
-- first time; its `updated_at` is new. It skips rows that others hold, and returns their number, and the ids of those whose
-- change a trigger of others drops. For an attempt at a task, its lock of the task is the lease: all is null if another one
-- has the task.
create function mark_rows(
  organization text, table_name text, ids text[], times timestamptz[], task uuid, token uuid, at timestamptz,
  out locked integer, out dropped text[]
) language plpgsql set lock_timeout = '500ms' set enable_nestloop = on set enable_seqscan = off set enable_bitmapscan = off
  set enable_hashjoin = off set enable_mergejoin = off set jit = off as $function$
declare
  last constant timestamptz := '9999-12-31 23:59:59.999999+00';
begin
  if task is not null then
    update home.deletion_tasks t set due_at = at + interval '1 second'
    where t.organization_id = organization and t.id = task and t.claim_token = token and t.state = 'running';
    if not found then return; end if;
  end if;
  perform set_config('practice_data.keep_times', 'on', true);
  if table_name = 'invoices' then
    with held as (
      -- The time is here, since Citus takes no function of a column in an UPDATE.
      select t.id, m.deleted, greatest(now(), least(t.updated_at + interval '1 microsecond', last)) as changed_at
      from unnest(ids, times) m (id, deleted) cross join lateral (
        select i.id, i.updated_at from home.invoices i
        where i.organization_id = organization and i.id = m.id for no key update skip locked
      ) t
    ),
    marked as (
      update home.invoices t set
        is_deleted = h.deleted is not null,
        deleted_at = case when t.is_deleted and h.deleted is not null then t.deleted_at else h.deleted end,
        updated_at = h.changed_at
      from held h where t.organization_id = organization and t.id = h.id
      returning t.id
    )
    select cardinality(ids) - (select count(*) from held), array(select id from held except select id from marked)
      into locked, dropped;
  else
    with held as (
      select t.id, m.deleted, greatest(now(), least(t.updated_at + interval '1 microsecond', last)) as changed_at
      from unnest(ids, times) m (id, deleted) cross join lateral (
        select i.id, i.updated_at from home.invoice_lines i
        where i.organization_id = organization and i.id = m.id for no key update skip locked
      ) t
    ),
    marked as (
      update home.invoice_lines t set
        is_deleted = h.deleted is not null,
        deleted_at = case when t.is_deleted and h.deleted is not null then t.deleted_at else h.deleted end,
        updated_at = h.changed_at
      from held h where t.organization_id = organization and t.id = h.id
      returning t.id
    )
    select cardinality(ids) - (select count(*) from held), array(select id from held except select id from marked)
      into locked, dropped;
  end if;
end $function$;

-- The end of an attempt by the number of locked rows, and the refused ones, whose items have failed: its task is completed, or
-- it says why not. Null if another attempt has the task. What was not found is forgotten where the organization has more than
-- `most` remembered.
create function finish_deletion(
  organization text, task uuid, token uuid, at timestamptz, most integer, locked integer, refused text[], reason text
) returns jsonb language plpgsql as $function$
declare
  result jsonb;
begin
  perform from home.deletion_tasks t
  where t.organization_id = organization and t.id = task and t.claim_token = token and t.state = 'running' for no key update;
  if not found then return null; end if;
  if refused <> '{}' then
    update home.deletions d set verdict = 'failed' from home.deletion_rows r
    where r.organization_id = organization and r.task_id = task and r.table_name || ' ' || coalesce(r.line, r.invoice) = any (refused)
      and d.organization_id = organization and d.task_id = task and d.kind = r.kind and d.item = r.item;
  elsif locked > 0 then
    return '{"postponed": "Other transactions hold rows that it deletes"}';
  end if;
  select jsonb_build_object(
      'invoices', '{"deleted": 0, "not_found": 0, "clinic_mismatch": 0, "client_mismatch": 0}'
        || coalesce(jsonb_object_agg(verdict, n) filter (where kind = 'invoice'), '{}'),
      'invoice_lines', '{"deleted": 0, "not_found": 0, "clinic_mismatch": 0, "invoice_mismatch": 0}'
        || coalesce(jsonb_object_agg(verdict, n) filter (where kind = 'line'), '{}'),
      -- With `is_deleted` in the condition, an index of all deleted lines may be read.
      'lines_of_invoices', (
        select count(distinct r.line) filter (where r.is_deleted) from home.deletion_rows r
        where r.organization_id = organization and r.task_id = task and r.undone_at is null and r.holds
          and r.kind = 'invoice' and r.table_name = 'invoice_lines'))
    into result
    from (
      select d.kind, d.verdict, count(*) as n from home.deletions d
      where d.organization_id = organization and d.task_id = task and d.undone_at is null group by 1, 2
    ) items;
  if refused <> '{}' then
    update home.deletion_tasks t set outcome = result where t.organization_id = organization and t.id = task;
    return jsonb_build_object('failed', format('%s rows were not marked: %s', cardinality(refused), reason));
  end if;
  update home.deletion_tasks t
  set state = 'completed', outcome = result, due_at = null, claim_token = null, last_error = null, finished_at = at
  where t.organization_id = organization and t.id = task;
  if result @? '$.*.not_found ? (@ > 0)' and exists (
    select from home.deletions d where d.organization_id = organization and d.verdict = 'not_found' offset most
  ) then
    update home.deletions d set verdict = 'forgotten'
    where d.organization_id = organization and d.task_id = task and d.verdict = 'not_found' and d.undone_at is null;
  end if;
  return result;
end $function$;

-- The run of a task. If it has more than 1,000 rows, or one that the database refuses, they are left to be marked, and it
-- returns so. Lines come after their invoice, which another task may hold, so that both have one time.
create function run_deletion(organization text, task uuid, token uuid, at timestamptz, most integer)
returns jsonb language plpgsql as $function$
declare
  items jsonb; name text; named record; marked record;
  total integer := 0; locked integer := 0;
begin
  perform home.deletion_settings();
  select t.payload into items from home.deletion_tasks t
  where t.organization_id = organization and t.id = task and t.claim_token = token and t.state = 'running' for no key update;
  if not found then return null; end if;
  -- The items are stored as facts, each with its verdict. In a later attempt, those that failed are tried again.
  if exists (select from home.deletions d where d.organization_id = organization and d.task_id = task) then
    update home.deletions d set verdict = 'deleted'
    where d.organization_id = organization and d.task_id = task and d.verdict = 'failed';
  else
    insert into home.deletions (organization_id, task_id, kind, item, id, clinic_id, client_id, invoice_id, deleted_at, verdict)
    select organization, task, 'invoice', n.item, n.id, n.clinic_id, n.client_id, null, at, case when t.id is null then 'not_found'
      else home.deletion_verdict(null, n.clinic_id, n.client_id, null, array[t.home_clinic, t.servicing_clinic], t.client_id) end
    from rows from (
      jsonb_to_recordset(items -> 'invoices') as (invoice_id text, clinic_id text, client_id text)
    ) with ordinality n (id, clinic_id, client_id, item)
    left join home.invoices t on t.organization_id = organization and t.id = n.id
    union all
    select organization, task, 'line', n.item, n.id, n.clinic_id, null, n.invoice_id, at, case when t.id is null then 'not_found'
      else home.deletion_verdict(n.invoice_id, n.clinic_id, null, t.invoice, array[t.clinic], null) end
    from rows from (
      jsonb_to_recordset(items -> 'invoice_lines') as (invoice_line_id text, clinic_id text, invoice_id text)
    ) with ordinality n (id, clinic_id, invoice_id, item)
    left join home.invoice_lines t on t.organization_id = organization and t.id = n.id;
    insert into home.deletions_unsettled (organization_id, task_id) values (organization, task);
  end if;
  begin
    foreach name in array array['invoices', 'invoice_lines'] loop
      -- Those that were deleted before, too: they keep their time, and are changed.
      select array_agg(distinct coalesce(r.line, r.invoice)) as ids, max(r.deleted_at) as deleted_at
      into named from home.deletion_rows r
      where r.organization_id = organization and r.task_id = task and r.table_name = name and r.holds and r.undone_at is null
        and r.is_next and (not r.is_deleted or r.row_deleted_at is distinct from r.deleted_at);
      continue when named.ids is null;
      total := total + cardinality(named.ids);
      if total > 1000 then return '{"more": true}'; end if;
      select * into marked from home.mark_rows(
        organization, name, named.ids, array_fill(named.deleted_at, array[cardinality(named.ids)]), null, null, null);
      locked := locked + marked.locked;
      if marked.dropped <> '{}' then raise exception 'A trigger dropped the change of a row'; end if;
    end loop;
  exception when others then
    -- But for an outage, or a table that others hold.
    if sqlstate ~ '^(08|25P03|40001|40P01|53|55P03|57P)' then raise; end if;
    return '{"more": true}';
  end;
  return home.finish_deletion(organization, task, token, at, most, locked, '{}', null);
end $function$;

-- A plan takes an organization to have very many rows, so that an index of ids serves every look: statistics of a time when
-- each had one row would make any index of the organization seem as good.
alter table invoices alter column organization_id set (n_distinct = 1);
alter table invoice_lines alter column organization_id set (n_distinct = 1);
