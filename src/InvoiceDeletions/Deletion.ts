/**
 * The deletion itself: one statement, and so one transaction, that looks at the claim, deletes, counts what it did, and
 * marks the task completed. It changes nothing when the claim is not the task's any more.
 *
 * Rows are locked in the order of their ids, invoices before lines, so that tasks that overlap wait for each other
 * instead of deadlocking. They are found by arrays of ids, which Postgres looks up in the index; a list of rows, whose
 * length it guesses, it may prefer to join with the whole table.
 */

// Each kind of row: a change is always later than the one before it, whatever the clocks say.
const mark = `set is_deleted = true,
      deleted_at = coalesce(t.deleted_at, (select at from moment)),
      updated_at = greatest((select at from moment), t.updated_at + interval '1 microsecond')`

const count = (verdict: string) => `'${verdict}', count(*) filter (where verdict = '${verdict}')`

const counts = (judged: string, verdicts: ReadonlyArray<string>) =>
  `(select jsonb_build_object(${verdicts.map(count).join(", ")}) from ${judged})`

/** Parameters: organization, task id, claim token, now. Returns one row, the outcome; none when superseded. */
export const statement = `
  with moment as materialized (select $4::timestamptz as at),
  task as materialized (
    select organization_id, id, payload from deletion_tasks
    where organization_id = $1 and id = $2::uuid and claim_token = $3::uuid and state = 'running'
    for update
  ),
  named_invoices as materialized (
    select named.* from task, jsonb_to_recordset(task.payload -> 'invoices')
      as named (invoice_id text, clinic_id text, client_id text)
  ),
  found_invoices as materialized (
    select t.id, t.home_clinic, t.servicing_clinic, t.client_id from invoices t
    where t.organization_id = $1 and t.id = any (array(select invoice_id from named_invoices))
    order by t.id for update
  ),
  judged_invoices as materialized (
    select named.invoice_id, case
      when found.id is null then 'not_found'
      when named.clinic_id is not null
        and named.clinic_id is distinct from found.home_clinic
        and named.clinic_id is distinct from found.servicing_clinic then 'clinic_mismatch'
      when named.client_id is not null and named.client_id is distinct from found.client_id then 'client_mismatch'
      else 'deleted'
    end as verdict
    from named_invoices named left join found_invoices found on found.id = named.invoice_id
  ),
  doomed_invoices as materialized (select distinct invoice_id from judged_invoices where verdict = 'deleted'),
  named_lines as materialized (
    select named.* from task, jsonb_to_recordset(task.payload -> 'invoice_lines')
      as named (invoice_line_id text, invoice_id text, clinic_id text)
  ),
  found_lines as materialized (
    select t.id, t.invoice, t.clinic from invoice_lines t
    where t.organization_id = $1 and t.id = any (array(
      select l.id from invoice_lines l join doomed_invoices d on l.organization_id = $1 and l.invoice = d.invoice_id
      union select invoice_line_id from named_lines
    ))
    order by t.id for update
  ),
  judged_lines as materialized (
    select named.invoice_line_id, case
      when found.id is null then 'not_found'
      when named.invoice_id is not null and named.invoice_id is distinct from found.invoice then 'invoice_mismatch'
      when named.clinic_id is not null and named.clinic_id is distinct from found.clinic then 'clinic_mismatch'
      else 'deleted'
    end as verdict
    from named_lines named left join found_lines found on found.id = named.invoice_line_id
  ),
  lines_of_invoices as materialized (
    select found.id from found_lines found join doomed_invoices doomed on doomed.invoice_id = found.invoice
  ),
  marked_invoices as (
    update invoices t ${mark}
    from doomed_invoices doomed where t.organization_id = $1 and t.id = doomed.invoice_id
  ),
  marked_lines as (
    update invoice_lines t ${mark}
    from (
      select id from lines_of_invoices union select invoice_line_id from judged_lines where verdict = 'deleted'
    ) doomed where t.organization_id = $1 and t.id = doomed.id
  )
  update deletion_tasks t
  set state = 'completed', due_at = null, claim_token = null, last_error = null, finished_at = (select at from moment),
    outcome = jsonb_build_object(
      'invoices', ${counts("judged_invoices", ["deleted", "not_found", "clinic_mismatch", "client_mismatch"])},
      'invoice_lines', ${counts("judged_lines", ["deleted", "not_found", "invoice_mismatch", "clinic_mismatch"])},
      'lines_of_invoices', (select count(*) from lines_of_invoices)
    )
  from task where t.organization_id = task.organization_id and t.id = task.id
  returning t.outcome`
