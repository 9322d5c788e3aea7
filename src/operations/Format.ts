/** Times, durations, numbers and the service's short names as text. */
import { DateTime } from "effect"
import { type Content, h } from "../http/Html.ts"

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

/** A length of time in its largest unit, such as `3 min`. */
export const span = (millis: number): string => {
  const length = Math.abs(millis)
  if (length < minute) return `${Math.floor(length / second)} s`
  if (length < 2 * hour) return `${Math.floor(length / minute)} min`
  if (length < 2 * day) return `${Math.floor(length / hour)} h`
  return `${Math.floor(length / day)} days`
}

/** A time as ISO 8601, in UTC. */
export const iso = (millis: number): string => DateTime.formatIso(DateTime.makeUnsafe(millis))

/** A time in UTC, to the second. */
export const utc = (millis: number): string => iso(millis).slice(0, 19).replace("T", " ")

/** The time of day in UTC, such as `09:30`. */
export const timeOfDay = (millis: number): string => iso(millis).slice(11, 16)

/** A time and its distance from now. */
export const moment = (at: string | number | null, now: number): Content => {
  const millis = typeof at === "string" ? Date.parse(at) : at
  if (millis === null || !Number.isFinite(millis)) return h("span", { class: "none" })("–")
  const ago = now - millis
  const relative = Math.abs(ago) < second ? "now" : ago > 0 ? `${span(ago)} ago` : `in ${span(ago)}`
  const [date, time] = utc(millis).split(" ")
  const parts = [h("span")(date), " ", h("span")(time)]
  return [h("time", { datetime: iso(millis) })(parts), " ", h("small")(relative)]
}

/** A latency in milliseconds. */
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

/** Requests per second. */
export const rate = (value: number): string =>
  value === 0 ? "0" : value < 0.1 ? "<0.1" : value < 10 ? value.toFixed(1) : count(value)

/** A share in percent. */
export const share = (part: number, whole: number): string => {
  if (whole === 0) return "–"
  const percent = (100 * part) / whole
  if (percent === 0) return "0 %"
  return percent < 0.1 ? "<0.1 %" : `${percent < 10 ? percent.toFixed(1) : Math.round(percent)} %`
}

/** A number of bytes. */
export const bytes = (value: number): string => `${count(value / 1024 ** 2)} MiB`

const reasons: Readonly<Record<string, string>> = {
  key: "invalid API key",
  signature: "invalid signature",
  limit: "rate limited",
  load: "overloaded",
  outage: "database outage",
  processor: "payment processor",
  too_large: "too large",
  protocol: "not HTTP",
  timeout: "body too slow"
}

/** The reason why a request was refused. */
export const reason = (name: string): string => reasons[name] ?? name

const dependencies: Readonly<Record<string, string>> = {
  records: "Record store",
  credentials: "Credential store",
  tasks: "Task store",
  changes: "Changes",
  processor: "Payment processor",
  worker: "Deletion worker",
  telemetry: "Telemetry export"
}

/** The name of a dependency. */
export const dependency = (name: string): string => dependencies[name] ?? name
