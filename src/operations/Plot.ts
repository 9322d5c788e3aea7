/** Bar charts as SVG, with their figures as a table. */
import { h, type Html } from "../http/Html.ts"
import * as Format from "./Format.ts"
import { table } from "./Layout.ts"

interface Series<Point> {
  readonly name: string
  readonly color: "teal" | "amber" | "red"
  /** The height of its bar, from 0 to 1. */
  readonly share: (point: Point) => number
  readonly text: (point: Point) => string
}

interface Plot<Point> {
  readonly title: string
  /** In the order of their start. */
  readonly points: ReadonlyArray<Point>
  /** The start of the first slot, and the length of a slot, in milliseconds. */
  readonly first: number
  readonly step: number
  /** The number of slots. */
  readonly slots: number
  /** The texts of the vertical axis, from the top. */
  readonly axis: ReadonlyArray<string>
  /** Later series cover earlier ones. */
  readonly series: ReadonlyArray<Series<Point>>
}

/** A chart whose points have a `start` in milliseconds since 1970. */
export const plot = <Point extends { readonly start: number }>({
  axis,
  first,
  points,
  series,
  slots,
  step,
  title
}: Plot<Point>): Html => {
  const grid = axis.map((_, line) => `M0 ${line / (axis.length - 1)}H${slots}`)
  const bars = series.map(({ color, share }) => {
    const shown = points.filter((point) => share(point) > 0)
    const d = shown.map(
      (point) => `M${((point.start - first) / step + 0.5).toFixed(2)} 1V${(1 - share(point)).toFixed(3)}`
    )
    return h("path", { class: color, d: d.join(""), "stroke-width": 0.8 })()
  })
  return h("figure")(
    h("figcaption")(
      h("h2")(title),
      h("ul", { class: "legend" })(series.map(({ color, name }) => h("li", { class: color })(name)))
    ),
    h("div", { class: "plot" })(
      h("div", { class: "axis", "aria-hidden": "true" })(axis.map((text) => h("span")(text))),
      h("svg", { viewBox: `0 0 ${slots} 1`, preserveAspectRatio: "none", role: "img", "aria-label": title })(
        h("path", { class: "grid", d: grid.join("") })(),
        bars
      )
    ),
    h("details")(
      h("summary")("As a table"),
      table<Point>({
        caption: `${title}, as a table`,
        rows: points.toReversed(),
        columns: {
          "From (UTC)": ({ start }) => Format.iso(start).slice(11, 16),
          ...Object.fromEntries(series.map(({ name, text }) => [name, { number: text }]))
        }
      })
    )
  )
}
