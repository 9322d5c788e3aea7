/** `/ops`: the state of the service now, and its requests in the last hour or day. */
import { Effect, Result } from "effect"
import { mostCounted, type TaskCounts } from "../../deletions/Tasks.ts"
import { type Content, h, link } from "../../http/Html.ts"
import * as Recent from "../../observability/Recent.ts"
import { charts, windowOf } from "../Chart.ts"
import { changesLag, highest, type Seen, Watch } from "../Figures.ts"
import * as Format from "../Format.ts"
import { badge, clamped, lagTile, none, section, small, stateOf, table, tile, unreadable } from "../Layout.ts"
import { OperatorStore } from "../OperatorStore.ts"
import * as Page from "../Page.ts"

const minute = 60_000

const requestTiles = ({ processes }: Seen, { hour }: Recent.Snapshot, now: number) => {
  const lastMinutes = hour.slots.filter(([start]) => Number(start) > now - 5 * minute)
  const { latency, requests, serverErrors } = Recent.total(lastMinutes)
  const started = Math.min(now, ...processes.map(({ startedAt }) => startedAt))
  // The slots are whole minutes, of which the last is not over.
  const covered = Math.min(4 * minute + (now % minute), Math.max(1000, now - started))
  const p95 = Recent.quantile(latency, 0.95)
  const refused = Recent.total(hour.refusals).requests
  const errors = `${Format.count(serverErrors)} in 5 minutes`
  return [
    tile("Requests a second", Format.rate((requests * 1000) / covered), "last 5 minutes"),
    tile("Latency p95", Format.latency(p95), "last 5 minutes", stateOf(p95 ?? 0, 1000, Infinity)),
    tile("Server errors", Format.share(serverErrors, requests), errors, stateOf(serverErrors / requests || 0, 0, 0.05)),
    tile("Refused", h("a", { href: "/ops/requests#refused" })(Format.count(refused)), "last hour")
  ]
}

const linked = (state: string, count: number) =>
  h("a", { href: link("/ops/deletions", { state }) })(Format.count(count, mostCounted))

const taskTiles = ({ dead, oldest_due_at, running, scheduled }: TaskCounts, now: number) => {
  const late = oldest_due_at === null ? 0 : now - Date.parse(oldest_due_at)
  const oldest = oldest_due_at === null ? "none" : `${late < 0 ? "in " : ""}${Format.span(late)}`
  return [
    tile("Dead deletions", linked("dead", dead), "failed for good", stateOf(dead, 0, 0)),
    tile("Oldest due deletion", oldest, late > 0 && "overdue, or running", stateOf(late, minute, 5 * minute)),
    tile("Deletions waiting", linked("scheduled", scheduled), `and ${Format.count(running, mostCounted)} running`)
  ]
}

/** The dependencies of the first process, and those of others that have a problem. */
const dependencies = ({ dependencies: all }: Seen, now: number) =>
  table({
    caption: "Dependencies of the service",
    rows: all.filter(({ process, status }) => status === "warn" || process === all[0]?.process),
    key: ({ name, process }) => `${name} ${process}`,
    empty: "No process has reported its dependencies.",
    columns: {
      Dependency: ({ name, process }) => [Format.name(name), " ", small(`process ${process}`)],
      State: ({ output, status }) => {
        if (status === "warn") return badge("problem", "problem")
        return output === undefined ? badge("fine", "fine") : none(output)
      },
      "Last problem": ({ last, status }) =>
        last === null
          ? none("none seen")
          : [clamped(last.problem), status === "pass" && small(`seen last ${Format.span(now - last.at)} ago`)],
      Since: ({ since }) => Format.moment(since, now)
    }
  })

const processes = ({ processes: all, silent }: Seen, now: number): Content => [
  silent.map(({ pid, process, silent: why }) => unreadable(`Process ${process} (pid ${pid ?? "none"}): ${why}.`)),
  table({
    caption: "Processes of this host",
    rows: all,
    key: ({ process }) => String(process),
    empty: "No process answers.",
    columns: {
      Process: ({ pid, process }) => [process, " ", small("pid ", pid)],
      State: ({ ready }) => (ready ? badge("fine", "ready") : badge("problem", "not ready")),
      Started: ({ startedAt }) => Format.moment(startedAt, now),
      Memory: { number: (one) => Format.bytes(highest([one], "process_resident_memory_bytes") ?? 0) },
      "Event loop delay p99": {
        number: (one) =>
          Format.latency(1000 * (highest([one], 'practice_data_event_loop_delay_seconds{at="p99"}') ?? 0))
      },
      Version: ({ version }) => version,
      Roles: ({ roles }) => roles.join(", ")
    }
  })
]

export const page = Page.page(
  "/ops",
  Effect.fnUntraced(function* (parameter) {
    const [{ look }, { taskCounts }] = [yield* Watch, yield* OperatorStore]
    const [seen, counts] = yield* Effect.all([look, Page.inTime(taskCounts)], { concurrency: 2 })
    const recent = Recent.merge(seen.processes.map((one) => one.recent))
    return (now) => [
      h("dl", { class: "tiles" })(
        requestTiles(seen, recent, now),
        Result.isSuccess(counts) && taskTiles(counts.success, now),
        lagTile("Changes held back", changesLag(seen), "by an open transaction or a replica", "/ops/changes")
      ),
      Result.isFailure(counts) && unreadable(`Deletions: ${counts.failure.message}`),
      section("dependencies", "Dependencies", dependencies(seen, now)),
      section("traffic", "Requests", charts(recent, windowOf(parameter), now, "/ops")),
      section("processes", "Processes", processes(seen, now))
    ]
  })
)
