/** Charts as SVG, each with its figures as a table for who cannot see them. */
import { type Counts, none, type Point, quantile, type Window } from "../observability/Recent.ts"
import * as Format from "./Format.ts"
import { type Html, html } from "./Html.ts"

const [width, height] = [1000, 200]

/** Every slot of a window until now, those without requests too. */
export const slotsOf = (window: Window, span: number, now: number): ReadonlyArray<Point> => {
  const byStart = new Map(window.points.map((point) => [point.start, point]))
  const last = now - (now % window.step)
  return Array.from({ length: span / window.step }, (_, index) => {
    const start = last - span + (index + 1) * window.step
    return byStart.get(start) ?? { start, ...none }
  })
}

/** The next number of 1, 2, 5, 10, 20 ... above a value: the top of an axis. */
export const topOf = (value: number): number => {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return (([1, 2, 5, 10] as const).find((step) => value <= step * power * (1 + 1e-9)) ?? 10) * power
}

const position = (value: number) => Number(value.toFixed(1))

interface Framed {
  readonly id: string
  readonly title: string
  /** The labels of the axis, from the top. */
  readonly axis: ReadonlyArray<string>
  readonly legend: ReadonlyArray<readonly [kind: string, name: string]>
  readonly slots: ReadonlyArray<Point>
  readonly drawing: Html
  readonly columns: ReadonlyArray<readonly [title: string, value: (slot: Point) => string]>
  /** The newest figures in words. */
  readonly summary: string
}

const time = (slot: Point | undefined) => (slot === undefined ? "" : Format.timeOfDay(slot.start))

const framed = ({ axis, columns, drawing, id, legend, slots, summary, title }: Framed) => {
  const middle = slots[Math.floor(slots.length / 2)]
  const busy = slots.filter(({ requests }) => requests > 0).toReversed()
  return html`<figure class="chart" data-key="${id}">
    <figcaption>
      <h3>${title}</h3>
      <ul class="legend">
        ${legend.map(([kind, name]) => html`<li class="${kind}">${name}</li>`)}
      </ul>
    </figcaption>
    <div class="plot">
      <div class="axis" aria-hidden="true">${axis.map((label) => html`<span>${label}</span>`)}</div>
      <svg viewBox="0 0 ${width} ${height}" preserveAspectRatio="none" role="img" aria-label="${title}. ${summary}">
        <path
          class="grid"
          d="${axis.map((_, line) => `M0 ${position((line * height) / (axis.length - 1))}H${width}`).join("")}"
        />
        ${drawing}
      </svg>
    </div>
    <p class="times" aria-hidden="true"><span>${time(slots[0])}</span><span>${time(middle)}</span><span>now</span></p>
    <details>
      <summary>As a table</summary>
      ${
        busy.length === 0
          ? html`<p class="empty">There were no requests.</p>`
          : html`<div class="scroll" tabindex="0" role="region" aria-label="${title}, as a table">
              <table>
                <thead>
                  <tr>
                    <th scope="col">From (UTC)</th>
                    ${columns.map(([name]) => html`<th scope="col" class="number">${name}</th>`)}
                  </tr>
                </thead>
                <tbody>
                  ${busy.map(
                    (slot) =>
                      html`<tr>
                        <th scope="row">${Format.timeOfDay(slot.start)}</th>
                        ${columns.map(([, value]) => html`<td class="number">${value(slot)}</td>`)}
                      </tr>`
                  )}
                </tbody>
              </table>
            </div>`
      }
    </details>
  </figure>`
}

const errorsOf = ({ clientErrors, serverErrors }: Counts) => clientErrors + serverErrors

const unitOf = (window: Window) => (window.step === 60_000 ? "a minute" : "in 5 minutes")

