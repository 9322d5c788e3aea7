-- Erases a client with all that hangs on its pets and invoices, in one transaction. Idempotent. As the role that migrated:
-- psql --dbname="$DATABASE_URL" --set=organization=org_1 --set=client=client_7 --file=erase-client.sql
\set ON_ERROR_STOP on
begin;
create temporary table gone_pets on commit drop as
  select id from pets where organization_id = :'organization' and client_id = :'client';
create temporary table gone_invoices on commit drop as
  select id from invoices where organization_id = :'organization'
    and (client_id = :'client' or client_id is null and pet in (table gone_pets));
-- After a pet has changed hands, what is on an invoice of another client stays.
create temporary table gone_lines on commit drop as
  select id from invoice_lines t where organization_id = :'organization'
    and (invoice in (table gone_invoices) or pet in (table gone_pets))
    and not exists (
      select from invoices i where i.organization_id = :'organization' and i.id = t.invoice and i.client_id <> :'client');
create temporary table gone_charges on commit drop as
  select id from charges t where organization_id = :'organization'
    and (invoice in (table gone_invoices) or pet in (table gone_pets))
    and not exists (
      select from invoices i where i.organization_id = :'organization' and i.id = t.invoice and i.client_id <> :'client');
create temporary table gone_subscriptions on commit drop as
  select id from subscriptions where organization_id = :'organization' and pet in (table gone_pets);

delete from charge_payments where organization_id = :'organization' and charge in (table gone_charges);
delete from charge_adjustments where organization_id = :'organization' and charge in (table gone_charges);
delete from charge_refunds where organization_id = :'organization' and charge in (table gone_charges);
delete from consumption_logs t where organization_id = :'organization'
  and (invoice_line in (table gone_lines) or pet in (table gone_pets) or subscription in (table gone_subscriptions))
  and not exists (
    select from invoice_lines l join invoices i on i.organization_id = :'organization' and i.id = l.invoice
    where l.organization_id = :'organization' and l.id = t.invoice_line and i.client_id <> :'client');
delete from payment_plans where organization_id = :'organization'
  and (pet in (table gone_pets) or subscription in (table gone_subscriptions));
delete from payment_intents where organization_id = :'organization'
  and (pet in (table gone_pets) or subscription in (table gone_subscriptions));
delete from cancellation_payment_intents where organization_id = :'organization'
  and (pet in (table gone_pets) or subscription in (table gone_subscriptions));
delete from pet_benefits where organization_id = :'organization'
  and (pet in (table gone_pets) or subscription in (table gone_subscriptions));
delete from charges where organization_id = :'organization' and id in (table gone_charges);
delete from invoice_lines where organization_id = :'organization' and id in (table gone_lines);
delete from invoices where organization_id = :'organization' and id in (table gone_invoices);
delete from subscriptions where organization_id = :'organization' and id in (table gone_subscriptions);
delete from pets where organization_id = :'organization' and id in (table gone_pets);

-- Stored deliveries that name the client or these records, and the facts of their deletion.
update deletion_tasks set payload = null
where organization_id = :'organization' and state in ('completed', 'cancelled') and exists (
  select from jsonb_path_query(payload, '$.*[*]') item where item ->> 'client_id' = :'client'
    or item ->> 'invoice_id' in (table gone_invoices) or item ->> 'invoice_line_id' in (table gone_lines));
delete from deletions where organization_id = :'organization' and (
  client_id = :'client' or invoice_id in (table gone_invoices)
  or kind = 'invoice' and id in (table gone_invoices) or kind = 'line' and id in (table gone_lines));
insert into audit_log (organization_id, actor, source, action, target, result)
  values (:'organization', current_user, 'psql', 'client.erase', :'client', 'erased');
commit;
