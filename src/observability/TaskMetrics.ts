/** Counts attempts to run deletion tasks by what became of them. */
import type { Outcome } from "../api/DeletionTasks.ts"
import type { Series } from "./Series.ts"
import type { TaskRun } from "./TaskRun.ts"

const results: ReadonlyArray<TaskRun["result"]> = ["completed", "failed", "dead", "superseded", "released"]

const invoiceVerdicts = ["deleted", "not_found", "clinic_mismatch", "client_mismatch"] as const
const lineVerdicts = ["deleted", "not_found", "invoice_mismatch", "clinic_mismatch"] as const

/** An observer of attempts. Its counters are there, at 0, from the start. */
export const make = (series: Series) => {
  const runs = new Map(
    results.map((outcome) => [outcome, series.counter("practice_data_task_runs_total", { outcome })] as const)
  )
  const attempts = series.counter("practice_data_task_attempts_total")
  const takeovers = series.counter("practice_data_task_takeovers_total")
  const delays = series.histogram("practice_data_task_delay_seconds")
  const invoices = invoiceVerdicts.map(
    (verdict) => [verdict, series.counter("practice_data_task_items_total", { kind: "invoices", verdict })] as const
  )
  const lines = lineVerdicts.map(
    (verdict) =>
      [verdict, series.counter("practice_data_task_items_total", { kind: "invoice_lines", verdict })] as const
  )
  const linesOfInvoices = series.counter("practice_data_task_items_total", {
    kind: "lines_of_invoices",
    verdict: "deleted"
  })

  const countItems = (outcome: Outcome) => {
    for (const [verdict, counter] of invoices) counter.add(outcome.invoices[verdict])
    for (const [verdict, counter] of lines) counter.add(outcome.invoice_lines[verdict])
    linesOfInvoices.add(outcome.lines_of_invoices)
  }

  return ({ isTakeover, late, outcome, result }: TaskRun) => {
    runs.get(result)?.add()
    attempts.add()
    if (isTakeover) takeovers.add()
    if (result === "completed") delays.observe(Math.max(0, late) / 1000)
    if (outcome !== undefined) countItems(outcome)
  }
}
