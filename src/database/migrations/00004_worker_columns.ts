/**
 * Roles that may write what is theirs of a task and no more: the intake what a delivery says, the worker what becomes
 * of it. And an index each for tasks that are due and for leases that expire, so that neither is looked for among the
 * other.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

const all = [
  "revoke insert on deletion_tasks from practice_data_intake",
  `grant insert (
     organization_id, id, idempotency_key, fingerprint, payload,
     invoices_count, invoice_lines_count, received_at, scheduled_for, due_at
   ) on deletion_tasks to practice_data_intake`,
  "revoke update on deletion_tasks from practice_data_worker",
  `grant update (state, attempts, due_at, claim_token, started_at, finished_at, last_error, outcome)
     on deletion_tasks to practice_data_worker`,
  "create index deletion_tasks_scheduled on deletion_tasks (due_at) where state = 'scheduled'",
  "create index deletion_tasks_running on deletion_tasks (due_at) where state = 'running'",
  "drop index deletion_tasks_due"
]

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(all, (statement) => sql.unsafe(statement), { discard: true })
)
