/** Pages of tasks for operators: bounded reads of an index, in any number of organizations. */
import { Effect, Option, Schema } from "effect"
import { join } from "effect/sql/Statement"
import * as Uuid from "uuid"
import { State } from "../api/DeletionTasks.ts"
import { rowsOf } from "../database/Columns.ts"
import type { Database } from "../database/Database.ts"
import { taskIdOf } from "./Delivery.ts"
import { columns, detailColumns, Task, TaskDetails, type TaskFilter } from "./Tasks.ts"

/** The most tasks on a page. */
export const pageSize = 50

/** Without an organization, tasks of at most so many organizations are searched. */
export const mostOrganizations = 1000

const owners = rowsOf(Schema.Struct({ organization_id: Schema.String }))
const tasks = rowsOf(Task)
const details = rowsOf(TaskDetails)

/**
 * Organizations with tasks. Those with a row in `organizations` come first, because an unsigned delivery can name any
 * other. Each is looked up in a primary key.
 */
const knownOrganizations = (most: number) => `
  with recursive named as (
    (select organization_id from deletion_tasks order by organization_id limit 1)
    union all
    select (
      select t.organization_id from deletion_tasks t
      where t.organization_id > named.organization_id order by t.organization_id limit 1
    )
    from named where named.organization_id is not null
  )
  select organization_id from (
    (
      select o.organization_id, true as is_registered from organizations o
      where exists (select from deletion_tasks t where t.organization_id = o.organization_id)
      order by o.organization_id limit ${most}
    )
    union all
    (
      select n.organization_id, false from named n
      where n.organization_id is not null
        and not exists (select from organizations o where o.organization_id = n.organization_id) limit ${most}
    )
  ) known
  order by is_registered desc, organization_id limit ${most}`

/** The same in distributed tables, where no server knows the organizations of the others. */
const knownOnAllServers = (most: number) => `
  select t.organization_id from (select distinct organization_id from deletion_tasks) t
  left join organizations o on o.organization_id = t.organization_id
  order by o.organization_id is null, t.organization_id limit ${most}`

type Order = "asc" | "desc"
type TimeOrder = readonly [column: string, order: Order]

const latestFirst: TimeOrder = ["t.scheduled_for", "desc"]

/** The order of the tasks of a state: that of its index, if it has one. */
const orderOf = (state: State | undefined): TimeOrder => {
  if (state === "dead") return ["t.finished_at", "desc"]
  return state === "scheduled" || state === "running" ? ["t.due_at", "asc"] : latestFirst
}

const unionAll = join(" union all ", false)

/** Tasks of a page. `isPartial`: there are more, or more organizations have tasks than were searched. */
export interface TaskPage {
  readonly rows: ReadonlyArray<Task>
  readonly isPartial: boolean
}

/** The reads, over the task database, after its distribution is known. */
export const make = (sql: Database) => {
  const limit = sql.literal(`limit ${pageSize + 1}`)
  const row = sql.literal(columns)

  const isDistributed = () => sql.distribution.isDistributed() === true

  const organizations = Effect.suspend(() =>
    owners(sql.unsafe((isDistributed() ? knownOnAllServers : knownOrganizations)(mostOrganizations + 1)))
  )

  /** The tasks of some states of all organizations. Those of an open or dead state have a partial index. */
  const ofAll = (states: ReadonlyArray<State>, [time, order]: TimeOrder) => {
    const isOfState = `t.state in (${states.map((state) => `'${state}'`).join(", ")})`
    const inOrder = [time, "t.organization_id", "t.id"].map((column) => `${column} ${order}`).join(", ")
    return sql`
      select ${row} from deletion_tasks t where ${sql.literal(isOfState)}
      order by ${sql.literal(inOrder)} ${limit}`.unprepared
  }

  /** The latest of each state of each organization, merged: found in the index that the organization leads. */
  const latest = (organization: string | undefined, states: ReadonlyArray<State>) => {
    const from =
      organization === undefined ? sql`(${sql.literal(knownOrganizations(mostOrganizations))}) o` : sql`(select 1) o`
    const ownerIn = (alias: string) =>
      organization === undefined ? sql.literal(`${alias}.organization_id`) : sql`${organization}`
    const parts = states.map(
      (state) => sql`(
        select t.organization_id, t.id, t.scheduled_for from deletion_tasks t
        where t.organization_id = ${ownerIn("o")} and t.state = ${sql.literal(`'${state}'`)}
        order by t.scheduled_for desc, t.id desc ${limit}
      )`
    )
    return sql`
      select t.* from (
        select found.* from ${from} cross join lateral (${unionAll(parts)}) found
        order by found.scheduled_for desc, found.organization_id desc, found.id desc ${limit}
      ) p
      cross join lateral (
        select ${row} from deletion_tasks t
        where t.organization_id = ${ownerIn("p")} and t.id = p.id limit 1
      ) t
      order by p.scheduled_for desc, p.organization_id desc, p.id desc`.unprepared
  }

  const pageOf = (rows: ReadonlyArray<Task>, searched: ReadonlyArray<unknown>): TaskPage => ({
    rows: rows.slice(0, pageSize),
    isPartial: rows.length > pageSize || searched.length > mostOrganizations
  })

  /**
   * A page of tasks. Of all organizations, scheduled and running tasks come by `due_at`, dead ones by `finished_at`, the
   * latest first; all others by `scheduled_for`, the latest first.
   */
  const page = Effect.fnUntraced(function* ({ organization, state }: TaskFilter) {
    const states = state === undefined ? State.literals : [state]
    const isMerged = organization !== undefined || (orderOf(state) === latestFirst && !isDistributed())
    const rows = yield* tasks(isMerged ? latest(organization, states) : ofAll(states, orderOf(state)))
    return pageOf(rows, isMerged && organization === undefined ? yield* organizations : [])
  })

  /** Finds tasks by their id or Idempotency-Key, each in the primary key. */
  const find = Effect.fnUntraced(function* (text: string, organization: string | undefined) {
    const known =
      organization === undefined ? (yield* organizations).map(({ organization_id }) => organization_id) : [organization]
    const pairs = known
      .slice(0, mostOrganizations)
      .flatMap((owner) => [{ owner, id: taskIdOf(owner, text) }, ...(Uuid.validate(text) ? [{ owner, id: text }] : [])])
    const from =
      organization === undefined
        ? sql`jsonb_to_recordset(${sql.json(pairs)}::jsonb) as p (owner text, id uuid)
            join deletion_tasks t on t.organization_id = p.owner collate "C" and t.id = p.id`
        : sql`deletion_tasks t
            where t.organization_id = ${organization} and t.id = any (${pairs.map(({ id }) => id)}::uuid[])`
    return pageOf(yield* tasks(sql`select ${row} from ${from} ${limit}`.unprepared), known)
  })

  const one = (organization: string, id: string) =>
    Uuid.validate(id)
      ? Effect.map(
          details(sql`
            select ${sql.literal(detailColumns)} from deletion_tasks t
            where t.organization_id = ${organization} and t.id = ${id}`),
          ([task]) => Option.fromNullishOr(task)
        )
      : Effect.succeedNone

  return { page, find, one }
}
