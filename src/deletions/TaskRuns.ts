/** Logs, metrics and traces of the runs of tasks. */
import { Clock, type Context, DateTime, Effect, Exit, Struct } from "effect"
import type { Outcome } from "../api/DeletionTasks.ts"
import { TaskObservers, type TaskRun } from "../observability/TaskRun.ts"
import * as Tracing from "../observability/Tracing.ts"
import { type Claim, stopped, type Taken } from "./Task.ts"
import { totalsOf } from "./Tasks.ts"

const lines = {
  completed: Effect.logInfo("A deletion task is completed"),
  failed: Effect.logWarning("A deletion task failed"),
  dead: Effect.logError("A deletion task is dead: it is not tried again until an operator replays it"),
  superseded: Effect.logWarning("A deletion task was taken over by another worker, and changed nothing here"),
  released: Effect.logInfo("A deletion task was given back: its attempt does not count")
} as const

const countsOf = (outcome: Outcome) => {
  const { invoices, lines: deletedLines, notDeleted } = totalsOf(outcome)
  return { invoices_deleted: invoices, invoice_lines_deleted: deletedLines, items_not_deleted: notDeleted }
}

/** Reports an attempt that ended now. `duration`: milliseconds. */
export const report = (
  { attempt, idempotencyKey, isTakeover, organization, scheduledFor, taskId }: Claim,
  { duration = 0, ...ended }: Pick<TaskRun, "result" | "outcome" | "reason"> & { readonly duration?: number }
) =>
  Effect.gen(function* () {
    const late = (yield* Clock.currentTimeMillis) - DateTime.toEpochMillis(scheduledFor)
    const run = { organization, taskId, idempotencyKey, attempt, isTakeover, duration, late, ...ended }
    for (const observe of yield* TaskObservers) observe(run)
    yield* Effect.annotateLogs(lines[ended.result], {
      task_id: taskId,
      organization,
      idempotency_key: idempotencyKey,
      attempt,
      result: ended.result,
      ...(ended.outcome === undefined ? {} : countsOf(ended.outcome)),
      ...(ended.reason === undefined ? {} : { reason: ended.reason }),
      ms: Math.round(duration * 10) / 10,
      late_ms: late,
      ...(isTakeover ? { takeover: true } : {})
    })
  })

/** The claims among tasks that were taken. The others are reported as dead. */
export const claimsOf = Effect.fnUntraced(function* (taken: ReadonlyArray<Taken>) {
  for (const row of taken) if (row.isDead) yield* report(row, { result: "dead", reason: row.reason ?? stopped })
  return taken.flatMap((row) => (row.isDead ? [] : [Struct.omit(row, ["isDead", "reason"])]))
})

/** Runs tasks in a trace of its own, which is linked to those of their deliveries. */
export const traceRun = (claims: ReadonlyArray<Claim>) => {
  const [first] = claims
  return Tracing.root({
    name: "process deletion_tasks",
    kind: "consumer",
    links: claims.flatMap(({ traceParent }) => Tracing.parseTraceParent(traceParent) ?? []),
    attributes: {
      "practice_data.tasks": claims.length,
      ...(first === undefined || claims.length > 1
        ? {}
        : {
            "practice_data.task_id": first.taskId,
            "practice_data.organization": first.organization,
            "practice_data.attempt": first.attempt
          })
    }
  })
}

/** Works in a trace that begins with the claim of the tasks. A claim that found nothing has no trace. */
export const traceRound =
  (startTime: bigint, claimed: number) =>
  <A, E, R>(working: Effect.Effect<A, E, R>) => {
    if (claimed === 0) return working
    const attributes = { "practice_data.tasks": claimed }
    return Effect.contextWith((context: Context.Context<R>) => {
      Tracing.child(context, "Scheduler.claim", { startTime })?.end(Tracing.now(context), Exit.void)
      return working
    }).pipe(Tracing.root({ name: "Worker.round", kind: "internal", startTime, attributes }))
  }
