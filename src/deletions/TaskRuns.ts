/** Logs, metrics and traces of the runs of tasks. */
import { Clock, DateTime, Duration, Effect, Function, Record, Struct } from "effect"
import { Outcome } from "../api/DeletionTasks.ts"
import * as Series from "../observability/Series.ts"
import * as Tracing from "../observability/Tracing.ts"
import { type Claim, stopped, type Taken } from "./Task.ts"
import { totalsOf } from "./Tasks.ts"

const lines = {
  completed: Effect.logInfo("A deletion task is completed"),
  failed: Effect.logWarning("A deletion task failed"),
  dead: Effect.logError("A deletion task is dead: it is not retried until an operator replays it"),
  superseded: Effect.logWarning("A deletion task was taken over by another worker, and changed nothing here"),
  released: Effect.logInfo("A deletion task was released: its attempt does not count")
} as const

// To make them for each task takes as much CPU time as all the rest of a task, measured.
const metricsIn = Function.memoize(({ counter, histogram }: Series.Series) => ({
  runs: Record.map(lines, (_, outcome) => counter("practice_data_task_runs_total", { outcome })),
  attempts: counter("practice_data_task_attempts_total"),
  takeovers: counter("practice_data_task_takeovers_total"),
  delays: histogram("practice_data_task_delay_seconds"),
  invoices: Record.map(Outcome.fields.invoices.fields, (_, verdict) =>
    counter("practice_data_task_items_total", { kind: "invoices", verdict })
  ),
  invoiceLines: Record.map(Outcome.fields.invoice_lines.fields, (_, verdict) =>
    counter("practice_data_task_items_total", { kind: "invoice_lines", verdict })
  ),
  linesOfInvoices: counter("practice_data_task_items_total", { kind: "lines_of_invoices", verdict: "deleted" })
}))

/** The metrics of attempts. They are there, at 0, from the first call on. */
export const runMetrics = Effect.map(Series.current, metricsIn)

/**
 * The result of an attempt. `failed`: another attempt follows; `superseded`: another worker has the task by now, and
 * nothing was changed; `released`: an outage ended the attempt, which does not count.
 */
type Result = keyof typeof lines

interface Details {
  readonly outcome?: Outcome | undefined
  readonly reason?: string
  /** The duration of its transaction. */
  readonly duration?: Duration.Duration
}

/** Counts the items of a completed task, and gives their totals for the log. */
const countItems = ({ invoiceLines, invoices, linesOfInvoices }: ReturnType<typeof metricsIn>, outcome: Outcome) => {
  for (const verdict of Struct.keys(invoices)) invoices[verdict].add(outcome.invoices[verdict])
  for (const verdict of Struct.keys(invoiceLines)) invoiceLines[verdict].add(outcome.invoice_lines[verdict])
  linesOfInvoices.add(outcome.lines_of_invoices)
  const { invoices: invoices_deleted, lines: invoice_lines_deleted, notDeleted: items_not_deleted } = totalsOf(outcome)
  return { invoices_deleted, invoice_lines_deleted, items_not_deleted }
}

/** Reports an attempt that ended now. */
export const report = Effect.fnUntraced(function* (
  { attempt, idempotencyKey, isTakeover, organization, scheduledFor, taskId }: Claim,
  result: Result,
  { duration = Duration.zero, outcome, reason }: Details = {}
) {
  const late = (yield* Clock.currentTimeMillis) - DateTime.toEpochMillis(scheduledFor)
  const metrics = yield* runMetrics
  metrics.runs[result].add()
  metrics.attempts.add()
  if (isTakeover) metrics.takeovers.add()
  if (result === "completed") metrics.delays.observe(Math.max(0, late) / 1000)
  yield* Effect.annotateLogs(lines[result], {
    task_id: taskId,
    organization,
    idempotency_key: idempotencyKey,
    attempt,
    result,
    ...(outcome && countItems(metrics, outcome)),
    ...(reason !== undefined && { reason }),
    ms: Math.round(Duration.toMillis(duration) * 10) / 10,
    late_ms: late,
    ...(isTakeover && { takeover: true })
  })
})

/** The claims among tasks that were taken. The others are reported as dead. */
export const claimsOf = Effect.fnUntraced(function* (taken: ReadonlyArray<Taken>) {
  for (const row of taken) if (row.isDead) yield* report(row, "dead", { reason: row.reason ?? stopped })
  return taken.flatMap((row) => (row.isDead ? [] : [Struct.omit(row, ["isDead", "reason"])]))
})

/** Runs tasks in a trace of its own, which is linked to those of their deliveries. */
export const traceRun = (claims: ReadonlyArray<Claim>) => {
  const [first, ...others] = claims
  const alone = others.length === 0 ? first : undefined
  return Tracing.root({
    name: "process deletion_tasks",
    kind: "consumer",
    links: claims.flatMap(({ traceParent }) => Tracing.parseTraceParent(traceParent) ?? []),
    attributes: {
      "practice_data.tasks": claims.length,
      ...(alone && {
        "practice_data.task_id": alone.taskId,
        "practice_data.organization": alone.organization,
        "practice_data.attempt": alone.attempt
      })
    }
  })
}
