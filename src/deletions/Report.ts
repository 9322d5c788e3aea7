/** The reports of attempts: their log lines, metrics and traces. */
import { DateTime, Duration, Effect, Function, Number, Record } from "effect"
import type { Outcome } from "../api/DeletionTasks.ts"
import * as Metrics from "../observability/Metrics.ts"
import * as Tracing from "../observability/Tracing.ts"
import * as Time from "../observability/Time.ts"
import type { Claim } from "./Scheduler.ts"

/** The number of invoices and lines that were deleted, and of the items that were not. */
export const outcomeTotals = ({ invoice_lines, invoices, lines_of_invoices }: Outcome) => {
  const items = Number.sumAll([...Object.values(invoices), ...Object.values(invoice_lines)])
  return {
    invoices_deleted: invoices.deleted,
    invoice_lines_deleted: invoice_lines.deleted + lines_of_invoices,
    items_not_deleted: items - invoices.deleted - invoice_lines.deleted
  }
}

const lines = {
  completed: Effect.logInfo("A deletion task completed"),
  failed: Effect.logWarning("A deletion task failed"),
  dead: Effect.logError("A deletion task is dead: an operator must replay it"),
  superseded: Effect.logWarning("A deletion task was taken over by another worker: this attempt changed nothing"),
  released: Effect.logInfo("A deletion task was released: the attempt does not count")
} as const

// Made once: making them for each task doubled its CPU time, measured.
const metricsIn = Function.memoize(({ counter, histogram }: Metrics.Series) => ({
  runs: Record.map(lines, (_, outcome) => counter("practice_data_task_runs_total", { outcome })),
  delays: histogram("practice_data_task_delay_seconds")
}))

/** The metrics of attempts. They are there, at 0, from the first call on. */
export const runMetrics = Effect.map(Metrics.series, metricsIn)

/**
 * The result of an attempt. `failed`: another attempt follows; `superseded`: another worker has the task by now, and
 * nothing was changed; `released`: others or an outage ended the attempt, which does not count.
 */
type Result = keyof typeof lines

/** Reports an attempt that ended now. `duration`: of its transaction. */
export const report = Effect.fnUntraced(function* (
  { attempt, idempotencyKey, isTakeover, organization, scheduledFor, taskId }: Claim,
  result: Result,
  {
    duration = Duration.zero,
    outcome,
    reason
  }: {
    readonly outcome?: Outcome | undefined
    readonly reason?: string | null
    readonly duration?: Duration.Duration
  } = {}
) {
  const late = (yield* Time.wall) - DateTime.toEpochMillis(scheduledFor)
  const metrics = yield* runMetrics
  metrics.runs[result].add()
  if (result === "completed") metrics.delays.observe(Math.max(0, late) / 1000)
  yield* Effect.annotateLogs(lines[result], {
    task_id: taskId,
    organization,
    idempotency_key: idempotencyKey,
    attempt,
    result,
    ...(outcome && outcomeTotals(outcome)),
    ...(reason !== undefined && { reason }),
    ms: Math.round(Duration.toMillis(duration) * 10) / 10,
    late_ms: late,
    ...(isTakeover && { takeover: true })
  })
})

/** Runs an attempt in a trace of its own. */
export const traceRun = ({ attempt, organization, taskId }: Claim) =>
  Tracing.root({
    name: "process deletion_tasks",
    kind: "consumer",
    attributes: {
      "practice_data.tasks": 1,
      "practice_data.task_id": taskId,
      "practice_data.organization": organization,
      "practice_data.attempt": attempt
    }
  })
