/**
 * The statements of a deletion. A deletion is a fact that outlives its rows, so it has steps:
 *
 * 1. `remember` stores the items of a task as facts, each with its verdict, and commits. From then on, triggers of the
 *    tables mark each row that is written with the id of a fact.
 * 2. `run` applies the facts to the rows that are there. Rows that other transactions hold are skipped: nobody waits. `left`
 *    finds the tasks that have some.
 * 3. `complete` ends the tasks that have none.
 *
 * A transaction that looked for facts before they were committed may bring more rows, which `settle` marks: see Settling.ts.
 * It also takes back the marks of facts that an operator undid: see Facts.ts.
 *
 * Rows are looked up by their keys, and locked in the order of organization and id (`lateral ... for update` leaves the
 * planner no other way), because the planner cannot know how few items a payload has. On Citus, an UPDATE of a distributed
 * table must call no function with a column unless it is immutable, so values are computed before they are written.
 */
import { Outcome } from "../api/DeletionTasks.ts"
import {
  factsOf,
  isDue,
  isToUnmark,
  type Kind,
  kinds,
  lookUp,
  mark,
  markAgain,
  named,
  type Owner,
  unmark
} from "./Marks.ts"

interface Claimer extends Owner {
  /** The SQL of claims, rows of `organization_id`, `id` and `token`, from the first three parameters. */
  readonly claims: string
}

/** The SQL of the verdict on the item `d`, by the row with its id; null without one. */
const verdict = (owner: Owner) => `
  case d.kind
    when 'invoice' then (
      select invoice_verdict(d.clinic_id, d.client_id, t.home_clinic, t.servicing_clinic, t.client_id)
      from (${lookUp(owner, "invoices", "id", ["d", "d.id"])}) t
    )
    else (
      select line_verdict(d.invoice_id, d.clinic_id, t.invoice, t.clinic)
      from (${lookUp(owner, "invoice_lines", "id", ["d", "d.id"])}) t
    )
  end`

/** The claimed tasks that the caller still holds. */
const held = ({ claims, idIn }: Claimer, columns: string, lock = "") => `
  select task.* from (select * from (${claims}) c order by 1, 2) claimed
  cross join lateral (
    select ${columns} from deletion_tasks t
    where t.organization_id = ${idIn("claimed")} and t.id = claimed.id
      and t.claim_token = claimed.token and t.state = 'running'
    ${lock}
  ) task`

/** Stores the facts of claimed tasks, unless they are stored. The fourth parameter is the time of the deletion. */
const remember = (owner: Claimer) => `
  insert into deletions (
    organization_id, task_id, kind, item, id, deleted_at, verdict, holds, clinic_id, client_id, invoice_id, is_known
  )
  with task as materialized (${held(owner, "t.organization_id, t.id, t.payload")}),
  named as (
    select task.organization_id, task.id as task_id, 'invoice' as kind, n.item, n.id, n.clinic_id, n.client_id,
      null as invoice_id
    from task cross join lateral rows from (
      jsonb_to_recordset(task.payload -> 'invoices') as (invoice_id text, clinic_id text, client_id text)
    ) with ordinality as n (id, clinic_id, client_id, item)
    union all
    select task.organization_id, task.id, 'line', n.item, n.id, n.clinic_id, null, n.invoice_id
    from task cross join lateral rows from (
      jsonb_to_recordset(task.payload -> 'invoice_lines') as (invoice_line_id text, invoice_id text, clinic_id text)
    ) with ordinality as n (id, invoice_id, clinic_id, item)
  ),
  judged as materialized (
    select d.*, coalesce(${verdict(owner)}, 'not_found') as verdict,
      exists (select from organizations o where o.organization_id = ${owner.idIn("d")}) as is_known
    from named d
  )
  select organization_id, task_id, kind, item, id, $4::timestamptz, verdict,
    verdict = 'deleted' or (verdict = 'not_found' and coalesce(clinic_id, client_id, invoice_id) is null),
    clinic_id, client_id, invoice_id, is_known
  from judged
  on conflict do nothing`

/** Notes that claimed tasks are to be settled. The fourth parameter is the time of the deletion. */
const unsettle = (owner: Claimer) => `
  with task as materialized (${held(owner, "t.organization_id, t.id")})
  update deletion_tasks t set unsettled_since = $4::timestamptz
  from task where t.organization_id = ${owner.idIn("task")} and t.id = task.id and t.unsettled_since is null`

