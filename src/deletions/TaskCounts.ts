/** How many tasks there are to do, in any organization: little to ask of the database, however many it has completed. */
import { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Database } from "../database/Database.ts"

/** How far the tasks of a state are counted. */
export const most = 10_000

/** What there is to do. Times are in milliseconds since 1970. */
export interface TaskCounts {
  readonly scheduled: number
  readonly running: number
  readonly dead: number
  /** Since when the task is due that is due first, or when its lease ends; null if there is none. */
  readonly firstDue: number | null
  /** What time it is in the database. */
  readonly now: number
}

/** Counts the tasks. Each part reads an index that has only the tasks of a state. */
export const read = (sql: Database): Effect.Effect<TaskCounts | undefined, SqlError> => {
  const count = (state: string) =>
    sql.literal(`(
      select count(*)::int as tasks from (select 1 from deletion_tasks where state = '${state}' limit ${most}) counted
    ) ${state}`)
  const first = (state: string) =>
    sql.literal(`(select min(due_at) as due_at from deletion_tasks where state = '${state}') first_${state}`)
  return Effect.map(
    sql<TaskCounts>`
      select scheduled.tasks as scheduled, running.tasks as running, dead.tasks as dead,
        extract(epoch from least(first_scheduled.due_at, first_running.due_at))::float8 * 1000 as "firstDue",
        extract(epoch from clock_timestamp())::float8 * 1000 as now
      from ${count("scheduled")} cross join ${count("running")} cross join ${count("dead")}
      cross join ${first("scheduled")} cross join ${first("running")}`,
    ([counts]) => counts
  )
}
