/** The building blocks of the operators' pages, and their stylesheet. */
import { baseStyle, type Content, h, type Html } from "../http/Html.ts"
import * as Format from "./Format.ts"

export const note = (message: string): Html => h("p", { class: "note" })(message)

export const id = (text: string, href?: string): Html =>
  h(href === undefined ? "span" : "a", { class: "id", href })(text)

/** A text of at most three lines. */
export const clamped = (text: string | null): Html => h("span", { class: "text" })(text ?? undefined)

/** Columns by their titles. The first one names its row. */
type Columns<Row> = Readonly<Record<string, (row: Row) => Content>>

/** A table that scrolls by itself on a narrow screen. Screen readers read its caption. */
export const table = <Row>(caption: string, rows: ReadonlyArray<Row>, columns: Columns<Row>): Html => {
  if (rows.length === 0) return h("p")("None.")
  const heads = Object.keys(columns).map((title) => h("th", { scope: "col" })(title))
  const lines = rows.map((row) => {
    const cells = Object.values(columns).map((cell, index) =>
      h(index === 0 ? "th" : "td", { scope: index === 0 && "row" })(cell(row))
    )
    return h("tr")(cells)
  })
  const content = h("table")(h("thead")(h("tr")(heads)), h("tbody")(lines))
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption })(content)
}

export type Severity = "fine" | "warning" | "problem"

/** The severity of a value that should be low. */
export const toSeverity = (value: number, warning: number, problem: number): Severity =>
  value > problem ? "problem" : value > warning ? "warning" : "fine"

export const tile = (name: string, value: Content, about: Content, severity: Severity = "fine"): Html =>
  h("div", { class: `tile ${severity}` })(h("dt")(name), h("dd")(value), h("dd", { class: "about" })(about))

export const badge = (kind: Severity | "quiet", text: string): Html => h("span", { class: `badge ${kind}` })(text)

/** Points with the start of their slot in milliseconds since 1970, and the slots until now. */
interface Timeline<Point> {
  readonly points: ReadonlyArray<Point>
  readonly now: number
  /** The length of a slot in milliseconds. */
  readonly step: number
  readonly slots: number
}

/** The ticks of an axis from the top, and the height of a value from 0 to 1, by the greatest value. */
type Scale = (most: number) => {
  readonly ticks: ReadonlyArray<number>
  readonly height: (value: number) => number
}

const linear: Scale = (most) => ({ ticks: [most, 0], height: (value) => value / most })

/** From 0.1 to 10,000. */
export const logarithmic: Scale = () => ({
  ticks: [10_000, 1000, 100, 10, 1, 0.1],
  height: (value) => Math.min(1, Math.max(0, (Math.log10(value) + 1) / 5))
})

/**
 * A bar chart as SVG, with its figures as a table.
 *
 * @param series by color; a later one covers a part of those before
 */
export const chart = <Point extends { readonly start: number }>(
  title: string,
  { now, points, slots, step }: Timeline<Point>,
  series: Readonly<
    Record<"teal" | "amber" | "red", readonly [name: string, value: (point: Point) => number | undefined]>
  >,
  format: (value: number | undefined) => string = (value = 0) => Format.count(value),
  scale = linear
): Html => {
  const first = now - (now % step) - (slots - 1) * step
  const all = Object.entries(series).map(([color, [name, value]]) => ({ color, name, value }))
  const { height, ticks } = scale(Math.max(1, ...points.flatMap((point) => all.map(({ value }) => value(point) ?? 0))))
  const grid = ticks.map((_, line) => `M0 ${line / (ticks.length - 1)}H${slots}`)
  const bars = all.map(({ color, value }) => {
    const d = points.map((point) => {
      const top = height(value(point) ?? 0)
      return top > 0 ? `M${((point.start - first) / step + 0.5).toFixed(2)} 1V${(1 - top).toFixed(3)}` : ""
    })
    return h("path", { class: color, d: d.join(""), "stroke-width": 0.8 })()
  })
  const columns: Columns<Point> = {
    "From (UTC)": ({ start }) => Format.iso(start).slice(11, 16),
    ...Object.fromEntries(all.map(({ name, value }) => [name, (point: Point) => format(value(point))]))
  }
  return h("figure")(
    h("figcaption")(
      h("h2")(title),
      h("ul", { class: "legend" })(all.map(({ color, name }) => h("li", { class: color })(name)))
    ),
    h("div", { class: "plot" })(
      h("div", { class: "axis", "aria-hidden": "true" })(ticks.map((tick) => h("span")(format(tick)))),
      h("svg", { viewBox: `0 0 ${slots} 1`, preserveAspectRatio: "none", role: "img", "aria-label": title })(
        h("path", { class: "grid", d: grid.join("") })(),
        bars
      )
    ),
    h("details")(h("summary")("As a table"), table(`${title}, as a table`, points.toReversed(), columns))
  )
}

