/** Bar charts of requests and latencies as SVG, each with its figures as a table. */
import { type Content, h, type Html, link } from "../http/Html.ts"
import { lengths, none, type Point, quantile, type Snapshot } from "../observability/Recent.ts"
import * as Format from "./Format.ts"
import { table, tabs } from "./Layout.ts"
import type { Query } from "./Page.ts"

type WindowName = keyof typeof lengths

/** The window of a request: the hour by default. */
export const windowOf = (parameter: Query): WindowName => (parameter("window") === "day" ? "day" : "hour")

interface Series {
  readonly name: string
  readonly color: string
  /** The value on the axis, from 0 to 1. */
  readonly share: (slot: Point) => number
  readonly text: (slot: Point) => string
}

const [width, height] = [1000, 200]

const rounded = (value: number) => Number(value.toFixed(1))

const timeOf = ({ start }: Point) => Format.iso(start).slice(11, 16)

/** @param axis its labels, from the top
 * @param series later ones are drawn over earlier ones */
const figure = (
  slots: ReadonlyArray<Point>,
  title: string,
  shape: "bar" | "mark",
  axis: ReadonlyArray<string>,
  series: ReadonlyArray<Series>
): Html => {
  const step = width / slots.length
  const textOf = (slot: Point) =>
    `${timeOf(slot)}: ${series.map(({ name, text }) => `${name} ${text(slot)}`).join(", ")}`
  const grid = axis.map((_, line) => `M0 ${rounded((line * height) / (axis.length - 1))}H${width}`)
  const paths = series.map(({ color, share }) => {
    const parts = slots.map((slot, index) => {
      const y = rounded(height * (1 - share(slot)))
      if (y >= height) return ""
      return shape === "bar"
        ? `M${rounded((index + 0.5) * step)} ${height}V${y}`
        : `M${rounded(index * step)} ${y}h${rounded(step)}`
    })
    const stroke = shape === "bar" && rounded(step * 0.8)
    return h("path", { class: `${shape} ${color}`, d: parts.join(""), "stroke-width": stroke })()
  })
  const hints = slots.map(
    (slot, index) =>
      slot.requests > 0 &&
      h("rect", { x: rounded(index * step), width: rounded(step), height })(h("title")(textOf(slot)))
  )
  return h("figure")(
    h("figcaption")(
      h("h2")(title),
      h("ul", { class: "legend" })(series.map(({ color, name }) => h("li", { class: color })(name)))
    ),
    h("div", { class: "plot" })(
      h("div", { class: "axis", "aria-hidden": "true" })(axis.map((text) => h("span")(text))),
      h("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": title })(
        h("path", { class: "grid", d: grid.join("") })(),
        paths,
        hints
      )
    ),
    h("p", { class: "times", "aria-hidden": "true" })(h("span")(slots.slice(0, 1).map(timeOf)), h("span")("now")),
    h("details")(
      h("summary")("As a table"),
      table<Point>({
        caption: `${title}, as a table`,
        rows: slots.filter(({ requests }) => requests > 0).toReversed(),
        key: ({ start }) => String(start),
        empty: "No requests.",
        columns: {
          "From (UTC)": timeOf,
          ...Object.fromEntries(series.map(({ name, text }) => [name, { number: text }]))
        }
      })
    )
  )
}

const requests = (slots: ReadonlyArray<Point>, title: string) => {
  const most = Math.max(1, ...slots.map((slot) => slot.requests))
  const bar = (name: string, color: string, count: (slot: Point) => number, drawn = count): Series => ({
    name,
    color,
    share: (slot) => drawn(slot) / most,
    text: (slot) => Format.count(count(slot))
  })
  return figure(
    slots,
    title,
    "bar",
    [Format.count(most), "0"],
    [
      bar("all", "teal", (slot) => slot.requests),
      bar(
        "4xx",
        "amber",
        (slot) => slot.clientErrors,
        ({ clientErrors, serverErrors }) => clientErrors + serverErrors
      ),
      bar("5xx", "red", (slot) => slot.serverErrors)
    ]
  )
}

const rank = (name: string, color: string, share: number): Series => ({
  name,
  color,
  share: ({ latency }) => Math.min(1, (Math.log10(quantile(latency, share) ?? 0) + 1) / 5),
  text: ({ latency }) => Format.latency(quantile(latency, share))
})

const latencies = (slots: ReadonlyArray<Point>) => {
  const axis = [10_000, 1000, 100, 10, 1, 0.1].map(Format.latency)
  const series = [rank("p50", "teal", 0.5), rank("p95", "amber", 0.95), rank("p99", "red", 0.99)]
  return figure(slots, "Latency, on a logarithmic scale", "mark", axis, series)
}

/** All slots of a window until now, with those without requests. */
const slotsOf = (recent: Snapshot, window: WindowName, now: number): ReadonlyArray<Point> => {
  const { span, step } = lengths[window]
  const byStart = new Map(recent[window].slots)
  const first = now - (now % step) - span + step
  return Array.from({ length: span / step }, (_, index) => {
    const start = first + index * step
    return { start, ...(byStart.get(String(start)) ?? none) }
  })
}

/** The charts of a window, and links to each window on a page. */
export const charts = (
  recent: Snapshot,
  window: WindowName,
  now: number,
  path: string,
  parameters: Readonly<Record<string, string>> = {}
): Content => {
  const slots = slotsOf(recent, window, now)
  const tab = (name: WindowName) => ({
    text: `Last ${name}`,
    href: link(path, { ...parameters, window: name }),
    isCurrent: name === window
  })
  const title = window === "hour" ? "Requests a minute" : "Requests in 5 minutes"
  return [tabs([tab("hour"), tab("day")]), h("div", { class: "charts" })(requests(slots, title), latencies(slots))]
}
