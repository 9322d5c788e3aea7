/** The text of a deletion task. */
import { Array } from "effect"
import type { Outcome } from "../api/DeletionTasks.ts"
import { maximumAttempts } from "../deletions/Task.ts"
import * as Tasks from "../deletions/Tasks.ts"
import { pairs, second } from "./Output.ts"

const counted = (count: number, one: string) => `${count} ${count === 1 ? one : `${one}s`}`

const names = { invoices: "invoice", invoice_lines: "line" } as const

const deletedText = ({ invoices, invoice_lines, lines_of_invoices }: Outcome) => {
  const ofInvoices = `${counted(invoices.deleted, "invoice")} with ${counted(lines_of_invoices, "line")}`
  const ofLines = `${counted(invoice_lines.deleted, "line")} named by itself`
  const deleted = [...(invoices.deleted > 0 ? [ofInvoices] : []), ...(invoice_lines.deleted > 0 ? [ofLines] : [])]
  return deleted.length === 0 ? "nothing" : deleted.join(", ")
}

/** The outcome of a task in one line, or its last error. */
export const inBrief = ({ last_error, outcome }: Pick<Tasks.Task, "last_error" | "outcome">) => {
  if (outcome === null) return last_error
  const { notDeleted } = Tasks.totalsOf(outcome)
  return `deleted ${deletedText(outcome)}${notDeleted === 0 ? "" : `; ${notDeleted} not`}`
}

const time = (text: string | null) => (text === null ? [] : [`${second(text)} UTC`])

const entry = (name: string, values: ReadonlyArray<string>): ReadonlyArray<readonly [string, string]> =>
  values.map((value, index) => [index === 0 ? name : "", value] as const)

type Shown = Omit<Tasks.TaskDetails, "due_at" | "trace_parent">

/** The lines about a task. */
export const lines = (task: Shown): ReadonlyArray<string> => {
  const { outcome } = task
  const missed = outcome === null ? [] : Tasks.notDeleted(outcome)
  return pairs(
    Array.flatten([
      entry("Task", [task.id]),
      entry("Organization", [task.organization_id]),
      entry("Idempotency-Key", [task.idempotency_key]),
      entry("State", [task.state]),
      entry("Names", [`${counted(task.invoices_count, "invoice")} and ${counted(task.invoice_lines_count, "line")}`]),
      entry("Received", time(task.received_at)),
      entry("Scheduled for", time(task.scheduled_for)),
      entry("Started", time(task.started_at)),
      entry("Finished", time(task.finished_at)),
      entry("Attempts", [`${task.attempts} of ${maximumAttempts}`]),
      entry("Last error", Array.fromNullishOr(task.last_error)),
      entry("Deleted", outcome === null ? [] : [deletedText(outcome)]),
      entry(
        "Not deleted",
        missed.map(({ count, items, reason }) => `${counted(count, names[items])}: ${reason}`)
      )
    ])
  )
}
