/** Bar charts of requests and latencies as SVG, each with its figures as a table. */
import { type Content, h, type Html, link } from "../http/Html.ts"
import { type Counts, lengths, quantile, type Snapshot } from "../observability/Recent.ts"
import * as Format from "./Format.ts"
import { table } from "./Layout.ts"
import type { Query } from "./Page.ts"

type WindowName = keyof typeof lengths

/** The window of a request: the hour by default. */
export const windowOf = (parameter: Query): WindowName => (parameter("window") === "day" ? "day" : "hour")

/** The counts of a slot. `start`: milliseconds since 1970. */
interface Point extends Counts {
  readonly start: number
}

interface Series {
  readonly name: string
  readonly color: string
  /** The height of its bar, from 0 to 1. */
  readonly share: (point: Point) => number
  readonly text: (point: Point) => string
}

/** Points with their places on the axis of time, from 0 to 1, and the width of their bars. */
interface Places {
  readonly points: ReadonlyArray<Point>
  readonly placeOf: (point: Point) => number
  readonly width: number
}

const [width, height] = [1000, 200]

const rounded = (value: number) => value.toFixed(1)

/** @param axis its labels, from the top
 * @param all later series are drawn over earlier ones */
const figure = (places: Places, title: string, axis: ReadonlyArray<string>, all: ReadonlyArray<Series>): Html => {
  const grid = axis.map((_, line) => `M0 ${rounded((line * height) / (axis.length - 1))}H${width}`)
  const bars = all.map(({ color, share }) => {
    const d = places.points
      .filter((point) => share(point) > 0)
      .map((point) => `M${rounded(width * places.placeOf(point))} ${height}V${rounded(height * (1 - share(point)))}`)
    return h("path", { class: color, d: d.join(""), "stroke-width": rounded(width * places.width) })()
  })
  return h("figure")(
    h("figcaption")(
      h("h2")(title),
      h("ul", { class: "legend" })(all.map(({ color, name }) => h("li", { class: color })(name)))
    ),
    h("div", { class: "plot" })(
      h("div", { class: "axis", "aria-hidden": "true" })(axis.map((text) => h("span")(text))),
      h("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": title })(
        h("path", { class: "grid", d: grid.join("") })(),
        bars
      )
    ),
    h("details")(
      h("summary")("As a table"),
      table<Point>({
        caption: `${title}, as a table`,
        rows: places.points.toReversed(),
        columns: {
          "From (UTC)": ({ start }) => Format.iso(start).slice(11, 16),
          ...Object.fromEntries(all.map(({ name, text }) => [name, { number: text }]))
        }
      })
    )
  )
}

const requests = (places: Places, title: string) => {
  const most = Math.max(1, ...places.points.map((point) => point.requests))
  const series = (name: string, color: string, shown: (point: Point) => number, below = shown): Series => ({
    name,
    color,
    share: (point) => below(point) / most,
    text: (point) => Format.count(shown(point))
  })
  return figure(
    places,
    title,
    [Format.count(most), "0"],
    [
      series("all", "teal", (point) => point.requests),
      series(
        "4xx",
        "amber",
        (point) => point.clientErrors,
        (point) => point.clientErrors + point.serverErrors
      ),
      series("5xx", "red", (point) => point.serverErrors)
    ]
  )
}

const rank = (name: string, color: string, share: number): Series => ({
  name,
  color,
  // A logarithmic scale from 0.1 ms to 10 s.
  share: ({ latency }) => Math.min(1, (Math.log10(quantile(latency, share) ?? 0) + 1) / 5),
  text: ({ latency }) => Format.latency(quantile(latency, share))
})

const latencies = (places: Places) => {
  const axis = [10_000, 1000, 100, 10, 1, 0.1].map(Format.latency)
  const series = [rank("p99", "red", 0.99), rank("p95", "amber", 0.95), rank("p50", "teal", 0.5)]
  return figure(places, "Latency, on a logarithmic scale", axis, series)
}

/** The charts of a window, and links to each window on a page. */
export const charts = (recent: Snapshot, window: WindowName, now: number, path: string): Content => {
  const { span, step } = lengths[window]
  const end = now - (now % step) + step
  const places: Places = {
    points: recent[window].slots
      .map(([start, counts]) => ({ start: Number(start), ...counts }))
      .toSorted((one, two) => one.start - two.start),
    placeOf: ({ start }) => 1 - (end - start - step / 2) / span,
    width: (0.8 * step) / span
  }
  const tab = (name: WindowName) =>
    h("a", { class: "button", href: link(path, { window: name }), "aria-current": name === window && "true" })(
      `Last ${name}`
    )
  return [
    h("p", { class: "actions" })(tab("hour"), tab("day")),
    h("div", { class: "charts" })(requests(places, `Requests in ${Format.span(step)}`), latencies(places))
  ]
}
