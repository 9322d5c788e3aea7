/** Charts of requests and latencies as SVG, each with its figures as a table. */
import { type Content, h, type Html, link } from "../http/Html.ts"
import { none, type Point, quantile, type Snapshot, type Window } from "../observability/Recent.ts"
import * as Format from "./Format.ts"
import { table, tabs } from "./Layout.ts"
import type { Query } from "./Page.ts"

const windows = {
  hour: { title: "Last hour", length: 3_600_000 },
  day: { title: "Last day", length: 86_400_000 }
} as const

export type WindowName = keyof typeof windows

/** The window of a request: the hour by default. */
export const windowOf = (parameter: Query): WindowName => (parameter("window") === "day" ? "day" : "hour")

/** A link to a page with a window. */
export const windowLink = (
  path: string,
  window: WindowName,
  parameters: Readonly<Record<string, string | undefined>> = {}
): string => link(path, { ...parameters, window: window === "hour" ? undefined : window })

const [width, height] = [1000, 200]

const rounded = (value: number) => Number(value.toFixed(1))

interface Series {
  /** Shown in the legend and the table. */
  readonly name: string
  /** The class of the path. */
  readonly kind: string
  /** The value on the axis, from 0 to 1; undefined where there is a gap. */
  readonly value: (slot: Point) => number | undefined
  readonly text: (slot: Point) => string
}

interface Chart {
  readonly id: string
  readonly title: string
  /** The newest figures in words. */
  readonly summary: string
  /** The labels of the axis, from the top. */
  readonly axis: ReadonlyArray<string>
  readonly series: ReadonlyArray<Series>
  readonly shape: "bars" | "lines"
  readonly slots: ReadonlyArray<Point>
}

const pathOf = ({ value }: Series, { shape, slots }: Chart) => {
  const step = width / slots.length
  const values = slots.map(value)
  const points = values.map((each, index) => {
    if (each === undefined) return ""
    const [x, y] = [rounded((index + 0.5) * step), rounded(height * (1 - each))]
    if (shape === "bars") return each > 0 ? `M${x} ${height}V${y}` : ""
    // A slot between gaps is a short stroke.
    return `${values[index - 1] === undefined ? `M${rounded(x - step * 0.3)} ${y}` : ""}L${x} ${y}`
  })
  return points.join("")
}

const timeOf = (slot: Point | undefined) => slot !== undefined && Format.timeOfDay(slot.start)

const figure = (chart: Chart): Html => {
  const { axis, id, series, shape, slots, summary, title } = chart
  const step = width / slots.length
  const busy = slots.filter(({ requests }) => requests > 0)
  const lines = axis.map((_, line) => `M0 ${rounded((line * height) / (axis.length - 1))}H${width}`)
  const hints = slots.map(
    (slot, index) =>
      slot.requests > 0 &&
      h(
        "rect",
        { class: "hint", x: rounded(index * step), width: rounded(step), height },
        h(
          "title",
          {},
          `${Format.timeOfDay(slot.start)}: ${series.map(({ name, text }) => `${name} ${text(slot)}`).join(", ")}`
        )
      )
  )
  return h(
    "figure",
    { "data-key": id },
    h(
      "figcaption",
      {},
      h("h3", {}, title),
      h(
        "ul",
        { class: "legend" },
        series.map(({ kind, name }) => h("li", { class: kind }, name))
      )
    ),
    h(
      "div",
      { class: "plot" },
      h(
        "div",
        { class: "axis", "aria-hidden": "true" },
        axis.map((label) => h("span", {}, label))
      ),
      h(
        "svg",
        {
          viewBox: `0 0 ${width} ${height}`,
          preserveAspectRatio: "none",
          role: "img",
          "aria-label": `${title}. ${summary}`
        },
        h("path", { class: "grid", d: lines.join("") }),
        series.map((each) =>
          h("path", {
            class: `${shape} ${each.kind}`,
            d: pathOf(each, chart),
            "stroke-width": shape === "bars" && rounded(step * 0.8)
          })
        ),
        hints
      )
    ),
    h(
      "p",
      { class: "times", "aria-hidden": "true" },
      [timeOf(slots[0]), timeOf(slots[Math.floor(slots.length / 2)]), "now"].map((text) => h("span", {}, text))
    ),
    h(
      "details",
      {},
      h("summary", {}, "As a table"),
      table<Point>({
        caption: `${title}, as a table`,
        rows: busy.toReversed(),
        key: ({ start }) => String(start),
        empty: "No requests.",
        columns: [
          { title: "From (UTC)", value: timeOf },
          ...series.map(({ name, text }) => ({ title: name, value: text, isNumber: true }))
        ]
      })
    )
  )
}

