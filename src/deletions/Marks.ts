/**
 * The marks of the rows that facts of deletions name: set, set again with the time of a change, and taken back. Parts of the
 * statements of Deletion.ts.
 */

/** The parts of a statement that depend on the organizations of its tasks. */
export interface Owner {
  /** The SQL of tasks, rows of `organization_id` and `id`, from the first two parameters. */
  readonly tasks: string
  /** The SQL of the organization of a row of an alias. */
  readonly idIn: (alias: string) => string
  /** True where Citus finds the server of a statement by `idIn`, and knows rows by their keys alone. */
  readonly isRouted: boolean
}

export const kinds = ["invoice", "line"] as const
export type Kind = (typeof kinds)[number]

const tables = { invoice: "invoices", line: "invoice_lines" } as const

/**
 * The SQL of the facts of the row `task`. Only the primary key has this order: a plan that was made while there were few
 * facts could otherwise keep reading all of an organization.
 */
export const factsOf = (idIn: Owner["idIn"], condition: string) => `
  select * from deletions d where d.organization_id = ${idIn("task")} and d.task_id = task.id and ${condition}
  order by d.organization_id, d.task_id, d.kind, d.item offset 0`

/**
 * The SQL of the rows `t` of a table whose `id` or `invoice` is `value`, in the organization of the alias `of`. They are the
 * first in the order of one index; with any other, a guessed ninth of the table would be sorted. With `=`, statistics of a time
 * when each organization had one row make a scan of the whole organization as cheap as a look-up.
 */
export const lookUp = (
  { idIn, isRouted }: Owner,
  table: string,
  id: "id" | "invoice",
  [of, value]: readonly [of: string, value: string],
  { columns = "t.*", lock = "" } = {}
) => `
  select ${columns} from ${table} t
  where ${isRouted ? `t.organization_id = ${idIn(of)} and ` : ""}t.${id} is not null
    and (t.organization_id, t.${id}) >= (${idIn(of)}, ${value}) and (t.organization_id, t.${id}) <= (${idIn(of)}, ${value})
  order by t.organization_id, t.${id} ${lock === "" ? "fetch first 1 rows with ties" : `limit 1 ${lock}`}`

/** The rows of a kind that facts of tasks name, with each fact as `d`: `condition` is about both. */
export const named = (kind: Kind, owner: Owner, condition: string) => {
  const { idIn, tasks } = owner
  const ofItems = `
    select t.organization_id, t.id, d.deleted_at from (${tasks}) task
    cross join lateral (${factsOf(idIn, `d.kind = '${kind}'`)}) d
    cross join lateral (${lookUp(owner, tables[kind], "id", ["d", "d.id"])}) t
    where ${condition}`
  if (kind === "invoice") return ofItems
  return `${ofItems}
    union all
    select t.organization_id, t.id, d.deleted_at from (${tasks}) task
    cross join lateral (${factsOf(idIn, "d.kind = 'invoice'")}) d
    cross join lateral (${lookUp(owner, "invoice_lines", "invoice", ["d", "d.id"])}) t
    where ${condition}`
}

/**
 * Changes the marks of rows that nobody holds, of all or of as many as `bound` says. A locked row is found by its place, which
 * needs no index; tables that inherit from this one have the same places. A row that has changed since the statement began has
 * another place, and is left.
 */
const changing = (kind: Kind, owner: Owner, rows: string, now: string, marks: string, bound = "") => `
  with named as materialized (
    select organization_id, id, min(deleted_at) as deleted_at from (${rows}) n group by 1, 2 order by 1, 2
  ),
  free as materialized (
    select t.organization_id, t.id, t.place,
      case when t.is_deleted then t.deleted_at else named.deleted_at end as deleted_at,
      case when now() >= t.updated_at then now()
        else least(t.updated_at + interval '1 microsecond', timestamptz '9999-12-31 23:59:59.999999+00') end as updated_at
    from named
    cross join lateral (${lookUp(owner, tables[kind], "id", ["named", "named.id"], {
      columns: owner.isRouted ? "t.*, 1 as place" : "t.*, t.ctid as place",
      lock: "for no key update skip locked"
    })}) t
    where ${now} ${bound}
  )
  update ${tables[kind]} t set ${marks} from free
  where t.organization_id = ${owner.idIn("free")} and t.id = free.id ${owner.isRouted ? "" : "and t.ctid = free.place"}`