/** Locks the claimed tasks that the caller still holds, and returns them. */
const hold = (owner: Claimer) => held(owner, `t.organization_id as organization, t.id as "taskId"`, "for update")

/**
 * Judges remembered items whose row is there. A verdict that a writer has left decides. Whoever writes meanwhile does not see
 * that an item holds from now on, so its task is to be settled once more.
 */
const judge = (owner: Owner) => `
  with judged as materialized (
    select d.organization_id, d.task_id, d.kind, d.item, d.holds as held, coalesce((
      select a.verdict from deletion_arrivals a
      where a.organization_id = ${owner.idIn("d")} and a.task_id = d.task_id and a.kind = d.kind and a.item = d.item
      limit 1
    ), ${verdict(owner)}) as verdict
    from (${owner.tasks}) task
    join deletions d on d.organization_id = ${owner.idIn("task")} and d.task_id = task.id
    where d.verdict = 'not_found' and d.undone_at is null
  ),
  found as materialized (select *, verdict = 'deleted' as holds from judged where verdict is not null),
  changed as (
    update deletions d set verdict = found.verdict, holds = found.holds from found
    where d.organization_id = ${owner.idIn("found")} and d.task_id = found.task_id and d.kind = found.kind
      and d.item = found.item and d.verdict = 'not_found'
    returning d.organization_id, d.task_id, found.held, found.holds
  )
  update deletion_tasks t set unsettled_since = now()
  from (select distinct organization_id, task_id from changed where holds and not held) task
  where t.organization_id = ${owner.idIn("task")} and t.id = task.task_id`

/**
 * The settings of a transaction that deletes. It waits shortly for what others hold, and keeps nobody waiting for long: the
 * server ends it when its process is paused, or when a statement about several tasks takes longer than `statementTimeout`.
 * A session keeps the plans of its statements: one from a time when a table was small would scan a large one for each item.
 */
export const transactionSettings = (statementTimeout?: string) => `
  select set_config('lock_timeout', '500ms', true), set_config('idle_in_transaction_session_timeout', '1s', true),
    set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true),
    set_config('enable_incremental_sort', 'off', true)
  ${statementTimeout === undefined ? "" : `, set_config('statement_timeout', '${statementTimeout}', true)`}`

/** Finds the tasks some of whose rows are still to be changed, since others hold them. `conditions`: about a row and a fact. */
const left = (owner: Owner, conditions: (kind: Kind) => ReadonlyArray<string>) => {
  const isLeft = kinds.flatMap((kind) =>
    conditions(kind).map(
      (condition) => `exists (select from (${named(kind, { ...owner, tasks: "select task.*" }, condition)}) n)`
    )
  )
  return `
    select task.organization_id as organization, task.id as "taskId" from (${owner.tasks}) task
    where ${isLeft.join(" or ")}`
}

const counts = (kind: Kind, verdicts: object) =>
  `jsonb_build_object(${Object.keys(verdicts)
    .map((name) => `'${name}', count(*) filter (where d.kind = '${kind}' and d.verdict = '${name}')`)
    .join(", ")})`

/** Ends tasks. The third parameter is the current time. Returns their outcomes. */
const complete = (owner: Owner) => `
  with outcomes as materialized (
    select task.organization_id, task.id, counted.items || jsonb_build_object('lines_of_invoices', (
      select count(*) from (
        select distinct d.organization_id, d.id from (${factsOf(owner.idIn, "d.kind = 'invoice'")}) d
        where d.verdict = 'deleted' and d.undone_at is null
      ) d
      cross join lateral (${lookUp(owner, "invoice_lines", "invoice", ["d", "d.id"])}) t
    )) as outcome
    from (${owner.tasks}) task
    cross join lateral (
      select jsonb_build_object(
        'invoices', ${counts("invoice", Outcome.fields.invoices.fields)},
        'invoice_lines', ${counts("line", Outcome.fields.invoice_lines.fields)}
      ) as items
      from (${factsOf(owner.idIn, "d.undone_at is null")}) d
    ) counted
  )
  update deletion_tasks t
  set state = 'completed', due_at = null, claim_token = null, last_error = null, finished_at = $3::timestamptz,
    outcome = done.outcome
  from outcomes done where t.organization_id = ${owner.idIn("done")} and t.id = done.id
  returning t.organization_id as organization, t.id as "taskId", t.outcome`