/** The next number of 1, 2, 5, 10, 20 ... above a value: the top of an axis. */
const topOf = (value: number) => {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return (([1, 2, 5, 10] as const).find((step) => value <= step * power * (1 + 1e-9)) ?? 10) * power
}

const requests = (slots: ReadonlyArray<Point>, unit: string): Chart => {
  const most = Math.max(0, ...slots.map((slot) => slot.requests))
  const top = topOf(most)
  const sum = (of: (slot: Point) => number) => Format.count(slots.reduce((all, slot) => all + of(slot), 0))
  const bar = (name: string, kind: string, value: (slot: Point) => number, drawn = value): Series => ({
    name,
    kind,
    value: (slot) => drawn(slot) / top,
    text: (slot) => Format.count(value(slot))
  })
  return {
    id: "requests",
    title: `Requests ${unit}`,
    summary: [
      `${sum((slot) => slot.requests)} in all`,
      `${sum((slot) => slot.serverErrors)} server errors`,
      `at most ${Format.count(most)} ${unit}.`
    ].join(", "),
    axis: [top, top / 2, 0].map((value) => (Number.isInteger(value) ? Format.count(value) : "")),
    // Each bar is drawn over the one before it.
    series: [
      bar("all", "all", (slot) => slot.requests),
      bar(
        "4xx",
        "client",
        (slot) => slot.clientErrors,
        (slot) => slot.clientErrors + slot.serverErrors
      ),
      bar("5xx", "server", (slot) => slot.serverErrors)
    ],
    shape: "bars",
    slots
  }
}

/** The bounds of a latency on a chart, in milliseconds. */
const [shortest, longest] = [0.1, 10_000] as const

const shares = { p50: 0.5, p95: 0.95, p99: 0.99 } as const

/** Latencies on a logarithmic axis. */
const latencies = (slots: ReadonlyArray<Point>): Chart => {
  const exponent = (slot: Point, share: number) => {
    const value = quantile(slot.latency, share)
    return value === undefined ? undefined : Math.log10(Math.min(longest, Math.max(shortest, value)))
  }
  const exponents = slots.flatMap((slot) => Object.values(shares).map((share) => exponent(slot, share) ?? 0))
  const bottom = Math.floor(Math.min(0, ...exponents))
  const top = Math.max(bottom + 2, Math.ceil(Math.max(0, ...exponents)))
  const series = Object.entries(shares).map(([name, share]): Series => ({
    name,
    kind: name,
    value: (slot) => {
      const value = exponent(slot, share)
      return value === undefined ? undefined : (value - bottom) / (top - bottom)
    },
    text: (slot) => Format.latency(quantile(slot.latency, share))
  }))
  const newest = slots.findLast((slot) => slot.requests > 0)
  return {
    id: "latencies",
    title: "Latency, on a logarithmic scale",
    summary:
      newest === undefined
        ? "No requests."
        : `Now ${series.map(({ name, text }) => `${name} ${text(newest)}`).join(", ")}.`,
    axis: Array.from({ length: top - bottom + 1 }, (_, index) => Format.latency(10 ** (top - index))),
    series,
    shape: "lines",
    slots
  }
}

/** All slots of a window until now, with those without requests. */
const slotsOf = ({ points, step }: Window, length: number, now: number): ReadonlyArray<Point> => {
  const byStart = new Map(points.map((point) => [point.start, point]))
  const first = now - (now % step) - length + step
  return Array.from({ length: length / step }, (_, index) => {
    const start = first + index * step
    return byStart.get(start) ?? { start, ...none }
  })
}

/** The charts of a window, and links to the other one. */
export const charts = (
  recent: Snapshot,
  window: WindowName,
  now: number,
  hrefOf: (window: WindowName) => string
): Content => {
  const slots = slotsOf(recent[window], windows[window].length, now)
  const each = (name: WindowName) => ({ text: windows[name].title, href: hrefOf(name), isCurrent: name === window })
  return [
    tabs([each("hour"), each("day")]),
    h(
      "div",
      { class: "charts" },
      figure(requests(slots, window === "hour" ? "a minute" : "in 5 minutes")),
      figure(latencies(slots))
    )
  ]
}
