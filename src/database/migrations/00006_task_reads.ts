/**
 * Lets the data API read deletion tasks, but neither what they delete, nor why an attempt failed: that text names tables
 * and constraints.
 */
import { script } from "./script.ts"

export default script(`
grant select (
  organization_id, id, idempotency_key, state, received_at, scheduled_for, started_at, finished_at, attempts,
  invoices_count, invoice_lines_count, outcome
) on deletion_tasks to practice_data_api;
`)
