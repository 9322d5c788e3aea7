/** A deletion task, told to a person. */
import { Array, Number, Record } from "effect"
import type { Outcome, State } from "../api/DeletionTasks.ts"
import { maximumAttempts } from "../deletions/Task.ts"
import * as Table from "./Table.ts"

/** What is told of a task. Times are ISO 8601 in UTC. */
export interface Told {
  readonly id: string
  readonly organization: string | undefined
  readonly idempotencyKey: string
  readonly state: State
  readonly received: string
  readonly scheduledFor: string
  readonly started: string | null
  readonly finished: string | null
  readonly attempts: number
  readonly lastError?: string | null
  readonly invoices: number
  readonly lines: number
  readonly outcome: Outcome | null
}

const counted = (count: number, one: string) => `${count} ${count === 1 ? one : `${one}s`}`

const reasons = {
  invoices: {
    not_found: "the organization has no such invoice",
    clinic_mismatch: "clinic_id is neither the home nor the servicing clinic of the invoice",
    client_mismatch: "client_id is not the client of the invoice"
  },
  invoice_lines: {
    not_found: "the organization has no such line",
    invoice_mismatch: "invoice_id is not the invoice of the line",
    clinic_mismatch: "clinic_id is not the clinic of the line"
  }
} as const

const missed = <Reason extends string>(
  counts: Readonly<Record<NoInfer<Reason>, number>>,
  texts: Readonly<Record<Reason, string>>,
  one: string
) =>
  Record.toEntries(texts)
    .map(([reason, text]) => ({ count: counts[reason], text: `${counted(counts[reason], one)}: ${text}` }))
    .filter(({ count }) => count > 0)

/** What was deleted, in a few words, and what was not, by the reason. */
const told = ({ invoices, invoice_lines, lines_of_invoices }: Outcome) => {
  const ofInvoices = `${counted(invoices.deleted, "invoice")} with ${counted(lines_of_invoices, "line")}`
  const ofLines = `${counted(invoice_lines.deleted, "line")} named by itself`
  const deleted = [...(invoices.deleted > 0 ? [ofInvoices] : []), ...(invoice_lines.deleted > 0 ? [ofLines] : [])]
  return {
    deleted: deleted.length === 0 ? "nothing" : deleted.join(", "),
    missed: [...missed(invoices, reasons.invoices, "invoice"), ...missed(invoice_lines, reasons.invoice_lines, "line")]
  }
}

/** The outcome of a task in one line: what it deleted, how much it did not, or why it failed. */
export const inBrief = (outcome: Outcome | null, lastError: string | null) => {
  if (outcome === null) return lastError
  const { deleted, missed: others } = told(outcome)
  return `deleted ${deleted}${others.length === 0 ? "" : `; ${Number.sumAll(others.map(({ count }) => count))} not`}`
}

const time = (text: string | null) => (text === null ? [] : [`${Table.second(text)} UTC`])

const entry = (name: string, values: ReadonlyArray<string>): ReadonlyArray<readonly [string, string]> =>
  values.map((value, index) => [index === 0 ? name : "", value] as const)

/** The lines about a task. */
export const lines = (task: Told): ReadonlyArray<string> => {
  const outcome = task.outcome === null ? undefined : told(task.outcome)
  return Table.pairs(
    Array.flatten([
      entry("Task", [task.id]),
      entry("Organization", Array.fromNullishOr(task.organization)),
      entry("Idempotency-Key", [task.idempotencyKey]),
      entry("State", [task.state]),
      entry("Names", [`${counted(task.invoices, "invoice")} and ${counted(task.lines, "line")}`]),
      entry("Received", time(task.received)),
      entry("Scheduled for", time(task.scheduledFor)),
      entry("Started", time(task.started)),
      entry("Finished", time(task.finished)),
      entry("Attempts", [`${task.attempts} of ${maximumAttempts}`]),
      entry("Last error", Array.fromNullishOr(task.lastError)),
      entry("Deleted", outcome === undefined ? [] : [outcome.deleted]),
      entry("Not deleted", outcome?.missed.map(({ text }) => text) ?? [])
    ])
  )
}
