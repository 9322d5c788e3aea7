/** Times, durations, numbers and the service's short names as text. */
import { DateTime, String } from "effect"
import { type Content, h } from "../http/Html.ts"

/** A length of time in its largest unit, such as `3 min`. */
export const span = (millis: number): string => {
  const seconds = Math.abs(millis) / 1000
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
  if (!Number.isFinite(millis)) return h("span", { class: "none" })("–")
  const ago = now - millis
  const [date, time] = utc(millis).split(" ")
  const relative = ago < 0 ? `in ${span(ago)}` : `${span(ago)} ago`
  return [h("time", { datetime: iso(millis) })(h("span")(date), " ", h("span")(time)), " ", h("small")(relative)]
}

export const latency = (millis: number | undefined): string => {
  if (millis === undefined) return "–"
  if (millis === Infinity) return "over 5 s"
  const [value, unit] = millis >= 1000 ? ([millis / 1000, "s"] as const) : ([millis, "ms"] as const)
  return `${value.toFixed(value < 10 && !Number.isInteger(value) ? 1 : 0)} ${unit}`
}

const grouped = new Intl.NumberFormat("en")

/** A whole number, such as `12,345`. Counts that stop at `most` are shown as `over 10,000` above it. */
export const count = (value: number, most = Infinity): string =>
  value > most ? `over ${grouped.format(most)}` : grouped.format(Math.round(value))

/** A count with its noun, such as `1 task` or `2 tasks`. */
export const counted = (value: number, one: string): string => `${count(value)} ${value === 1 ? one : `${one}s`}`

/** To one decimal below 10. Less than a tenth of something is `<0.1`. */
export const rate = (value: number): string => {
  if (value > 0 && value < 0.1) return "<0.1"
  return value > 0 && value < 10 ? value.toFixed(1) : count(value)
}

export const share = (part: number, whole: number): string => (whole === 0 ? "–" : `${rate((100 * part) / whole)} %`)

export const bytes = (value: number): string => `${count(value / 1024 ** 2)} MiB`

const names: Readonly<Record<string, string>> = {
  key: "Invalid API key",
  signature: "Invalid signature",
  limit: "Rate limited",
  load: "Overloaded",
  outage: "Database outage",
  too_large: "Too large",
  protocol: "Not HTTP",
  timeout: "Body too slow",
  records: "Record store",
  credentials: "Credential store",
  tasks: "Task store",
  processor: "Payment processor"
}

/** The reason why a request was refused, or a dependency. */
export const name = (key: string): string => names[key] ?? String.capitalize(key)
