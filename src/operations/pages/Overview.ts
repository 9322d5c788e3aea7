/** `/ops`: the state of the service now, its requests in the last hour, and its dependencies. */
import { Effect, Result } from "effect"
import { mostCounted, type TaskCounts } from "../../deletions/OperatorTasks.ts"
import { type Content, h, link } from "../../http/Html.ts"
import * as Recent from "../../observability/Recent.ts"
import { Figures, type Snapshot } from "../Figures.ts"
import * as Format from "../Format.ts"
import { badge, clamped, section, severityOf, table, tile, unreadable } from "../Layout.ts"
import { OperatorStore } from "../OperatorStore.ts"
import * as Page from "../Page.ts"
import { plot } from "../Plot.ts"

/** The scale is logarithmic, from 0.1 ms to 10 s. */
const latency = (name: string, color: "teal" | "amber" | "red", share: number) => ({
  name,
  color,
  share: (slot: Recent.Slot) => Math.min(1, (Math.log10(Recent.quantile(slot, share) ?? 0) + 1) / 5),
  text: (slot: Recent.Slot) => Format.latency(Recent.quantile(slot, share))
})

/** The charts of the last hour. */
const charts = (points: ReadonlyArray<Recent.Slot>, now: number): Content => {
  const { slots, step } = Recent
  const time = { points, first: now - (now % step) + step - slots * step, step, slots }
  const most = Math.max(1, ...points.map(({ requests }) => requests))
  return h("div", { class: "charts" })(
    plot({
      ...time,
      title: "Requests in a minute",
      axis: [Format.count(most), "0"],
      series: [
        {
          name: "all",
          color: "teal",
          share: ({ requests }) => requests / most,
          text: ({ requests }) => Format.count(requests)
        },
        {
          name: "4xx",
          color: "amber",
          share: ({ clientErrors, serverErrors }) => (clientErrors + serverErrors) / most,
          text: ({ clientErrors }) => Format.count(clientErrors)
        },
        {
          name: "5xx",
          color: "red",
          share: ({ serverErrors }) => serverErrors / most,
          text: ({ serverErrors }) => Format.count(serverErrors)
        }
      ]
    }),
    plot({
      ...time,
      title: "Latency, on a logarithmic scale",
      axis: [10_000, 1000, 100, 10, 1, 0.1].map(Format.latency),
      series: [latency("p99", "red", 0.99), latency("p95", "amber", 0.95), latency("p50", "teal", 0.5)]
    })
  )
}

const minute = 60_000

const requestTiles = (recent: ReadonlyArray<Recent.Slot>, now: number) => {
  const last = Recent.total(recent.filter(({ start }) => start > now - 5 * minute))
  const p95 = Recent.quantile(last, 0.95)
  const state = severityOf(last.serverErrors / last.requests || 0, 0, 0.05)
  return [
    tile("Requests", Format.count(last.requests), "last 5 minutes"),
    tile("Latency p95", Format.latency(p95), "last 5 minutes", severityOf(p95 ?? 0, 1000, Infinity)),
    tile("Server errors", Format.share(last.serverErrors, last.requests), "last 5 minutes", state)
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

const dependencies = ({ checks }: Snapshot) =>
  table({
    caption: "Dependencies of the service",
    rows: Object.entries(checks),
    columns: {
      Dependency: ([name]) => name,
      State: ([, { status }]) => (status === "warn" ? badge("problem", "problem") : badge("fine", "fine")),
      Reason: ([, { output }]) => clamped(output ?? "–")
    }
  })

const process = ({ memory, pid, ready, roles, startedAt, version }: Snapshot, now: number): Content =>
  h("p")(
    ready ? badge("fine", "ready") : badge("problem", "not ready"),
    ` Version ${version}, roles ${roles.join(", ")}, ${Format.count(memory / 1024 ** 2)} MiB, pid ${pid}, started `,
    Format.moment(startedAt, now)
  )

export const overview = Page.page(
  "/ops",
  [],
  Effect.fnUntraced(function* () {
    const [{ latest }, { taskCounts }] = [yield* Figures, yield* OperatorStore]
    const [seen, counts] = yield* Effect.all([latest, Effect.result(taskCounts)], { concurrency: 2 })
    return (now) => [
      charts(seen.recent, now),
      h("dl", { class: "tiles" })(
        requestTiles(seen.recent, now),
        Result.isSuccess(counts) && taskTiles(counts.success, now)
      ),
      Result.isFailure(counts) && unreadable(`Deletions: ${counts.failure.message}`),
      section("dependencies", "Dependencies", dependencies(seen)),
      section("process", "Process", process(seen, now))
    ]
  })
)
