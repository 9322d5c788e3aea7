/**
 * The audit log of operators' changes, and the trace of a delivery, to which the run of its task is linked.
 *
 * The services' roles can only add to the audit log. Its index by time is one that the organization cannot lead: operators
 * look at all of it, newest first.
 */
import { script } from "./script.ts"

export default script(`
create table audit_log (
  organization_id text collate "C" not null,
  id              uuid not null default gen_random_uuid(),
  at              timestamptz not null default clock_timestamp(),
  actor           text not null,
  source          text not null,
  action          text not null,
  target          text not null,
  result          text not null,
  primary key (organization_id, id)
);

create index audit_log_at     on audit_log (at desc);
create index audit_log_target on audit_log (organization_id, target, at desc);

grant select on audit_log to practice_data_api, practice_data_worker;
grant insert on audit_log to practice_data_worker;

alter table deletion_tasks add column trace_parent text;
grant insert (trace_parent) on deletion_tasks to practice_data_intake;
`)
