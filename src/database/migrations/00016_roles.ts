/** The role of whoever writes records, and the privilege by which a worker sees that the order of changes must begin again. */
import { script } from "./script.ts"

export default script(`
do $$ begin
  if not exists (select from pg_roles where rolname = 'practice_data_writer') then create role practice_data_writer nologin; end if;
exception when duplicate_object or unique_violation then null;
end $$;

grant select, insert, update, delete on
  organizations, clinics, pets, subscriptions, payment_plans, payment_intents, cancellation_payment_intents, pet_benefits,
  products, consumption_logs, invoices, invoice_lines, charges, charge_payments, charge_adjustments, charge_refunds
  to practice_data_writer;
grant select on change_feeds to practice_data_worker;
`)
