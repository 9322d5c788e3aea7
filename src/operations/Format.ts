/** Times, durations and numbers as text. */
import { DateTime } from "effect"
import type { Task } from "../deletions/OperatorTasks.ts"
import { outcomeTotals } from "../deletions/Report.ts"
import { type Content, h } from "../http/Html.ts"

/** A length of time in its largest unit, such as `3 min`. */
export const span = (millis: number): string => {
  const seconds = Math.abs(millis) / 1000
  if (seconds === Infinity) return "∞"
  if (seconds < 60) return `${Math.floor(seconds)} s`
  if (seconds < 2 * 3600) return `${Math.floor(seconds / 60)} min`
  if (seconds < 2 * 86_400) return `${Math.floor(seconds / 3600)} h`
  return `${Math.floor(seconds / 86_400)} days`
}

export const iso = (millis: number): string => DateTime.formatIso(DateTime.makeUnsafe(millis))

/** A time in UTC, to the second. */
export const utc = (millis: number): string => iso(millis).slice(0, 19).replace("T", " ")

/** A time and its distance from now. */
export const moment = (at: string | number | null, now: number): Content => {
  const millis = typeof at === "string" ? Date.parse(at) : (at ?? NaN)
  // JavaScript parses no year beyond 9999 as the database writes it.
  if (!Number.isFinite(millis)) return "–"
  const ago = now - millis
  const relative = ago < 0 ? `in ${span(ago)}` : `${span(ago)} ago`
  return [h("time", { datetime: iso(millis) })(utc(millis)), " ", h("small")(relative)]
}

/** A number with a comma between thousands. `Intl` would take 5 MiB of memory for this. */
const grouped = (value: number) => String(value).replaceAll(/(?<!\.\d*)\B(?=(\d{3})+(?!\d))/g, ",")

/** A number with two significant digits. */
const rough = (value: number) => grouped(Number(value.toPrecision(2)))

/** Milliseconds, infinitely many beyond the last bucket of the counts. */
export const latency = (millis: number | undefined): string => {
  if (millis === undefined) return "–"
  return millis === Infinity ? "over 5 s" : `${rough(millis)} ms`
}

/** A whole number, such as `12,345`. Counts that stop at `most` are shown as `over 10,000` above it. */
export const count = (value: number, most = Infinity): string =>
  value > most ? `over ${grouped(most)}` : grouped(Math.round(value))

/** A count with its noun, such as `1 task` or `2 tasks`. */
export const counted = (value: number, one: string): string => `${count(value)} ${value === 1 ? one : `${one}s`}`

export const share = (part: number, all: number): string => (all === 0 ? "–" : `${rough((100 * part) / all)} %`)

/** The outcome of a deletion task, or its last error. */
export const outcomeText = ({ last_error, outcome }: Task): string | null => {
  if (outcome === null) return last_error
  const { invoice_lines_deleted, invoices_deleted, items_not_deleted } = outcomeTotals(outcome)
  const done = `${counted(invoices_deleted, "invoice")} and ${counted(invoice_lines_deleted, "line")} deleted`
  return items_not_deleted === 0 ? done : `${done}, ${count(items_not_deleted)} not`
}
