/**
 * `/ops`: the state of the service now, and its requests in the last hour or day; and `/ops/requests`: these by endpoint,
 * by organization, and by the reason of their refusal.
 */
import { Effect, Result } from "effect"
import { mostCounted, type TaskCounts } from "../../deletions/Tasks.ts"
import { type Content, h, link } from "../../http/Html.ts"
import * as Recent from "../../observability/Recent.ts"
import { Figures, highest, type WatchedProcesses } from "../Figures.ts"
import * as Format from "../Format.ts"
import { badge, clamped, id, section, severityOf, small, table, tile, unreadable } from "../Layout.ts"
import { OperatorStore } from "../OperatorStore.ts"
import * as Page from "../Page.ts"
import * as LastChanges from "./LastChanges.ts"

type Row = readonly [name: string, counts: Recent.Counts]

/** Counts by name, with a bar for the requests of each. */
const countsTable = (caption: string, first: string, rows: ReadonlyArray<Row>) => {
  const most = Math.max(...rows.map(([, { requests }]) => requests))
  const errors = (of: (counts: Recent.Counts) => number) => ({
    number: ([, one]: Row) => [Format.count(of(one)), " ", small(Format.share(of(one), one.requests))]
  })
  const rank = (share: number) => ({
    number: ([, { latency }]: Row) => Format.latency(Recent.quantile(latency, share))
  })
  return table<Row>({
    caption,
    rows,
    key: ([name]) => name,
    columns: {
      [first]: ([name]) => id(name),
      Requests: {
        number: ([, { requests: value }]) => [
          Format.count(value),
          h("meter", { max: most, value, "aria-hidden": "true" })()
        ]
      },
      "4xx": errors(({ clientErrors }) => clientErrors),
      "5xx": errors(({ serverErrors }) => serverErrors),
      p50: rank(0.5),
      p95: rank(0.95),
      p99: rank(0.99)
    }
  })
}

type Window = keyof Recent.Snapshot

/** The window that a request names: the hour by default. */
const windowOf = (given: string | undefined): Window => (given === "day" ? "day" : "hour")

/** The counts of each slot of a window, the latest first, and links to each window on a page. */
const traffic = (recent: Recent.Snapshot, window: Window, path: string) => {
  const tab = (name: Window) =>
    h("a", { class: "button", href: link(path, { window: name }), "aria-current": name === window && "true" })(
      `Last ${name}`
    )
  const slots = recent[window].slots
    .toSorted(([one], [two]) => Number(two) - Number(one))
    .map(([start, counts]): Row => [Format.iso(Number(start)).slice(11, 16), counts])
  return section(
    "traffic",
    "Requests by time",
    h("p", { class: "actions" })(tab("hour"), tab("day")),
    countsTable(`Requests in ${Format.span(Recent.lengths[window].step)}`, "From (UTC)", slots)
  )
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

const changesTiles = ({ processes: all }: WatchedProcesses) => {
  const lagTile = (name: string, metric: string, about: Content) => {
    const seconds = highest(all, metric)
    return seconds === undefined
      ? tile(name, "–", "not measured here")
      : tile(name, Format.span(seconds * 1000), about, severityOf(seconds, 10, 60))
  }
  const remedy = h("a", { href: "/ops/guide#changes" })("by an open transaction or a replica")
  return [
    lagTile("Changes held back", "practice_data_changes_lag_seconds", remedy),
    lagTile("Replica lag", "practice_data_replica_lag_seconds", "of READ_DATABASE_URL"),
    tile("Readers waiting", Format.count(highest(all, "practice_data_changes_waiting") ?? 0), "for the next change")
  ]
}

/** The dependencies of the first process, and those of others that have a problem. */
const dependencies = ({ dependencies: all }: WatchedProcesses, now: number) =>
  table({
    caption: "Dependencies of the service",
    rows: all.filter(({ process, status }) => status === "warn" || process === all[0]?.process),
    columns: {
      Dependency: ({ name, process }) => [name, " ", small(`process ${process}`)],
      State: ({ status }) => (status === "warn" ? badge("problem", "problem") : badge("fine", "fine")),
      Reason: ({ output }) => clamped(output ?? "–"),
      Since: ({ since }) => Format.moment(since, now)
    }
  })

const processes = ({ processes: all, silent }: WatchedProcesses, now: number): Content => [
  silent.map(({ pid, process, silent: why }) => unreadable(`Process ${process} (pid ${pid ?? "none"}): ${why}.`)),
  table({
    caption: "Processes of this host",
    rows: all,
    columns: {
      Process: ({ pid, process }) => [process, " ", small("pid ", pid)],
      State: ({ ready }) => (ready ? badge("fine", "ready") : badge("problem", "not ready")),
      Started: ({ startedAt }) => Format.moment(startedAt, now),
      Memory: {
        number: (one) => `${Format.count((highest([one], "process_resident_memory_bytes") ?? 0) / 1024 ** 2)} MiB`
      },
      Version: ({ version }) => version,
      Roles: ({ roles }) => roles.join(", ")
    }
  })
]

export const overview = Page.page(
  "/ops",
  Effect.fnUntraced(function* ({ organization, window }) {
    const [{ watched }, { taskCounts }] = [yield* Figures, yield* OperatorStore]
    const [seen, counts, lastChanges] = yield* Effect.all(
      [watched, Effect.result(taskCounts), LastChanges.section(organization)],
      { concurrency: 3 }
    )
    const recent = Recent.merge(seen.processes.map((one) => one.recent))
    return (now) => [
      h("dl", { class: "tiles" })(
        requestTiles(recent, now),
        Result.isSuccess(counts) && taskTiles(counts.success, now),
        changesTiles(seen)
      ),
      Result.isFailure(counts) && unreadable(`Deletions: ${counts.failure.message}`),
      section("dependencies", "Dependencies", dependencies(seen, now)),
      lastChanges(now),
      traffic(recent, windowOf(window), "/ops"),
      section("processes", "Processes", processes(seen, now))
    ]
  })
)

const countsBy = (key: string, first: string, counts: Recent.Rows) => {
  const rows = counts.toSorted(([, one], [, two]) => two.requests - one.requests)
  return section(key, `By ${first}`, countsTable(`Requests by ${first}`, first, rows))
}

export const requests = Page.page(
  "/ops/requests",
  Effect.fnUntraced(function* (parameters) {
    const { watched } = yield* Figures
    const recent = Recent.merge((yield* watched).processes.map((one) => one.recent))
    const window = windowOf(parameters["window"])
    const { endpoints, organizations, refusals, unknown } = recent[window]
    return () => [
      traffic(recent, window, "/ops/requests"),
      countsBy("endpoints", "endpoint", endpoints),
      countsBy("organizations", "organization", organizations),
      unknown.length > 0 && countsBy("unknown", "unknown organization", unknown),
      countsBy("refused", "reason of refusal", refusals),
      small(
        "Counted on this host since its processes started, the most active first. Latencies leave out the time that clients ask /changes to wait.",
        " The most active organizations are listed by name, the rest as others."
      )
    ]
  })
)
