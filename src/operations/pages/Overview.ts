/** `/ops`: the state of the service now, its requests in the last hour, and its dependencies. */
import { Effect, Result } from "effect"
import type { Health } from "../../api/HealthApi.ts"
import { mostCounted, type TaskCounts } from "../../deletions/OperatorTasks.ts"
import { type Content, h, link } from "../../http/Html.ts"
import * as Recent from "../../observability/Recent.ts"
import { version } from "../../process/Package.ts"
import * as Format from "../Format.ts"
import { HealthChecks } from "../HealthChecks.ts"
import { badge, clamped, plot, section, severityOf, stackedPlot, table, tile, unreadable } from "../Layout.ts"
import { OperatorStore } from "../OperatorStore.ts"
import * as Page from "../Page.ts"

/** The scale is logarithmic, from 0.1 ms to 10 s. */
const latency = (name: string, share: number) => ({
  name,
  share: (slot: Recent.Slot) => Math.min(1, (Math.log10(Recent.quantile(slot, share) ?? 0) + 1) / 5),
  text: (slot: Recent.Slot) => Format.latency(Recent.quantile(slot, share))
})

/** The charts of the last hour. */
const charts = (points: ReadonlyArray<Recent.Slot>, now: number): Content => {
  const { slots, step } = Recent
  const timeline = { points, first: now - (now % step) + step - slots * step, step, slots }
  return h("div", { class: "charts" })(
    stackedPlot("Requests in a minute", timeline, {
      teal: ["2xx, 3xx", ({ clientErrors, requests, serverErrors }) => requests - clientErrors - serverErrors],
      amber: ["4xx", ({ clientErrors }) => clientErrors],
      red: ["5xx", ({ serverErrors }) => serverErrors]
    }),
    plot("Latency, on a logarithmic scale", timeline, [10_000, 1000, 100, 10, 1, 0.1].map(Format.latency), {
      red: latency("p99", 0.99),
      amber: latency("p95", 0.95),
      teal: latency("p50", 0.5)
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

const dependencies = (checks: Health["checks"]) =>
  table({
    caption: "Dependencies of the service",
    rows: Object.entries(checks),
    columns: {
      Dependency: ([name]) => name,
      State: ([, { status }]) => (status === "warn" ? badge("problem", "problem") : badge("fine", "fine")),
      Reason: ([, { output }]) => clamped(output ?? "–")
    }
  })

const processFacts = (ready: boolean, roles: ReadonlyArray<string>, now: number): Content =>
  h("p")(
    ready ? badge("fine", "ready") : badge("problem", "not ready"),
    ` Version ${version}, roles ${roles.join(", ")}, ${Format.count(process.memoryUsage.rss() / 1024 ** 2)} MiB, `,
    `pid ${process.pid}, started `,
    Format.moment(performance.timeOrigin, now)
  )

export const overview = Page.page(
  "/ops",
  [],
  Effect.fnUntraced(function* () {
    const [{ lastHour }, health, { taskCounts }] = [yield* Recent.Recent, yield* HealthChecks, yield* OperatorStore]
    const reads = [lastHour, health.checks, health.isReady, Effect.result(taskCounts)] as const
    const [recent, checks, ready, counts] = yield* Effect.all(reads, { concurrency: "unbounded" })
    return (now) => [
      charts(recent, now),
      h("dl", { class: "tiles" })(
        requestTiles(recent, now),
        Result.isSuccess(counts) && taskTiles(counts.success, now)
      ),
      Result.isFailure(counts) && unreadable(`Deletions: ${counts.failure.message}`),
      section("dependencies", "Dependencies", dependencies(checks)),
      section("process", "Process", processFacts(ready, health.roles, now))
    ]
  })
)
