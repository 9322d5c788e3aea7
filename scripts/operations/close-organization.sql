-- Closes the intake of an organization and deletes its records. Idempotent. As the role that migrated:
-- psql --dbname="$DATABASE_URL" --set=organization=org_1 --file=close-organization.sql
\set ON_ERROR_STOP on
update intake_secrets set revoked_at = now() where organization_id = :'organization' and revoked_at is null;
insert into intake_secrets (organization_id, id, secret, revoked_at) values (:'organization', 'offboarded', '', now())
  on conflict do nothing;
select set_config('offboard.organization', :'organization', false);
do $$ declare name text; begin
  for name in select table_name from change_feeds where table_name <> 'organizations' loop
    execute format('delete from %I where organization_id = %L', name, current_setting('offboard.organization'));
  end loop;
end $$;