/**
 * The SQL of a fact `d` that holds for a row whose invoice is deleted, or is not there. Otherwise others hold the invoice: were
 * its lines marked before, another task could give it another time.
 */
const holds = (kind: Kind, owner: Owner) =>
  `d.holds and d.undone_at is null${
    kind === "invoice"
      ? ""
      : ` and (d.kind = 'line' or coalesce((
        ${lookUp(owner, "invoices", "id", ["d", "d.id"], { columns: "t.is_deleted" })}
      ), true))`
  }`

export const isDue = (kind: Kind, owner: Owner) => `${holds(kind, owner)} and not t.is_deleted`

export const mark = (kind: Kind, owner: Owner, bound: string) =>
  changing(
    kind,
    owner,
    named(kind, owner, isDue(kind, owner)),
    "not t.is_deleted",
    "is_deleted = true, deleted_at = free.deleted_at",
    bound
  )

/**
 * Marks rows as `mark` does. Rows that were deleted before keep their first time, and are changed once more: in a session
 * that keeps its times, since an UPDATE of a time alone is otherwise no change.
 */
export const markAgain = (kind: Kind, owner: Owner) =>
  changing(
    kind,
    owner,
    named(kind, owner, `${holds(kind, owner)} and (not t.is_deleted or t.deleted_at is distinct from d.deleted_at)`),
    "(not t.is_deleted or t.deleted_at is distinct from named.deleted_at)",
    "is_deleted = true, deleted_at = free.deleted_at, updated_at = free.updated_at"
  )

/**
 * The SQL of the existence of a fact `f` about the row `t`. Each id is looked up by itself: the planner would join a condition
 * with `or` by comparing each row with each fact. The comparison of two columns leaves the index of ids, as in `lookUp`.
 */
const hasFact = (kind: Kind, { idIn, isRouted }: Owner, condition: string) => {
  const isNamed = (id: string, by: Kind) => {
    const key = "(hashtextextended(f.id, 0), f.organization_id)"
    const value = `(hashtextextended(${id}, 0), ${idIn("t")})`
    return `exists (
    select from (
      select f.* from deletions f
      where ${isRouted ? `f.organization_id = ${idIn("t")} and ` : ""}${key} >= ${value} and ${key} <= ${value}
      order by hashtextextended(f.id, 0), f.organization_id fetch first 1 rows with ties
    ) f where f.id = ${id} and f.kind = '${by}' and ${condition}
  )`
  }
  const own = isNamed("t.id", kind)
  return kind === "invoice" ? own : `(${own} or ${isNamed("t.invoice", "invoice")})`
}

/**
 * The SQL of a row `t` with the mark of a fact that was undone, while no other fact holds. A mark of another time is the
 * loader's. The fact need not be one of the task: the mark stays when the first of two facts about a row is undone.
 */
const isUndone = (kind: Kind, owner: Owner) =>
  `t.is_deleted and ${hasFact(kind, owner, "f.undone_at is not null and f.deleted_at = t.deleted_at")}
    and not ${hasFact(kind, owner, "f.undone_at is null and f.holds")}`

export const isToUnmark = (kind: Kind, owner: Owner) => `d.undone_at is not null and ${isUndone(kind, owner)}`

/** Takes back the marks of facts that were undone. */
export const unmark = (kind: Kind, owner: Owner, bound: string) =>
  changing(
    kind,
    owner,
    named(kind, owner, isToUnmark(kind, owner)),
    isUndone(kind, owner),
    "is_deleted = false, deleted_at = null",
    bound
  )
