/** Tells what became of an attempt to run a task: in a log line, and to whoever observes. */
import { Clock, DateTime, Effect } from "effect"
import type { Outcome } from "../api/DeletionTasks.ts"
import { TaskObservers, type TaskRun } from "../observability/TaskRun.ts"
import type { Claim } from "./Task.ts"

const lines = {
  completed: Effect.logInfo("A deletion task is completed"),
  failed: Effect.logWarning("A deletion task failed"),
  dead: Effect.logError("A deletion task is dead: it is not tried again until an operator replays it"),
  superseded: Effect.logWarning("A deletion task was taken over by another worker, and changed nothing here"),
  released: Effect.logInfo("A deletion task was given back: its attempt does not count")
} as const

const without = (counts: Readonly<Record<string, number>>) =>
  Object.entries(counts).reduce((sum, [verdict, count]) => (verdict === "deleted" ? sum : sum + count), 0)

const countsOf = ({ invoice_lines, invoices, lines_of_invoices }: Outcome) => ({
  invoices_deleted: invoices.deleted,
  invoice_lines_deleted: invoice_lines.deleted + lines_of_invoices,
  items_not_deleted: without(invoices) + without(invoice_lines)
})

const rounded = (milliseconds: number) => Math.round(milliseconds * 10) / 10

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
      ms: rounded(duration),
      late_ms: late,
      ...(isTakeover ? { takeover: true } : {})
    })
  })
