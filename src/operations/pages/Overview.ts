/** `/ops`: whether all is well now, and how it was in the last hour or day. */
import { Result } from "effect"
import * as Recent from "../../observability/Recent.ts"
import * as Chart from "../Chart.ts"
import * as Format from "../Format.ts"
import { type Content, type Html, html, link } from "../Html.ts"
import { badge, section, table, tile, unreadable } from "../Layout.ts"
import { mostCounted } from "../../deletions/Tasks.ts"
import type { TaskCounts, Unreadable } from "../OperatorStore.ts"
import { type Dependency, highest, type Seen } from "../Watch.ts"
import { nameOf, reasonText } from "./Words.ts"
import { spanOf, windowTabs, type WindowName } from "./Window.ts"

export interface Shown {
  readonly now: number
  readonly seen: Seen
  readonly recent: Recent.Snapshot
  readonly counts: Result.Result<TaskCounts, Unreadable>
  readonly window: WindowName
}

const lately = 5 * 60_000

const latelyOf = ({ hour }: Recent.Snapshot, now: number) =>
  hour.points.filter(({ start }) => start > now - lately).reduce<Recent.Counts>(Recent.plus, Recent.none)

const perSecond = (counts: Recent.Counts, seen: Seen, now: number) => {
  const started = Math.min(now, ...seen.processes.map(({ startedAt }) => startedAt))
  // The slots are whole minutes: so much of the last five is over, and the service has run for so much of it.
  const covered = Math.min(4 * 60_000 + (now % 60_000), Math.max(1000, now - started))
  return counts.requests / (covered / 1000)
}

const requestTiles = ({ now, recent, seen }: Shown) => {
  const counts = latelyOf(recent, now)
  const p95 = Recent.quantile(counts.latency, 0.95)
  const refused = Object.entries(recent.hour.refused).toSorted(([, one], [, two]) => two - one)
  const refusedInAll = refused.reduce((sum, [, count]) => sum + count, 0)
  const failing = counts.serverErrors / Math.max(1, counts.requests)
  return [
    tile("Requests a second", Format.rate(perSecond(counts, seen, now)), "last 5 minutes"),
    tile("Latency p95", Format.latency(p95), "last 5 minutes", p95 !== undefined && p95 > 1000 ? "warning" : "fine"),
    tile(
      "Server errors",
      Format.share(counts.serverErrors, counts.requests),
      `${Format.count(counts.serverErrors)} in 5 minutes`,
      failing > 0.05 ? "problem" : failing > 0 ? "warning" : "fine"
    ),
    tile(
      "Refused",
      Format.count(refusedInAll),
      refusedInAll === 0
        ? "last hour"
        : `last hour: ${refused
            .slice(0, 3)
            .map(([reason, count]) => `${Format.count(count)} ${reasonText(reason)}`)
            .join(", ")}`
    )
  ]
}

const lateAfter = 60_000

const taskTiles = ({ counts, now }: Shown): ReadonlyArray<Html> => {
  if (Result.isFailure(counts)) return []
  const { dead, oldest_due_at, running, scheduled } = counts.success
  const due = oldest_due_at === null ? undefined : Date.parse(oldest_due_at)
  const late = due === undefined ? 0 : now - due
  return [
    tile(
      "Dead deletions",
      html`<a href="${link("/ops/deletions", { state: "dead" })}">${Format.capped(dead, mostCounted)}</a>`,
      dead === 0 ? "none failed for good" : "failed 8 times, until replayed",
      dead > 0 ? "problem" : "fine"
    ),
    tile(
      "Oldest due deletion",
      due === undefined ? "none" : late > 0 ? Format.span(late) : `in ${Format.span(late)}`,
      due === undefined ? "nothing waits" : late > 0 ? "overdue, or running" : "until the next one is due",
      late > 5 * lateAfter ? "problem" : late > lateAfter ? "warning" : "fine"
    ),
    tile(
      "Deletions waiting",
      html`<a href="${link("/ops/deletions", { state: "scheduled" })}">${Format.capped(scheduled, mostCounted)}</a>`,
      `and ${Format.capped(running, mostCounted)} running`
    )
  ]
}

