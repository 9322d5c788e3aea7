/** Checks that deletions are run. */
import { Effect } from "effect"
import type { Database } from "../../database/Database.ts"
import { counts, mostCounted } from "../../deletions/Tasks.ts"
import { invocation } from "../../process/Package.ts"
import { ok, warn } from "./Finding.ts"

/** How late a task may be, in seconds. */
const latest = 60

const deadText = (dead: number) => {
  if (dead > mostCounted) return `More than ${mostCounted} deletions are`
  return dead === 1 ? "1 deletion is" : `${dead} deletions are`
}

/** The tasks that are due, and those that are dead. */
export const check = Effect.fnUntraced(function* (sql: Database) {
  const { dead, now, oldest_due_at } = yield* counts(sql)
  const late = oldest_due_at === null ? 0 : (Date.parse(now) - Date.parse(oldest_due_at)) / 1000
  if (late <= latest && dead === 0) return [ok("No deletion is late or dead.")]
  return [
    ...(late > latest
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
            `${deadText(dead)} dead: every attempt failed.`,
            `See why: ${invocation("tasks list --state dead")}. Then: ${invocation("tasks replay TASK-ID")}`
          )
        ]
      : [])
  ]
})
