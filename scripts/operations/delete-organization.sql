-- Deletes what close-organization.sql left, once its readers are in step, and revokes its API keys. Idempotent.
-- psql --dbname="$DATABASE_URL" --set=organization=org_1 --file=delete-organization.sql
\set ON_ERROR_STOP on
begin;
delete from organizations where organization_id = :'organization';
delete from deletion_tasks where organization_id = :'organization';
delete from deletions_unsettled where organization_id = :'organization';
delete from deletions where organization_id = :'organization';
insert into audit_log (organization_id, actor, source, action, target, result)
  values (:'organization', current_user, 'psql', 'organization.delete', :'organization', 'deleted');
commit;
-- With a CREDENTIALS_DATABASE_URL, run this statement there.
update api_keys set revoked_at = now() where organization_id = :'organization' and revoked_at is null;