/** Requests and errors of each slot, as bars. */
export const requests = (window: Window, slots: ReadonlyArray<Point>): Html => {
  const most = Math.max(0, ...slots.map((slot) => slot.requests))
  const top = topOf(most)
  const step = width / slots.length
  const bar = (kind: string, index: number, from: number, to: number) =>
    to > from &&
    html`<rect
      class="${kind}"
      x="${position(index * step)}"
      y="${position(height - (height * to) / top)}"
      width="${position(step * 0.8)}"
      height="${position((height * (to - from)) / top)}"
    />`
  const drawing = slots.map((slot, index) => {
    const { clientErrors, serverErrors } = slot
    return (
      slot.requests > 0 &&
      html`<g
        ><title>
          ${Format.timeOfDay(slot.start)}: ${Format.counted(slot.requests, "request")},
          ${Format.counted(clientErrors, "client error")}, ${Format.counted(serverErrors, "server error")}</title
        >${bar("server", index, 0, serverErrors)}${bar(
          "client",
          index,
          serverErrors,
          errorsOf(slot)
        )}${bar("fine", index, errorsOf(slot), slot.requests)}</g
      >`
    )
  })
  const all = slots.reduce((sum, slot) => sum + slot.requests, 0)
  const failed = slots.reduce((sum, slot) => sum + slot.serverErrors, 0)
  return framed({
    id: "requests",
    title: `Requests ${unitOf(window)}`,
    axis: [top, top / 2, 0].map((value) => (Number.isInteger(value) ? Format.count(value) : "")),
    legend: [
      ["fine", "fine"],
      ["client", "4xx"],
      ["server", "5xx"]
    ],
    slots,
    drawing: html`${drawing}`,
    columns: [
      ["Requests", (slot) => Format.count(slot.requests)],
      ["4xx", (slot) => Format.count(slot.clientErrors)],
      ["5xx", (slot) => Format.count(slot.serverErrors)]
    ],
    summary: `${Format.counted(all, "request")} in all, ${Format.counted(failed, "server error")}, at most ${Format.count(
      most
    )} ${unitOf(window)}.`
  })
}

const quantiles = [
  ["p50", 0.5],
  ["p95", 0.95],
  ["p99", 0.99]
] as const

/** What a latency is at least, and at most, as it is drawn: milliseconds. */
const [shortest, longest] = [0.1, 10_000] as const

/** The latencies of each slot, as lines that break where there was no request. The axis is logarithmic. */
export const latencies = (slots: ReadonlyArray<Point>): Html => {
  const shown = (value: number | undefined) =>
    value === undefined ? undefined : Math.log10(Math.min(longest, Math.max(shortest, value)))
  const values = slots.map((slot) => quantiles.map(([, share]) => shown(quantile(slot.latency, share))))
  const known = values.flat().filter((value) => value !== undefined)
  const bottom = Math.floor(Math.min(0, ...known))
  const top = Math.max(bottom + 2, Math.ceil(Math.max(0, ...known)))
  const step = width / slots.length
  const lineOf = (column: number) => {
    let isDrawing = false
    return values
      .map((row, index) => {
        const value = row[column]
        if (value === undefined) {
          isDrawing = false
          return ""
        }
        const [x, y] = [position((index + 0.4) * step), position((height * (top - value)) / (top - bottom))]
        // A slot alone is a short stroke.
        const text = isDrawing ? `L${x} ${y}` : `M${position(x - step * 0.3)} ${y}L${x} ${y}`
        isDrawing = true
        return text
      })
      .join("")
  }
  const newest = slots.findLast((slot) => slot.requests > 0)
  return framed({
    id: "latencies",
    title: "Latency, on a logarithmic scale",
    axis: Array.from({ length: top - bottom + 1 }, (_, index) => Format.latency(10 ** (top - index))),
    legend: quantiles.map(([name]) => [name, name]),
    slots,
    drawing: html`${quantiles.map(([name], column) => html`<path class="line ${name}" d="${lineOf(column)}" />`)}`,
    columns: quantiles.map(([name, share]) => [name, (slot) => Format.latency(quantile(slot.latency, share))]),
    summary:
      newest === undefined
        ? "No requests."
        : `Lately ${quantiles.map(([name, share]) => `${name} ${Format.latency(quantile(newest.latency, share))}`).join(", ")}.`
  })
}
