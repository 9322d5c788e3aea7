/** Tasks as a worker sees them: its claims, and the reports of their runs. */
import { Array, DateTime, Duration, Effect, Function, Number, Record, Schema, Struct } from "effect"
import { Outcome } from "../api/DeletionTasks.ts"
import * as Series from "../observability/Series.ts"
import * as Tracing from "../observability/Tracing.ts"
import * as Time from "../process/Time.ts"

/** The task is to be run again, and its attempt does not count. The text is the reason. */
export type Postponed = Readonly<{ postponed: string }>

/** Others hold rows of the task. */
export const locked: Postponed = { postponed: "Other transactions hold rows that it deletes" }

/** The outcome of a run; undefined if another worker has the task. */
export type RunOutcome = Outcome | Postponed | undefined

export const TaskId = Schema.Struct({ organization: Schema.String, taskId: Schema.String })
export type TaskId = typeof TaskId.Type

export const keyOf = ({ organization, taskId }: TaskId) => `${organization}/${taskId}`

/** A task that a worker holds. */
export const Claim = Schema.Struct({
  ...TaskId.fields,
  idempotencyKey: Schema.String,
  scheduledFor: Schema.DateTimeUtcFromDate,
  token: Schema.String,
  /** The number of the attempt, from 1. */
  attempt: Schema.Int,
  /** True if the lease of another worker expired. */
  isTakeover: Schema.Boolean,
  /** The `traceparent` of the delivery, where it was sampled and this process traces. */
  traceParent: Schema.optionalKey(Schema.NullOr(Schema.String))
})
export type Claim = typeof Claim.Type

/** A task that was claimed, or that is dead because its attempts are used up. */
export const Taken = Schema.Struct({ ...Claim.fields, isDead: Schema.Boolean, reason: Schema.NullOr(Schema.String) })
export type Taken = typeof Taken.Type

/** The last error of a task whose workers never reported one. */
export const stopped = "The worker stopped during the attempt"

/**
 * The most tasks of each kind to claim; none by default. Those that have been due the longest come first, unless
 * organizations take turns.
 */
export interface ClaimLimits {
  /** Organizations whose due tasks are not claimed. The others take turns. */
  readonly except?: ReadonlySet<string>
  /** Tasks that are due for their first or another attempt. */
  readonly due?: number
  /** Tasks whose lease expired, and that may still run beside others. */
  readonly expired?: number
  /** Tasks whose lease expired too often for that. A worker that claims one must hold nothing else. */
  readonly isolated?: number
}

/** Groups by organization, in the given order. */
export const byOrganization = <A extends { readonly organization: string }>(
  all: ReadonlyArray<A>
): ReadonlyArray<Array.NonEmptyReadonlyArray<A>> =>
  // An organization may have the name of a property of every object.
  Object.values(Array.groupBy(all, ({ organization }) => `=${organization}`))

/** The number of invoices and lines that were deleted, and of the items that were not. */
export const totalsOf = ({ invoice_lines, invoices, lines_of_invoices }: Outcome) => {
  const items = Number.sumAll([...Object.values(invoices), ...Object.values(invoice_lines)])
  return {
    invoices: invoices.deleted,
    lines: invoice_lines.deleted + lines_of_invoices,
    notDeleted: items - invoices.deleted - invoice_lines.deleted
  }
}

const lines = {
  completed: Effect.logInfo("A deletion task completed"),
  failed: Effect.logWarning("A deletion task failed"),
  dead: Effect.logError("A deletion task is dead: an operator must replay it"),
  superseded: Effect.logWarning("A deletion task was taken over by another worker: this attempt changed nothing"),
  released: Effect.logInfo("A deletion task was released: the attempt does not count")
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
 * nothing was changed; `released`: others or an outage ended the attempt, which does not count.
 */
type Result = keyof typeof lines

/** Counts the items of a completed task, and gives their totals for the log. */
const countItems = ({ invoiceLines, invoices, linesOfInvoices }: ReturnType<typeof metricsIn>, outcome: Outcome) => {
  for (const verdict of Struct.keys(invoices)) invoices[verdict].add(outcome.invoices[verdict])
  for (const verdict of Struct.keys(invoiceLines)) invoiceLines[verdict].add(outcome.invoice_lines[verdict])
  linesOfInvoices.add(outcome.lines_of_invoices)
  const { invoices: invoices_deleted, lines: invoice_lines_deleted, notDeleted: items_not_deleted } = totalsOf(outcome)
  return { invoices_deleted, invoice_lines_deleted, items_not_deleted }
}

/** Reports an attempt that ended now. `duration`: of its transaction. */
export const report = Effect.fnUntraced(function* (
  { attempt, idempotencyKey, isTakeover, organization, scheduledFor, taskId }: Claim,
  result: Result,
  {
    duration = Duration.zero,
    outcome,
    reason
  }: { readonly outcome?: Outcome | undefined; readonly reason?: string; readonly duration?: Duration.Duration } = {}
) {
  const late = (yield* Time.wall) - DateTime.toEpochMillis(scheduledFor)
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
  const only = others.length === 0 ? first : undefined
  return Tracing.root({
    name: "process deletion_tasks",
    kind: "consumer",
    links: claims.flatMap(({ traceParent }) => Tracing.parseTraceParent(traceParent) ?? []),
    attributes: {
      "practice_data.tasks": claims.length,
      ...(only && {
        "practice_data.task_id": only.taskId,
        "practice_data.organization": only.organization,
        "practice_data.attempt": only.attempt
      })
    }
  })
}