const lagTile = ({ seen }: Shown): Content => {
  const lag = highest(seen, "practice_data_changes_lag_seconds")
  return (
    lag !== undefined &&
    tile(
      "Changes held back",
      html`<a href="/ops/changes">${Format.span(lag * 1000)}</a>`,
      lag === 0 ? "not at all" : "by an open transaction or a replica",
      lag > 60 ? "problem" : lag > 10 ? "warning" : "fine"
    )
  )
}

/** Dependencies as they are shown: those that are well in several processes are one. */
interface Told extends Omit<Dependency, "process"> {
  readonly of: string
}

const toldOf = ({ dependencies, processes, silent }: Seen): ReadonlyArray<Told> => {
  const isOne = processes.length + silent.length === 1
  const sick = dependencies.filter(({ problem }) => problem !== null)
  const well = Map.groupBy(
    dependencies.filter(({ problem }) => problem === null),
    ({ name }) => name
  )
  const names = new Set(sick.map(({ name }) => name))
  return [
    ...sick.map((one): Told => ({ ...one, of: isOne ? "" : `process ${one.process}` })),
    ...Array.from(well.values(), (all): ReadonlyArray<Told> => {
      const [latest] = all.toSorted((one, two) => two.since - one.since)
      const [last] = all.flatMap((one) => one.last ?? []).toSorted((one, two) => two.at - one.at)
      if (latest === undefined) return []
      const of = isOne ? "" : names.has(latest.name) ? "other processes" : "all processes"
      return [{ ...latest, of, last: last ?? null }]
    }).flat()
  ]
}

const dependencies = ({ now, seen }: Shown) =>
  section(
    "dependencies",
    "Dependencies",
    table<Told>({
      caption: "What the service depends on",
      rows: toldOf(seen),
      keyOf: ({ name, of }) => `dependency ${name} ${of}`,
      none: "No process has said what it depends on.",
      columns: [
        {
          title: "Dependency",
          isName: true,
          value: ({ name, of }) => html`${nameOf(name)} ${of !== "" && html`<small>${of}</small>`}`
        },
        {
          title: "State",
          value: ({ problem }) => (problem === null ? badge("fine", "fine") : badge("problem", "problem"))
        },
        {
          title: "Last problem",
          value: ({ last, problem }) =>
            last === null
              ? html`<span class="none">none seen</span>`
              : html`<span class="text">${last.problem}</span
                  >${problem === null && html`<small>seen last ${Format.span(now - last.at)} ago</small>`}`
        },
        { title: "Since", value: ({ since }) => Format.moment(since, now) }
      ]
    })
  )

const processes = ({ now, seen }: Shown) =>
  section("processes", "Processes", [
    seen.silent.map(({ pid, process, silent }) =>
      unreadable(`Process ${process}${pid === null ? "" : ` (pid ${pid})`}: ${silent}`)
    ),
    table({
      caption: "The processes of this host",
      rows: seen.processes,
      keyOf: ({ process }) => `process ${process}`,
      none: "No process answers.",
      columns: [
        { title: "Process", isName: true, value: ({ pid, process }) => html`${process} <small>pid ${pid}</small>` },
        {
          title: "State",
          value: ({ ready }) => (ready ? badge("fine", "ready") : badge("problem", "not ready"))
        },
        { title: "Started", value: ({ startedAt }) => Format.moment(startedAt, now) },
        { title: "Memory", isNumber: true, value: ({ memory }) => Format.bytes(memory) },
        {
          title: "Event loop delay p99",
          isNumber: true,
          value: ({ eventLoopDelay }) => Format.latency(eventLoopDelay)
        },
        { title: "Version", value: ({ version }) => version },
        { title: "Roles", value: ({ roles }) => roles.join(", ") }
      ]
    })
  ])

/** The page, below its heading. */
export const body = (shown: Shown): Html => {
  const { counts, now, recent, window } = shown
  const slots = Chart.slotsOf(recent[window], spanOf[window], now)
  return html`<dl class="tiles">${requestTiles(shown)}${taskTiles(shown)}${lagTile(shown)}</dl>
    ${Result.isFailure(counts) && unreadable(`Deletions: ${counts.failure.message}`)} ${dependencies(shown)}
    ${section("traffic", "Requests", [
      windowTabs("/ops", window),
      html`<div class="charts">${Chart.requests(recent[window], slots)}${Chart.latencies(slots)}</div>`
    ])}
    ${processes(shown)}`
}
