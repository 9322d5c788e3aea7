/**
 * `/ops`: the state of the service now, and its requests in the last hour or day; and `/ops/requests`: these by endpoint,
 * by organization, and by the reason of their refusal.
 */
import { Effect, Result } from "effect"
import { mostCounted, type TaskCounts } from "../../deletions/OperatorTasks.ts"
import { type Content, h, type Html, link } from "../../http/Html.ts"
import * as Recent from "../../observability/Recent.ts"
import { Figures, highest, type Watched } from "../Figures.ts"
import * as Format from "../Format.ts"
import { badge, clamped, id, section, severityOf, small, table, tile, unreadable } from "../Layout.ts"
import { OperatorStore } from "../OperatorStore.ts"
import * as Page from "../Page.ts"

/** The counts of a slot. `start`: milliseconds since 1970. `x`: the middle of its bar, in slots from the left. */
type Point = Recent.Counts & Readonly<Record<"start" | "x", number>>

interface Series {
  readonly name: string
  readonly color: string
  /** The height of its bar, from 0 to 1. */
  readonly share: (point: Point) => number
  readonly text: (point: Point) => string
}

/** A bar chart as SVG, in units of a slot and of the highest bar, with its figures as a table. Later series cover earlier ones. */
const figure = (
  title: string,
  points: ReadonlyArray<Point>,
  slots: number,
  axis: ReadonlyArray<string>,
  all: ReadonlyArray<Series>
): Html => {
  const grid = axis.map((_, line) => `M0 ${line / (axis.length - 1)}H${slots}`)
  const bars = all.map(({ color, share }) => {
    const shown = points.filter((point) => share(point) > 0)
    const d = shown.map((point) => `M${point.x.toFixed(2)} 1V${(1 - share(point)).toFixed(3)}`)
    return h("path", { class: color, d: d.join(""), "stroke-width": 0.8 })()
  })
  return h("figure")(
    h("figcaption")(
      h("h2")(title),
      h("ul", { class: "legend" })(all.map(({ color, name }) => h("li", { class: color })(name)))
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
          ...Object.fromEntries(all.map(({ name, text }) => [name, { number: text }]))
        }
      })
    )
  )
}

/** The color of a series of counts, its count, and another one below it in its bars. */
const counters = {
  all: ["teal", "requests"],
  "4xx": ["amber", "clientErrors", "serverErrors"],
  "5xx": ["red", "serverErrors"]
} as const

const ranked = (name: string, color: string, share: number): Series => ({
  name,
  color,
  // A logarithmic scale from 0.1 ms to 10 s.
  share: ({ latency }) => Math.min(1, (Math.log10(Recent.quantile(latency, share) ?? 0) + 1) / 5),
  text: ({ latency }) => Format.latency(Recent.quantile(latency, share))
})

type Window = keyof Recent.Snapshot

/** The window that a request names: the hour by default. */
const windowOf = (given: string | undefined): Window => (given === "day" ? "day" : "hour")

/** The charts of a window, and links to each window on a page. */
const charts = (recent: Recent.Snapshot, window: Window, now: number, path: string): Content => {
  const { span, step } = Recent.lengths[window]
  const slots = span / step
  const first = now - (now % step) + step - span
  const points = recent[window].slots
    .map(([slot, each]) => ({ ...each, start: Number(slot), x: (Number(slot) - first) / step + 0.5 }))
    .toSorted((one, two) => one.start - two.start)
  const most = Math.max(1, ...points.map(({ requests }) => requests))
  const ofRequests = Object.entries(counters).map(([name, [color, shown, ...below]]): Series => ({
    name,
    color,
    share: (point) => [shown, ...below].reduce((sum, counter) => sum + point[counter], 0) / most,
    text: (point) => Format.count(point[shown])
  }))
  const axis = [10_000, 1000, 100, 10, 1, 0.1].map(Format.latency)
  const ofLatency = [ranked("p99", "red", 0.99), ranked("p95", "amber", 0.95), ranked("p50", "teal", 0.5)]
  const tab = (name: Window) =>
    h("a", { class: "button", href: link(path, { window: name }), "aria-current": name === window && "true" })(
      `Last ${name}`
    )
  return [
    h("p", { class: "actions" })(tab("hour"), tab("day")),
    h("div", { class: "charts" })(
      figure(`Requests in ${Format.span(step)}`, points, slots, [Format.count(most), "0"], ofRequests),
      figure("Latency, on a logarithmic scale", points, slots, axis, ofLatency)
    )
  ]
}

const minute = 60_000

