/**
 * Empty ids are refused: the API cannot look them up. The constraints are not validated, so that an older row with an
 * empty id stops no upgrade. Such a row can be deleted or given an id; other updates of it are refused.
 */
import { Effect } from "effect"
import { locking, retried } from "./addField.ts"
import { script } from "./script.ts"

const tables =
  "organizations clinics pets subscriptions payment_plans payment_intents cancellation_payment_intents pet_benefits " +
  "products consumption_logs invoices invoice_lines charges charge_payments charge_adjustments charge_refunds"

const refuse = (table: string) =>
  script(`
alter table ${table} drop constraint if exists ${table}_id_not_empty;
alter table ${table} add constraint ${table}_id_not_empty check (id <> '' and organization_id <> '') not valid;
`)

export default {
  online: Effect.forEach(tables.split(" "), (table) => retried(locking(table, refuse(table))), { discard: true })
}
