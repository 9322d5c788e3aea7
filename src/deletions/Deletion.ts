/**
 * The statements about claims that a worker holds: the deletion itself, and the renewal of leases. Each is one
 * statement, and so one transaction, for any number of tasks. A task that the caller no longer holds is not changed.
 *
 * Rows are locked in the order of organization and id, invoices before lines, so that overlapping tasks wait for each
 * other instead of deadlocking. Each is looked up by its key (`lateral ... for update` leaves the planner no other
 * way), because the planner cannot know how few items a payload has.
 *
 * A client that syncs by time misses a row that commits after its read with an earlier stamp. So the time of the
 * deletion is taken when all rows are locked and chosen: the caller's time, plus the time that the statement took
 * since.
 *
 * Values are computed before they are written: an UPDATE of a distributed table must call no function with a column
 * unless it is immutable, and neither the sum of a time and an interval is, nor the making of JSON. For the same reason
 * the statement is a SELECT.
 */
import { Outcome, reasons } from "../api/DeletionTasks.ts"

/** The parts of a statement that depend on the organizations of its claims. */
interface Owner {
  /** The SQL of the claims, rows of `organization_id`, `id` and `token`, from the first three parameters. */
  readonly claims: string
  /** The SQL of the organization of a row of an alias. */
  readonly idIn: (alias: string) => string
}

/**
 * Marks the chosen rows of a table as deleted. A change is later than the one before it, whatever the clocks say. The
 * last time of `api_instant` has none after it.
 */
const marking = (table: string, rows: "invoices" | "lines", { idIn }: Owner) => `
  marks_of_${rows} as materialized (
    select found.organization_id, found.id,
      coalesce(found.deleted_at, moment.at) as deleted_at,
      greatest(moment.at, least(
        found.updated_at + interval '1 microsecond', timestamptz '9999-12-31 23:59:59.999999+00'
      )) as updated_at
    from moment, ${rows}_to_delete target
    join found_${rows} found on found.organization_id = target.organization_id and found.id = target.id
  ),
  marked_${rows} as (
    update ${table} t set is_deleted = true, deleted_at = mark.deleted_at, updated_at = mark.updated_at
    from marks_of_${rows} mark where t.organization_id = ${idIn("mark")} and t.id = mark.id
  )`

/** A condition: an item names a value, and the record has another one. */
const differs = (name: string, ...columns: ReadonlyArray<string>) =>
  [`named.${name} is not null`, ...columns.map((column) => `named.${name} is distinct from found.${column}`)].join(
    " and "
  )

/** The conditions of the reasons not to delete an item. The first that holds counts. */
const conditions = {
  invoices: {
    not_found: "found.id is null",
    clinic_mismatch: differs("clinic_id", "home_clinic", "servicing_clinic"),
    client_mismatch: differs("client_id", "client_id")
  },
  invoice_lines: {
    not_found: "found.id is null",
    invoice_mismatch: differs("invoice_id", "invoice"),
    clinic_mismatch: differs("clinic_id", "clinic")
  }
} satisfies { readonly [List in keyof typeof reasons]: Record<keyof (typeof reasons)[List], string> }

const verdictOn = (list: keyof typeof conditions) =>
  `case ${Object.entries(conditions[list])
    .map(([reason, condition]) => `when ${condition} then '${reason}'`)
    .join(" ")} else 'deleted' end as verdict`

const count = (verdict: string) => `'${verdict}', count(*) filter (where verdict = '${verdict}')`

const counts = (judged: string, verdicts: object) =>
  `(select jsonb_build_object(${Object.keys(verdicts).map(count).join(", ")}) from ${judged} j
    where j.organization_id = task.organization_id and j.task_id = task.id)`

/**
 * The deletion. The fourth parameter is the current time. Returns `organization`, `taskId` and `outcome` of completed
 * tasks.
 */
const deletion = (owner: Owner) => `
  with task as materialized (
    select t.organization_id, t.id, t.payload
    from (select * from (${owner.claims}) c order by 1, 2) claimed
    cross join lateral (
      select t.organization_id, t.id, t.payload from deletion_tasks t
      where t.organization_id = ${owner.idIn("claimed")} and t.id = claimed.id
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
      where t.organization_id = ${owner.idIn("named")} and t.id = named.invoice_id
      for update
    ) found
  ),
  judged_invoices as materialized (
    select named.organization_id, named.task_id, named.invoice_id, ${verdictOn("invoices")}
    from named_invoices named
    left join found_invoices found on found.organization_id = named.organization_id and found.id = named.invoice_id
  ),
  invoices_to_delete as materialized (
    select distinct organization_id, invoice_id as id from judged_invoices where verdict = 'deleted'
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
      where t.organization_id = ${owner.idIn("target")} and t.invoice = target.id
      offset 0
    ) line
    union select organization_id, invoice_line_id from named_lines
  ),
  found_lines as materialized (
    select found.* from (select * from wanted_lines order by 1, 2) wanted
    cross join lateral (
      select t.organization_id, t.id, t.invoice, t.clinic, t.deleted_at, t.updated_at from invoice_lines t
      where t.organization_id = ${owner.idIn("wanted")} and t.id = wanted.id
      for update
    ) found
  ),
  judged_lines as materialized (
    select named.organization_id, named.task_id, named.invoice_line_id, ${verdictOn("invoice_lines")}
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
  outcomes as materialized (
    select task.organization_id, task.id, moment.at, jsonb_build_object(
      'invoices', ${counts("judged_invoices", Outcome.fields.invoices.fields)},
      'invoice_lines', ${counts("judged_lines", Outcome.fields.invoice_lines.fields)},
      'lines_of_invoices', (
        select count(*) from lines_of_invoices l
        where l.organization_id = task.organization_id and l.task_id = task.id
      )
    ) as outcome
    from task, moment
  ),
  ${marking("invoices", "invoices", owner)},
  ${marking("invoice_lines", "lines", owner)},
  completed as (
    update deletion_tasks t
    set state = 'completed', due_at = null, claim_token = null, last_error = null, finished_at = done.at,
      outcome = done.outcome
    from outcomes done where t.organization_id = ${owner.idIn("done")} and t.id = done.id
    returning t.organization_id as organization, t.id as "taskId", t.outcome
  )
  select * from completed`

/**
 * The renewal. The fourth parameter is the end of the leases. A task that is running is locked, which keeps other
 * workers off; it is skipped, so that the other leases do not wait.
 */
const renewal = ({ claims, idIn }: Owner) => `
  with held as materialized (
    select t.organization_id, t.id from (${claims}) claimed
    cross join lateral (
      select t.organization_id, t.id from deletion_tasks t
      where t.organization_id = ${idIn("claimed")} and t.id = claimed.id
        and t.claim_token = claimed.token and t.state = 'running'
      for update skip locked
    ) t
  )
  update deletion_tasks t set due_at = $4::timestamptz
  from held where t.organization_id = ${idIn("held")} and t.id = held.id`

const statementsOf = (owner: Owner) => ({ deletion: deletion(owner), renewal: renewal(owner) })

/** The statements about claims of any number of organizations. */
export const several = statementsOf({
  claims: "select * from unnest($1::text[], $2::uuid[], $3::uuid[]) as claims (organization_id, id, token)",
  idIn: (alias) => `${alias}.organization_id`
})

/**
 * The statements about claims of one organization: Citus finds the server of a statement by a parameter in the
 * condition of each table.
 */
export const one = statementsOf({
  claims: `
    select $1::text collate "C" as organization_id, claims.* from unnest($2::uuid[], $3::uuid[]) as claims (id, token)`,
  idIn: () => "$1"
})
