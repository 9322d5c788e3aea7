/** The tasks of the invoice deletions, the signing secrets of the intake, and the roles of the intake and the worker. */
import { script } from "./script.ts"

export default script(`
create table deletion_tasks (
  organization_id     text collate "C" not null,
  id                  uuid not null,
  idempotency_key     text collate "C" not null,
  fingerprint         bytea not null,
  payload             jsonb not null,
  invoices_count      integer not null,
  invoice_lines_count integer not null,
  received_at         timestamptz not null,
  scheduled_for       timestamptz not null,
  state               text not null default 'scheduled' check (state in ('scheduled', 'running', 'completed', 'dead')),
  attempts            integer not null default 0,
  -- When a worker is next needed: the time to run, or the end of the lease of the worker that runs it.
  due_at              timestamptz,
  claim_token         uuid,
  started_at          timestamptz,
  finished_at         timestamptz,
  last_error          text,
  outcome             jsonb,
  primary key (organization_id, id)
);

-- What is due, in any organization: the one index that the organization cannot lead.
create index deletion_tasks_due   on deletion_tasks (due_at) where due_at is not null;
create index deletion_tasks_state on deletion_tasks (organization_id, state, scheduled_for);

create table intake_secrets (
  organization_id text collate "C" not null,
  id              text collate "C" not null,
  secret          text not null,
  created_at      timestamptz not null default now(),
  revoked_at      timestamptz,
  primary key (organization_id, id)
);

grant select, insert on deletion_tasks to practice_data_intake;
grant select on intake_secrets to practice_data_intake;
grant select, update on deletion_tasks to practice_data_worker;
`)
