/**
 * Column privileges: the intake writes what a delivery says of a task, the worker what becomes of it. And an index each
 * for tasks that are due and for leases that expire, so that a search for one does not read the other.
 */
import { script } from "./script.ts"

export default script(`
revoke insert on deletion_tasks from practice_data_intake;
grant insert (
  organization_id, id, idempotency_key, fingerprint, payload,
  invoices_count, invoice_lines_count, received_at, scheduled_for, due_at
) on deletion_tasks to practice_data_intake;

revoke update on deletion_tasks from practice_data_worker;
grant update (
  state, attempts, due_at, claim_token, started_at, finished_at, last_error, outcome
) on deletion_tasks to practice_data_worker;

create index deletion_tasks_scheduled on deletion_tasks (due_at) where state = 'scheduled';
create index deletion_tasks_running   on deletion_tasks (due_at) where state = 'running';
drop index deletion_tasks_due;
`)
