/**
 * The deletion itself: one statement, and so one transaction, for any number of tasks. It looks at the claim of each
 * task, deletes, counts what it did, and marks the tasks completed. A task that the caller no longer holds
 * changes nothing.
 *
 * Rows are locked in the order of organization and id, invoices before lines, so that tasks that overlap wait for each
 * other instead of deadlocking. Each is looked up by its key (`lateral ... for update` leaves the planner no other
 * way), because the planner cannot know how few the items of a payload are.
 *
 * A client that syncs by time misses what is committed after it has looked, with a stamp from before that. So the moment
 * of the deletion is taken when all rows are locked and chosen, and nothing is left but to write them. It is the caller's
 * time, and what the statement has taken since.
 *
 * What is written is computed before: an UPDATE of a distributed table must call no function with a column of it unless
 * that is immutable, and neither the sum of a time and an interval is, nor is the making of JSON. For the same reason the
 * statement is a SELECT.
 */
import type { Owner } from "./Owner.ts"

// A change is later than the one before it, whatever the clocks say. The last time of `api_instant` has none after it.
const marks = `
  coalesce(found.deleted_at, moment.at) as deleted_at,
  greatest(moment.at, least(
    found.updated_at + interval '1 microsecond', timestamptz '9999-12-31 23:59:59.999999+00'
  )) as updated_at`

const mark = "set is_deleted = true, deleted_at = mark.deleted_at, updated_at = mark.updated_at"

const count = (verdict: string) => `'${verdict}', count(*) filter (where verdict = '${verdict}')`

const counts = (judged: string, verdicts: ReadonlyArray<string>) =>
  `(select jsonb_build_object(${verdicts.map(count).join(", ")}) from ${judged} j
    where j.organization_id = task.organization_id and j.task_id = task.id)`

/**
 * Parameters: the claims of an owner, and as the fourth the time as the statement is sent. Returns a row for each task
 * that was completed: `organization`, `taskId` and `outcome`.
 */
export const statement = ({ claims, idIn }: Owner) => `
  with task as materialized (
    select t.organization_id, t.id, t.payload
    from (select * from (${claims}) c order by 1, 2) claimed
    cross join lateral (
      select t.organization_id, t.id, t.payload from deletion_tasks t
      where t.organization_id = ${idIn("claimed")} and t.id = claimed.id
        and t.claim_token = claimed.token and t.state = 'running'
      for update
    ) t
  ),
  named_invoices as materialized (
    select task.organization_id, task.id as task_id, named.* from task,
      jsonb_to_recordset(task.payload -> 'invoices') as named (invoice_id text, clinic_id text, client_id text)
  ),
  found_invoices as materialized (
    select found.* from (select distinct organization_id, invoice_id from named_invoices order by 1, 2) named
    cross join lateral (
      select t.organization_id, t.id, t.home_clinic, t.servicing_clinic, t.client_id, t.deleted_at, t.updated_at
      from invoices t
      where t.organization_id = ${idIn("named")} and t.id = named.invoice_id
      for update
    ) found
  ),
  judged_invoices as materialized (
    select named.organization_id, named.task_id, named.invoice_id, case
      when found.id is null then 'not_found'
      when named.clinic_id is not null
        and named.clinic_id is distinct from found.home_clinic
        and named.clinic_id is distinct from found.servicing_clinic then 'clinic_mismatch'
      when named.client_id is not null and named.client_id is distinct from found.client_id then 'client_mismatch'
      else 'deleted'
    end as verdict
    from named_invoices named
    left join found_invoices found on found.organization_id = named.organization_id and found.id = named.invoice_id
  ),
  invoices_to_delete as materialized (
    select distinct organization_id, invoice_id from judged_invoices where verdict = 'deleted'
  ),
  named_lines as materialized (
    select task.organization_id, task.id as task_id, named.* from task,
      jsonb_to_recordset(task.payload -> 'invoice_lines')
        as named (invoice_line_id text, invoice_id text, clinic_id text)
  ),
  wanted_lines as materialized (
    select line.organization_id, line.id from invoices_to_delete target
    cross join lateral (
      select t.organization_id, t.id from invoice_lines t
      where t.organization_id = ${idIn("target")} and t.invoice = target.invoice_id
      offset 0
    ) line
    union select organization_id, invoice_line_id from named_lines
  ),
  found_lines as materialized (
    select found.* from (select * from wanted_lines order by 1, 2) wanted
    cross join lateral (
      select t.organization_id, t.id, t.invoice, t.clinic, t.deleted_at, t.updated_at from invoice_lines t
      where t.organization_id = ${idIn("wanted")} and t.id = wanted.id
      for update
    ) found
  ),
  judged_lines as materialized (
    select named.organization_id, named.task_id, named.invoice_line_id, case
      when found.id is null then 'not_found'
      when named.invoice_id is not null and named.invoice_id is distinct from found.invoice then 'invoice_mismatch'
      when named.clinic_id is not null and named.clinic_id is distinct from found.clinic then 'clinic_mismatch'
      else 'deleted'
    end as verdict
    from named_lines named
    left join found_lines found on found.organization_id = named.organization_id and found.id = named.invoice_line_id
  ),
  lines_of_invoices as materialized (
    select distinct judged.task_id, found.organization_id, found.id from found_lines found
    join judged_invoices judged on judged.organization_id = found.organization_id
      and judged.invoice_id = found.invoice and judged.verdict = 'deleted'
  ),
  lines_to_delete as materialized (
    select organization_id, id from lines_of_invoices
    union select organization_id, invoice_line_id from judged_lines where verdict = 'deleted'
  ),
  moment as materialized (
    select $4::timestamptz + (clock_timestamp() - statement_timestamp()) as at
    from (select count(*) from invoices_to_delete) invoices, (select count(*) from lines_to_delete) lines
  ),
  marks_of_invoices as materialized (
    select found.organization_id, found.id, ${marks} from moment, invoices_to_delete target
    join found_invoices found on found.organization_id = target.organization_id and found.id = target.invoice_id
  ),
  marks_of_lines as materialized (
    select found.organization_id, found.id, ${marks} from moment, lines_to_delete target
    join found_lines found on found.organization_id = target.organization_id and found.id = target.id
  ),
  outcomes as materialized (
    select task.organization_id, task.id, moment.at, jsonb_build_object(
      'invoices', ${counts("judged_invoices", ["deleted", "not_found", "clinic_mismatch", "client_mismatch"])},
      'invoice_lines', ${counts("judged_lines", ["deleted", "not_found", "invoice_mismatch", "clinic_mismatch"])},
      'lines_of_invoices', (
        select count(*) from lines_of_invoices l
        where l.organization_id = task.organization_id and l.task_id = task.id
      )
    ) as outcome
    from task, moment
  ),
  marked_invoices as (
    update invoices t ${mark} from marks_of_invoices mark
    where t.organization_id = ${idIn("mark")} and t.id = mark.id
  ),
  marked_lines as (
    update invoice_lines t ${mark} from marks_of_lines mark
    where t.organization_id = ${idIn("mark")} and t.id = mark.id
  ),
  completed as (
    update deletion_tasks t
    set state = 'completed', due_at = null, claim_token = null, last_error = null, finished_at = done.at,
      outcome = done.outcome
    from outcomes done where t.organization_id = ${idIn("done")} and t.id = done.id
    returning t.organization_id as organization, t.id as "taskId", t.outcome
  )
  select * from completed`
