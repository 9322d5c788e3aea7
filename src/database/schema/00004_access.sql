-- Access: API keys, signing secrets of the intake, the audit log, and the privileges of the roles.

-- The API keys. Of a key, only its SHA-256 is stored.
create table api_keys (
  organization_id text collate "C" not null, id text collate "C" not null, primary key (organization_id, id),
  name text not null, prefix text not null, -- The first characters of the key, to recognize it.
  key_hash bytea not null unique,
  created_at timestamptz not null default now(), last_used_on date, revoked_at timestamptz
);

-- The secrets with which organizations sign their deliveries.
create table intake_secrets (
  organization_id text collate "C" not null, id text collate "C" not null, primary key (organization_id, id),
  secret text not null, created_at timestamptz not null default now(), revoked_at timestamptz
);

-- The changes that operators made. The service can only add to it.
create table audit_log (
  organization_id text collate "C" not null, id uuid not null default gen_random_uuid(), primary key (organization_id, id),
  at timestamptz not null default clock_timestamp(), actor text not null, source text not null,
  action text not null, target text not null, result text not null -- The target: a task, a key or a secret.
);
-- `audit list` reads all entries, newest first.
create index audit_log_at     on audit_log (at desc);
create index audit_log_target on audit_log (organization_id, target, at desc);

-- The data API can only select; this is the one trace that it leaves.
create function touch_api_key(hash bytea) returns void language sql security definer set search_path = pg_catalog, pg_temp
begin atomic
  update api_keys set last_used_on = (now() at time zone 'UTC')::date
  where key_hash = hash and last_used_on is distinct from (now() at time zone 'UTC')::date;
end;

grant select on migrations to practice_data_api, practice_data_intake, practice_data_worker, practice_data_writer;

grant select on api_keys, audit_log, change_feeds, change_marks, removals to practice_data_api;
-- Neither what a task deletes, nor why an attempt failed: that text names tables and constraints.
grant select (
  organization_id, id, idempotency_key, state, received_at, scheduled_for, started_at, finished_at, attempts,
  invoices_count, invoice_lines_count, outcome
) on deletion_tasks to practice_data_api;
grant select (organization_id, task_id, verdict, undone_at) on deletions to practice_data_api;

grant select on deletions_unsettled to practice_data_api, practice_data_intake;
grant select on intake_secrets to practice_data_intake;
grant select (organization_id) on organizations to practice_data_intake, practice_data_worker;
grant select, insert (
  organization_id, id, idempotency_key, fingerprint, payload, invoices_count, invoice_lines_count, received_at,
  scheduled_for, due_at, is_known
) on deletion_tasks to practice_data_intake;

grant select, update (is_deleted, deleted_at, updated_at) on invoices, invoice_lines to practice_data_worker;
grant select, update (
  state, attempts, due_at, claim_token, started_at, finished_at, last_error, outcome, payload
) on deletion_tasks to practice_data_worker;
grant select, insert, update, delete on deletions to practice_data_worker;
grant select, insert, update (written_by), delete on deletions_unsettled to practice_data_worker;
grant select on deletion_rows, deletion_work to practice_data_worker;
grant select, insert on audit_log to practice_data_worker;
grant select on change_feeds to practice_data_worker;

grant execute on function touch_api_key to practice_data_api;
grant execute on function change_begin, change_mark, change_forget to practice_data_api, practice_data_worker;

-- The privileges of others than the owner and the roles of the service: on its tables, and on its functions that do more than
-- their caller may. Some platforms grant them by default.
create function grants_to_others() returns table (kind text, object text, grantee text) language sql stable
set search_path = pg_catalog, pg_temp as $function$
  with own as (select relnamespace as id from pg_class where oid = 'home.migrations'::regclass),
  granted as (
    select 'table' as kind, relname::text as object, relowner as owner, acl from own
    join pg_class c on relnamespace = own.id and (
      exists (select from pg_trigger where tgrelid = c.oid and tgname = 'zz_written') or relname in (
        'columns_of_records', 'migrations', 'change_feeds', 'change_marks', 'change_times', 'removals', 'deletion_tasks',
        'deletions', 'deletions_unsettled', 'deletion_rows', 'deletion_work', 'api_keys', 'intake_secrets', 'audit_log'
      ))
    cross join lateral (select relacl as acl union all select attacl from pg_attribute where attrelid = c.oid) acls
    union all
    select 'routine', oid::regprocedure::text, proowner, coalesce(proacl, acldefault('f', proowner)) from own
    join pg_proc on pronamespace = own.id and proname in (
      'touch_api_key', 'change_begin', 'change_mark', 'change_forget', 'record_removed', 'records_truncated',
      'invoices_written', 'invoice_lines_written', 'describe_records', 'validate_records', 'render', 'publish',
      'revoke_from_others'
    )
  )
  select distinct g.kind, g.object, case a.grantee when 0 then 'public' else a.grantee::regrole::text end
  from granted g, aclexplode(g.acl) a
  where a.grantee <> g.owner and a.grantee not in (select oid from pg_roles where rolname in (
    'practice_data_api', 'practice_data_intake', 'practice_data_worker', 'practice_data_writer'))
$function$;

create procedure revoke_from_others() language plpgsql as $procedure$ declare given record; begin
  for given in select * from grants_to_others() loop
    execute format('revoke all on %s %s from %s cascade', given.kind, given.object, given.grantee);
  end loop;
end $procedure$;
call revoke_from_others();

-- Roles belong to the server: logins of its other databases have no business here.
do $connect$ begin
  if pg_has_role((select datdba from pg_database where datname = current_database()), 'usage') then
    execute format('revoke connect on database %I from public', current_database());
    execute format('grant connect on database %I to practice_data_api, practice_data_intake, practice_data_worker,
      practice_data_writer', current_database());
  end if;
end $connect$;
