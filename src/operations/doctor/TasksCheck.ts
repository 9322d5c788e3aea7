/** Checks that deletions are run. */
import { Effect } from "effect"
import type { PgClient } from "@effect/sql-pg"
import { invocation } from "../../process/Invocation.ts"
import { ok, warn } from "./Finding.ts"

interface Waiting {
  readonly late: number | null
  readonly dead: number
}

/** How late a task may be, in seconds. */
const latest = 60

/** More are not counted. */
const most = 1000

/** The tasks that are due, and those that are dead. */
export const check = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const [found] = yield* sql<Waiting>`
    select extract(epoch from clock_timestamp() - least(scheduled.due_at, running.due_at))::float8 as late, dead.count as dead
    from (select min(due_at) as due_at from deletion_tasks where state = 'scheduled') scheduled
    cross join (select min(due_at) as due_at from deletion_tasks where state = 'running') running
    cross join (
      select count(*)::int as count from (
        select 1 from deletion_tasks where state = 'dead' limit ${sql.literal(String(most))}
      ) counted
    ) dead`
  if (found === undefined) return []
  const { dead, late } = found
  const isLate = late !== null && late > latest
  return [
    ...(isLate
      ? [
          warn(
            `A deletion has been due for ${Math.round(late)} seconds.`,
            "Run a process with the role worker, and look at its log."
          )
        ]
      : []),
    ...(dead > 0
      ? [
          warn(
            `${dead === most ? `${most} deletions or more are` : dead === 1 ? "1 deletion is" : `${dead} deletions are`} dead: every attempt failed.`,
            `See why: ${invocation("tasks list --state dead")}. Then: ${invocation("tasks replay TASK-ID")}`
          )
        ]
      : []),
    ...(isLate || dead > 0 ? [] : [ok("No deletion is late or dead.")])
  ]
})
