/**
 * What the data API shows of deletion tasks: the columns that it may read, and an index in the order of its searches. The
 * payload and the reasons of failed attempts stay with the worker and the operators.
 */
import { Effect } from "effect"
import { addIndex } from "./addField.ts"
import { script } from "./script.ts"

const { online } = addIndex({
  table: "deletion_tasks",
  name: "deletion_tasks_order",
  columns: "(organization_id, state, scheduled_for, id)",
  replaces: "deletion_tasks_state"
})

export default {
  online: Effect.andThen(
    online,
    script(`
grant select (
  organization_id, id, idempotency_key, state, received_at, scheduled_for, started_at, finished_at, attempts,
  invoices_count, invoice_lines_count, outcome
) on deletion_tasks to practice_data_api;
`)
  )
}