/** The items that are remembered until their row comes: of an organization, and of all that have no row, together. */
export const mostRemembered = 100_000

/** The SQL of a condition: more items of a condition are remembered than the third parameter allows. */
const isFull = (condition: string) => `
  (select count(*) from (
    select from deletions r where ${condition} and r.verdict = 'not_found' limit $3::integer + 1
  ) r) > $3::integer`

/** The SQL of a fact `d` whose record has come and is deleted: a writer has left that, and no worker has moved it here. */
export const hasArrived = ({ idIn }: Pick<Owner, "idIn">) => `exists (
  select from deletion_arrivals a where a.organization_id = ${idIn("d")} and a.task_id = d.task_id and a.kind = d.kind
    and a.item = d.item and a.verdict = 'deleted'
)`

/**
 * Forgets what tasks did not find, if more is remembered than may be, which is counted once for each organization. Where
 * tables are distributed, organizations without a row have each a bound of their own.
 */
const forget = (owner: Owner, isPerOrganization: boolean) => `
  with owners as materialized (
    select task.organization_id, ${isFull(`r.organization_id = ${owner.idIn("task")}`)} as is_full
    from (select distinct organization_id from (${owner.tasks}) tasks) task
  )
  delete from deletions d using (${owner.tasks}) task
  where d.organization_id = ${owner.idIn("task")} and d.task_id = task.id and d.verdict = 'not_found'
    and not ${hasArrived(owner)} and (
    (select o.is_full from owners o where o.organization_id = ${owner.idIn("task")})
    ${isPerOrganization ? "" : `or (not d.is_known and ${isFull("not r.is_known")})`}
  )`

/**
 * The renewal. The fourth parameter is the end of the leases. A task that is running is locked, which keeps other
 * workers off; it is skipped, so that the other leases do not wait.
 */
const renewal = (owner: Claimer) => `
  with held as materialized (${held(owner, "t.organization_id, t.id", "for no key update skip locked")})
  update deletion_tasks t set due_at = $4::timestamptz
  from held where t.organization_id = ${owner.idIn("held")} and t.id = held.id`

/**
 * The bound of rows that a settler changes in a statement. The triggers of a row take up to a millisecond, and a statement
 * that takes too long would be tried again for ever. The rest is left for the next step.
 */
const settled = "limit 10000"

/** Applies facts whose tasks are settled, to all rows or to as many of a statement as `bound` says. */
const settle = (owner: Owner, bound = "") => [
  judge(owner),
  ...kinds.map((kind) => unmark(kind, owner, bound)),
  ...kinds.map((kind) => mark(kind, owner, bound))
]

const statementsOf = (owner: Claimer, isPerOrganization: boolean) => ({
  remember: [remember(owner), unsettle(owner)],
  hold: hold(owner),
  run: kinds.map((kind) => markAgain(kind, owner)),
  settle: settle(owner, settled),
  left: left(owner, (kind) => [isDue(kind, owner)]),
  unsettled: left(owner, (kind) => [isDue(kind, owner), isToUnmark(kind, owner)]),
  complete: complete(owner),
  forget: forget(owner, isPerOrganization),
  renewal: renewal(owner)
})

/** The statements about tasks of any number of organizations. */
export const acrossOrganizations = statementsOf(
  {
    claims: "select * from unnest($1::text[], $2::uuid[], $3::uuid[]) as claims (organization_id, id, token)",
    tasks: "select * from unnest($1::text[], $2::uuid[]) as tasks (organization_id, id)",
    idIn: (alias) => `${alias}.organization_id`,
    isRouted: false
  },
  false
)

/**
 * The statements about tasks of one organization: Citus finds the server of a statement by a parameter in the
 * condition of each table.
 */
export const withinOrganization = statementsOf(
  {
    claims: `
    select $1::text collate "C" as organization_id, claims.* from unnest($2::uuid[], $3::uuid[]) as claims (id, token)`,
    tasks: `select $1::text collate "C" as organization_id, tasks.* from unnest($2::uuid[]) as tasks (id)`,
    idIn: () => "$1",
    isRouted: true
  },
  true
)

/** The statements that settle all tasks of one organization, all rows at once: nothing notes what is left. */
export const settleAll = settle({
  tasks: `
    select distinct d.organization_id, d.task_id as id from deletions d
    where d.organization_id = $1 and (d.holds or d.verdict = 'not_found' or d.undone_at is not null)`,
  idIn: () => "$1",
  isRouted: true
})
