/** `/ops`: the state of the service now, and its requests in the last hour or day. */
import { Effect, Result } from "effect"
import { mostCounted } from "../../deletions/Tasks.ts"
import { type Content, h, link } from "../../http/Html.ts"
import * as Recent from "../../observability/Recent.ts"
import { charts, windowOf } from "../Chart.ts"
import { highest, type Seen, Watch } from "../Figures.ts"
import * as Format from "../Format.ts"
import { badge, clamped, none, section, small, type State, table, tile, unreadable } from "../Layout.ts"
import { OperatorStore, type TaskCounts } from "../OperatorStore.ts"
import { inTime, page } from "../Page.ts"

/** The state of a value that should be low. */
const stateOf = (value: number, warning: number, problem: number): State =>
  value > problem ? "problem" : value > warning ? "warning" : "fine"

const minute = 60_000

const requestTiles = ({ processes }: Seen, { hour }: Recent.Snapshot, now: number) => {
  const counts = hour.points
    .filter(({ start }) => start > now - 5 * minute)
    .reduce<Recent.Counts>(Recent.plus, Recent.none)
  const started = Math.min(now, ...processes.map(({ startedAt }) => startedAt))
  // The points are whole minutes, of which the last is not over.
  const covered = Math.min(4 * minute + (now % minute), Math.max(1000, now - started))
  const p95 = Recent.quantile(counts.latency, 0.95)
  const refused = Object.entries(hour.refused).toSorted(([, one], [, two]) => two - one)
  const all = refused.reduce((sum, [, count]) => sum + count, 0)
  const reasons = refused.slice(0, 3).map(([name, count]) => `${Format.count(count)} ${Format.reason(name)}`)
  return [
    tile("Requests a second", Format.rate((counts.requests * 1000) / covered), "last 5 minutes"),
    tile("Latency p95", Format.latency(p95), "last 5 minutes", stateOf(p95 ?? 0, 1000, Infinity)),
    tile(
      "Server errors",
      Format.share(counts.serverErrors, counts.requests),
      `${Format.count(counts.serverErrors)} in 5 minutes`,
      stateOf(counts.serverErrors / Math.max(1, counts.requests), 0, 0.05)
    ),
    tile("Refused", Format.count(all), all === 0 ? "last hour" : `last hour: ${reasons.join(", ")}`)
  ]
}

const linked = (state: string, count: number) =>
  h("a", { href: link("/ops/deletions", { state }) })(Format.count(count, mostCounted))

const taskTiles = ({ dead, oldest_due_at, running, scheduled }: TaskCounts, now: number) => {
  const late = oldest_due_at === null ? undefined : now - Date.parse(oldest_due_at)
  return [
    tile(
      "Dead deletions",
      linked("dead", dead),
      dead === 0 ? "none failed for good" : "failed for good: replay them",
      dead > 0 ? "problem" : "fine"
    ),
    late === undefined
      ? tile("Oldest due deletion", "none", "nothing waits")
      : late > 0
        ? tile("Oldest due deletion", Format.span(late), "overdue, or running", stateOf(late, minute, 5 * minute))
        : tile("Oldest due deletion", `in ${Format.span(late)}`, "until the next one is due"),
    tile("Deletions waiting", linked("scheduled", scheduled), `and ${Format.count(running, mostCounted)} running`)
  ]
}

const lagTile = (lag: number | undefined) =>
  lag !== undefined &&
  tile(
    "Changes held back",
    h("a", { href: "/ops/changes" })(Format.span(lag * 1000)),
    lag === 0 ? "not at all" : "by an open transaction or a replica",
    stateOf(lag, 10, 60)
  )

const dependencies = ({ dependencies: all }: Seen, now: number) =>
  table({
    caption: "Dependencies of the service",
    rows: Array.from(
      Map.groupBy(all, ({ name }) => name),
      ([name, each]) => {
        const failing = each.filter(({ problem }) => problem !== null)
        const since = Math.max(...(failing.length > 0 ? failing : each).map((one) => one.since))
        const [last] = each.flatMap((one) => one.last ?? []).toSorted((one, two) => two.at - one.at)
        return { name, failing, isAll: failing.length === each.length, since, last }
      }
    ),
    key: ({ name }) => name,
    empty: "No process has reported its dependencies.",
    columns: {
      Dependency: ({ name }) => Format.dependency(name),
      State: ({ failing, isAll }) => {
        if (failing.length === 0) return badge("fine", "fine")
        const numbers = failing.map(({ process }) => process).join(", ")
        return [badge("problem", "problem"), " ", !isAll && small(`in process ${numbers} only`)]
      },
      "Last problem": ({ failing, last }) =>
        last === undefined
          ? none("none seen")
          : [clamped(last.problem), failing.length === 0 && small(`seen last ${Format.span(now - last.at)} ago`)],
      Since: ({ since }) => Format.moment(since, now)
    }
  })

const processes = ({ processes: all, silent }: Seen, now: number): Content => [
  silent.map(({ pid, process, silent: why }) =>
    unreadable(`Process ${process}${pid === null ? "" : ` (pid ${pid})`}: ${why}`)
  ),
  table({
    caption: "Processes of this host",
    rows: all,
    key: ({ process }) => String(process),
    empty: "No process answers.",
    columns: {
      Process: ({ pid, process }) => [process, " ", small("pid ", pid)],
      State: ({ ready }) => (ready ? badge("fine", "ready") : badge("problem", "not ready")),
      Started: ({ startedAt }) => Format.moment(startedAt, now),
      Memory: { number: ({ memory }) => Format.bytes(memory) },
      "Event loop delay p99": { number: ({ eventLoopDelay }) => Format.latency(eventLoopDelay) },
      Version: ({ version }) => version,
      Roles: ({ roles }) => roles.join(", ")
    }
  })
]

export const route = Effect.gen(function* () {
  const { look } = yield* Watch
  const { taskCounts } = yield* OperatorStore
  return page(
    "/ops",
    (parameter) =>
      Effect.all(
        { seen: look, counts: inTime(taskCounts), window: Effect.succeed(windowOf(parameter)) },
        { concurrency: 2 }
      ),
    ({ counts, seen, window }, now) => {
      const recent = Recent.merge(seen.processes.map((one) => one.recent))
      return [
        h("dl", { class: "tiles" })(
          requestTiles(seen, recent, now),
          Result.isSuccess(counts) && taskTiles(counts.success, now),
          lagTile(highest(seen, "practice_data_changes_lag_seconds"))
        ),
        Result.isFailure(counts) && unreadable(`Deletions: ${counts.failure.message}`),
        section("dependencies", "Dependencies", dependencies(seen, now)),
        section("traffic", "Requests", charts(recent, window, now, "/ops")),
        section("processes", "Processes", processes(seen, now))
      ]
    }
  )
})
