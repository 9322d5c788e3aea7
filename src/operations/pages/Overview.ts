/** `/ops`: the state of the service now, its requests in the last hour, and its dependencies. */
import { Effect, Result } from "effect"
import type { Health } from "../../api/HealthApi.ts"
import { TaskDatabase } from "../../database/Database.ts"
import * as Tasks from "../../deletions/OperatorTasks.ts"
import { type Content, h, link } from "../../http/Html.ts"
import * as Recent from "../../observability/Recent.ts"
import { version } from "../../process/Package.ts"
import * as Format from "../Format.ts"
import { HealthChecks } from "../HealthChecks.ts"
import { badge, chart, clamped, logarithmic, section, toSeverity, table, tile, unreadable } from "../Layout.ts"
import * as Page from "../Page.ts"

const latency = (name: string, share: number) => [name, (slot: Recent.Slot) => Recent.quantile(slot, share)] as const

/** The charts of the last hour. */
const charts = (points: ReadonlyArray<Recent.Slot>, now: number): Content => {
  const timeline = { points, now, step: Recent.step, slots: Recent.slots }
  return h("div", { class: "charts" })(
    chart("Requests in a minute", timeline, {
      teal: ["all", ({ requests }) => requests],
      amber: ["4xx and 5xx", ({ clientErrors, serverErrors }) => clientErrors + serverErrors],
      red: ["5xx", ({ serverErrors }) => serverErrors]
    }),
    chart(
      "Latency, on a logarithmic scale",
      timeline,
      { red: latency("p99", 0.99), amber: latency("p95", 0.95), teal: latency("p50", 0.5) },
      Format.latency,
      logarithmic
    )
  )
}

const minute = 60_000

const requestTiles = (recent: ReadonlyArray<Recent.Slot>, now: number) => {
  const last = Recent.total(recent.filter(({ start }) => start > now - 5 * minute))
  const p95 = Recent.quantile(last, 0.95)
  const state = toSeverity(last.serverErrors / last.requests || 0, 0, 0.05)
  return [
    tile("Requests", Format.count(last.requests), "last 5 minutes"),
    tile("Latency p95", Format.latency(p95), "last 5 minutes", toSeverity(p95 ?? 0, 1000, Infinity)),
    tile("Server errors", Format.share(last.serverErrors, last.requests), "last 5 minutes", state)
  ]
}

const linked = (state: string, count: number) =>
  h("a", { href: link("/ops/deletions", { state }) })(Format.count(count, Tasks.mostCounted))

const taskTiles = ({ dead, oldest_due_at, running, scheduled }: Tasks.TaskCounts, now: number) => {
  const late = oldest_due_at === null ? 0 : now - Date.parse(oldest_due_at)
  return [
    tile("Dead deletions", linked("dead", dead), "failed for good", toSeverity(dead, 0, 0)),
    tile("Deletions overdue by", Format.span(Math.max(0, late)), "the oldest", toSeverity(late, minute, 5 * minute)),
    tile("Deletions waiting", linked("scheduled", scheduled), `and ${Format.count(running, Tasks.mostCounted)} running`)
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
  {},
  Effect.fnUntraced(function* (_, now) {
    const [{ lastHour }, health] = [yield* Recent.Recent, yield* HealthChecks]
    const taskCounts = Page.readTasks(Effect.flatMap(TaskDatabase, Tasks.counts))
    const reads = [lastHour, health.checks, health.isReady, Effect.result(taskCounts)] as const
    const [recent, checks, ready, counts] = yield* Effect.all(reads, { concurrency: "unbounded" })
    const content = [
      charts(recent, now),
      h("dl", { class: "tiles" })(
        requestTiles(recent, now),
        Result.isSuccess(counts) && taskTiles(counts.success, now)
      ),
      Result.isFailure(counts) && unreadable(`Deletions: ${counts.failure.message}`),
      section("dependencies", "Dependencies", dependencies(checks)),
      section("process", "Process", processFacts(ready, health.roles, now))
    ]
    return { content }
  })
)
