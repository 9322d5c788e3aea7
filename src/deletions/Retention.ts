/**
 * The retention of payloads. A task that has ended keeps its receipt, fingerprint and outcome, so that a repeated delivery
 * stays a duplicate. A dead task keeps its payload for its replay.
 */
import { DateTime, Duration, Effect, Layer } from "effect"
import { decodeRows } from "../database/Columns.ts"
import { TaskDatabase } from "../database/Database.ts"
import * as Loop from "../observability/Loop.ts"
import * as Marks from "./Marks.ts"
import { inTime } from "./Scheduler.ts"

const ids = decodeRows(Marks.TaskId)

/**
 * Empties the payloads of tasks that were completed or cancelled until a time, oldest first. Their items that were not found
 * are forgotten once open transactions have ended. Returns the number of tasks.
 */
export const empty = Effect.fnUntraced(function* (until: DateTime.Utc, limit: number) {
  const sql = yield* TaskDatabase
  const asWorker = inTime(sql, "the worker", Duration.seconds(5))
  const now = DateTime.formatIso(yield* DateTime.now)
  const ended = yield* Effect.forEach(["completed", "cancelled"] as const, (state) =>
    // A clock that is ahead of the database's does not end the retention early: nothing brings back what is forgotten.
    asWorker(
      ids(sql`
        select organization_id as organization, id as "taskId" from deletion_tasks
        where state = ${sql.literal(`'${state}'`)} and payload is not null
          and finished_at <= ${DateTime.formatIso(until)}::timestamptz - greatest(${now}::timestamptz - now(), interval '0')
        order by finished_at limit ${sql.literal(`${limit}`)}`)
    )
  )
  for (const task of ended.flat()) {
    const { organization, taskId } = task
    const isFact = sql`organization_id = ${organization} and task_id = ${taskId}::uuid`
    const forget = Effect.all([
      sql`delete from deletions where ${isFact} and (verdict like '%mismatch' or undone_at is not null and not holds)`,
      sql`update deletions set verdict = 'forgotten' where ${isFact} and verdict = 'not_found'`,
      Marks.unsettle(sql, task),
      sql`update deletion_tasks set payload = null where organization_id = ${organization} and id = ${taskId}::uuid`
    ])
    yield* asWorker(Effect.andThen(Marks.judge(sql, { organization, ids: [taskId] }), Marks.inMarking(sql, forget)))
  }
  return ended.flat().length
})

const step = { tasks: 100, pause: Duration.millis(200), idle: Duration.minutes(1) }

/** Empties payloads until the scope closes. `retention`: the time that a task keeps its payload once it has ended. */
export const layer = (retention = Duration.days(90)) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const sql = yield* TaskDatabase
      const emptied = DateTime.now.pipe(
        Effect.flatMap((now) => empty(DateTime.subtractDuration(now, retention), step.tasks)),
        Effect.orElseSucceed(() => 0),
        Effect.flatMap((count) => Effect.sleep(count < step.tasks ? step.idle : step.pause)),
        Effect.provideService(TaskDatabase, sql)
      )
      yield* Effect.forkScoped(Loop.forever("The retention of payloads", emptied))
    })
  )