const requestTiles = ({ hour }: Recent.Snapshot, now: number) => {
  const lastMinutes = hour.slots.filter(([start]) => Number(start) > now - 5 * minute)
  const { latency, requests, serverErrors } = Recent.total(lastMinutes)
  const p95 = Recent.quantile(latency, 0.95)
  const refused = Recent.total(hour.refusals).requests
  const state = severityOf(serverErrors / requests || 0, 0, 0.05)
  return [
    tile("Requests", Format.count(requests), "last 5 minutes"),
    tile("Latency p95", Format.latency(p95), "last 5 minutes", severityOf(p95 ?? 0, 1000, Infinity)),
    tile("Server errors", Format.share(serverErrors, requests), "last 5 minutes", state),
    tile("Refused", h("a", { href: "/ops/requests#refused" })(Format.count(refused)), "last hour")
  ]
}

const linked = (state: string, count: number) =>
  h("a", { href: link("/ops/deletions", { state }) })(Format.count(count, mostCounted))

const taskTiles = ({ dead, oldest_due_at, running, scheduled }: TaskCounts, now: number) => {
  const late = oldest_due_at === null ? 0 : now - Date.parse(oldest_due_at)
  return [
    tile("Dead deletions", linked("dead", dead), "failed for good", severityOf(dead, 0, 0)),
    tile("Deletions overdue by", Format.span(Math.max(0, late)), "the oldest", severityOf(late, minute, 5 * minute)),
    tile("Deletions waiting", linked("scheduled", scheduled), `and ${Format.count(running, mostCounted)} running`)
  ]
}

const dependencies = ({ dependencies: rows }: Watched, now: number) =>
  table({
    caption: "Dependencies of the service",
    rows,
    columns: {
      Dependency: ({ name }) => name,
      State: ({ status }) => (status === "warn" ? badge("problem", "problem") : badge("fine", "fine")),
      Reason: ({ output }) => clamped(output ?? "–"),
      Since: ({ since }) => Format.moment(since, now)
    }
  })

const process = (watched: Watched, now: number): Content => {
  const { pid, ready, roles, startedAt, version } = watched
  const mebibytes = Format.count((highest(watched, "process_resident_memory_bytes") ?? 0) / 1024 ** 2)
  return h("p")(
    ready ? badge("fine", "ready") : badge("problem", "not ready"),
    ` Version ${version}, roles ${roles.join(", ")}, ${mebibytes} MiB, pid ${pid}, started `,
    Format.moment(startedAt, now)
  )
}

export const overview = Page.page(
  "/ops",
  ["window"],
  Effect.fnUntraced(function* ({ window }) {
    const [{ watched }, { taskCounts }] = [yield* Figures, yield* OperatorStore]
    const [seen, counts] = yield* Effect.all([watched, Effect.result(taskCounts)], { concurrency: 2 })
    return (now) => [
      h("dl", { class: "tiles" })(
        requestTiles(seen.recent, now),
        Result.isSuccess(counts) && taskTiles(counts.success, now)
      ),
      Result.isFailure(counts) && unreadable(`Deletions: ${counts.failure.message}`),
      section("dependencies", "Dependencies", dependencies(seen, now)),
      section("traffic", "Requests", charts(seen.recent, windowOf(window), now, "/ops")),
      section("process", "Process", process(seen, now))
    ]
  })
)

type Row = readonly [name: string, counts: Recent.Counts]

const countsBy = (key: string, first: string, counts: Recent.Rows) => {
  const errors = (of: (counts: Recent.Counts) => number) => ({
    number: ([, one]: Row) => [Format.count(of(one)), " ", small(Format.share(of(one), one.requests))]
  })
  const rank = (share: number) => ({
    number: ([, { latency }]: Row) => Format.latency(Recent.quantile(latency, share))
  })
  const content = table<Row>({
    caption: `Requests by ${first}`,
    rows: counts.toSorted(([, one], [, two]) => two.requests - one.requests),
    columns: {
      [first]: ([name]) => id(name),
      Requests: { number: ([, { requests }]) => Format.count(requests) },
      "4xx": errors(({ clientErrors }) => clientErrors),
      "5xx": errors(({ serverErrors }) => serverErrors),
      p50: rank(0.5),
      p95: rank(0.95),
      p99: rank(0.99)
    }
  })
  return section(key, `By ${first}`, content)
}

export const requests = Page.page(
  "/ops/requests",
  ["window"],
  Effect.fnUntraced(function* (parameters) {
    const { watched } = yield* Figures
    const { recent } = yield* watched
    const window = windowOf(parameters["window"])
    const { endpoints, organizations, refusals, unknown } = recent[window]
    return (now) => [
      charts(recent, window, now, "/ops/requests"),
      countsBy("endpoints", "endpoint", endpoints),
      countsBy("organizations", "organization", organizations),
      unknown.length > 0 && countsBy("unknown", "unknown organization", unknown),
      countsBy("refused", "reason of refusal", refusals),
      small(
        "Counted since the process started, the most active first.",
        " The most active organizations are listed by name, the rest as others."
      )
    ]
  })
)
