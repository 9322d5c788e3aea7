/** How times, durations and numbers are shown. */
import { DateTime } from "effect"
import { type Html, html } from "./Html.ts"

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

/** The time of a day in UTC, such as `09:30`. */
export const timeOfDay = (millis: number): string => iso(millis).slice(11, 16)

/** A time, and how long ago it was, or how soon it is. */
export const moment = (at: string | number | null, now: number): Html => {
  const millis = typeof at === "string" ? Date.parse(at) : at
  if (millis === null || !Number.isFinite(millis)) return html`<span class="none">–</span>`
  const ago = now - millis
  const relative = Math.abs(ago) < second ? "now" : ago > 0 ? `${span(ago)} ago` : `in ${span(ago)}`
  const [date, time] = utc(millis).split(" ")
  return html`<time datetime="${iso(millis)}"><span>${date}</span> <span>${time}</span></time>
    <small>${relative}</small>`
}

/** A latency in milliseconds. */
export const latency = (millis: number | undefined): string => {
  if (millis === undefined) return "–"
  if (millis === Infinity) return "over 5 s"
  const [value, unit] = millis >= 1000 ? ([millis / 1000, "s"] as const) : ([millis, "ms"] as const)
  return `${value.toFixed(value < 10 && !Number.isInteger(value) ? 1 : 0)} ${unit}`
}

const grouped = new Intl.NumberFormat("en")

/** A whole number, such as `12,345`. */
export const count = (value: number): string => grouped.format(Math.round(value))

/** A count that goes no further than a limit. */
export const capped = (value: number, most: number): string => (value > most ? `over ${count(most)}` : count(value))

/** A number of requests a second. */
export const rate = (value: number): string =>
  value === 0 ? "0" : value < 0.1 ? "<0.1" : value < 10 ? value.toFixed(1) : count(value)

/** A part of a whole. */
export const share = (part: number, whole: number): string => {
  if (whole === 0) return "–"
  const percent = (100 * part) / whole
  if (percent === 0) return "0 %"
  if (percent < 0.1) return "<0.1 %"
  return `${percent < 10 ? percent.toFixed(1) : Math.round(percent)} %`
}

/** A number of bytes. */
export const bytes = (value: number): string =>
  value >= 1024 ** 3 ? `${(value / 1024 ** 3).toFixed(1)} GiB` : `${Math.round(value / 1024 ** 2)} MiB`

/** A count and what is counted, such as `1 task` or `2 tasks`. */
export const counted = (value: number, one: string): string => `${count(value)} ${value === 1 ? one : `${one}s`}`