/** Text has a contrast of at least 4.5 to its background, bars of at least 3. */
export const style = `${baseStyle}
main, footer { max-width: 78rem; margin: 0 auto; padding: .5rem 1.5rem 1.5rem }
figcaption h2 { font-size: .95rem; margin: 0 }
small, .about, summary, footer, .tile dt, thead th, .axis { color: var(--muted); font-size: 13px }
.id, .text { overflow-wrap: anywhere; unicode-bidi: isolate }
.id { font: var(--mono) }
time { white-space: nowrap }
ul, nav { display: flex; flex-wrap: wrap; gap: 0 .5rem; list-style: none; margin: 0; padding: 0 }
nav a { padding: .6rem .5rem; color: var(--muted); text-decoration: none }
nav a[aria-current] { color: var(--text); border-bottom: 2px solid var(--teal); font-weight: 600 }

.tiles { margin-top: 1.25rem; display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: .75rem }
.tile, figure, .scroll { background: var(--surface); border: 1px solid var(--line); border-radius: 6px }
.tile { border-left-width: 4px; padding: .65rem .85rem }
.tile dd { font-size: 1.5rem; line-height: 1.3; font-weight: 600; overflow-wrap: anywhere }
.tile dd.about { font-size: 13px; font-weight: 400 }
.tile.warning { border-left-color: var(--amber) }
.tile.problem { border-left-color: var(--red) }
.badge { padding: 0 .5rem; border-radius: 4px; font-size: 13px; font-weight: 600; white-space: nowrap }
.note { border-left: 4px solid; padding: .6rem .85rem; border-radius: 0 6px 6px 0 }
.badge { background: var(--soft); color: var(--muted) }
.badge.fine { background: light-dark(#dcfce7, #14532d); color: light-dark(#166534, #bbf7d0) }
.badge.warning { background: light-dark(#fef3c7, #713f12); color: light-dark(#8a3b0c, #fde68a) }
:is(.badge.problem, .note) { background: light-dark(#fee2e2, #7f1d1d); color: light-dark(#991b1b, #fecaca) }

.scroll { overflow-x: auto }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .45rem .75rem; font-weight: 400 }
tr + tr > *, tbody > :first-child > * { border-top: 1px solid var(--line) }
thead th { font-weight: 600; white-space: nowrap }
:is(td, th) small { display: block; white-space: nowrap }
td .text { display: inline-block; min-width: 9rem; max-width: 26rem; max-height: 4.5em; overflow: hidden }
:is(td, th) .id { display: inline-block; min-width: 7rem; max-width: 21rem }
dl, dd { margin: 0 }

.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 1.25rem }
figure { margin: 0; padding: .75rem .85rem; min-width: 0 }
figcaption { display: flex; flex-wrap: wrap; justify-content: space-between }
.teal { color: var(--teal) }
.amber { color: var(--amber) }
.red { color: var(--red) }
.legend li::before { content: "■ " }
.plot { position: relative; margin: .6rem 0 .8rem 4.6rem }
.plot svg { display: block; width: 100%; height: 9rem }
.axis { position: absolute; right: calc(100% + .4rem); top: -.6rem; bottom: -.6rem; white-space: nowrap }
.axis { text-align: right; display: flex; flex-direction: column; justify-content: space-between }
path { stroke: currentColor }
.grid { color: var(--line); vector-effect: non-scaling-stroke }
figure .scroll { max-height: 16rem; overflow: auto }

@media (max-width: 45rem) {
  main, footer { padding-left: 1rem; padding-right: 1rem }
  .tiles { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .5rem }
  :is(td, th) .id { max-width: 12rem }
}
`
