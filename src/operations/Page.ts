/** `/ops`: the last hour of requests, the dependencies, and the deletions. It only reads: commands change. */
import { Duration, Effect, Result, Schema, Struct } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { SqlError } from "effect/sql/SqlError"
import { State } from "../api/DeletionTasks.ts"
import type { Health } from "../api/HealthApi.ts"
import { TaskDatabase } from "../database/Database.ts"
import { describe } from "../database/SqlFailure.ts"
import * as Tasks from "../deletions/OperatorTasks.ts"
import * as TaskCounts from "./TaskCounts.ts"
import { type Content, document, h, link } from "../http/Html.ts"
import * as Recent from "./Recent.ts"
import * as Time from "../observability/Time.ts"
import { invocation, version } from "../process/Package.ts"
import * as Format from "./Format.ts"
import { HealthChecks } from "./HealthChecks.ts"
import { badge, chart, clamped, id, logarithmic, style, table, tile, toSeverity, note } from "./Layout.ts"

/** The deletions to list. */
const Chosen = Schema.Struct({
  state: Schema.optionalKey(State),
  organization: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^[^\0]{1,2000}$/)))
})
type Chosen = typeof Chosen.Type

const mostTasks = 25

const quantile = (name: string, share: number) => [name, (slot: Recent.Slot) => Recent.quantile(slot, share)] as const

const requestCharts = (points: ReadonlyArray<Recent.Slot>, now: number) => {
  const lastHour = { points, now, step: Recent.step, slots: Recent.slots }
  return [
    chart("Requests in a minute", lastHour, {
      teal: ["all", ({ requests }) => requests],
      amber: ["4xx and 5xx", ({ clientErrors, serverErrors }) => clientErrors + serverErrors],
      red: ["5xx", ({ serverErrors }) => serverErrors]
    }),
    chart(
      "Latency, on a logarithmic scale",
      lastHour,
      { red: quantile("p99", 0.99), amber: quantile("p95", 0.95), teal: quantile("p50", 0.5) },
      Format.latency,
      logarithmic
    )
  ]
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

const tasksLink = (chosen: Chosen) => link("/ops", chosen)

const taskTiles = ({ dead, oldest_due_at, running, scheduled }: TaskCounts.Counts, now: number) => {
  const late = oldest_due_at === null ? 0 : now - Date.parse(oldest_due_at)
  const linked = (state: State, count: number) =>
    h("a", { href: tasksLink({ state }) })(Format.count(count, TaskCounts.mostCounted))
  return [
    tile("Dead deletions", linked("dead", dead), "failed for good", toSeverity(dead, 0, 0)),
    tile("Deletions overdue by", Format.span(Math.max(0, late)), "the oldest", toSeverity(late, minute, 5 * minute)),
    tile(
      "Deletions waiting",
      linked("scheduled", scheduled),
      `and ${Format.count(running, TaskCounts.mostCounted)} running`
    )
  ]
}

const dependencies = (checks: Health["checks"]) =>
  table("Dependencies of the service", Object.entries(checks), {
    Dependency: ([name]) => name,
    State: ([, { status }]) => (status === "warn" ? badge("problem", "problem") : badge("fine", "fine")),
    Reason: ([, { output }]) => clamped(output ?? "–")
  })

/** Reads the deletions in time. Fails with a sentence for a person. */
const readTasks = Effect.fnUntraced(function* (chosen: Chosen) {
  const sql = yield* TaskDatabase
  const request = {
    key: "operators",
    within: Duration.millis(1500),
    unavailable: (failure: Parameters<typeof describe>[0]) => `The task store ${describe(failure)}.`
  }
  const filter = { state: undefined, organization: undefined, ...chosen }
  const run = <A>(statement: Effect.Effect<A, SqlError, TaskDatabase>) => sql.run(request, statement)
  const reads = {
    counts: run(TaskCounts.counts(sql)),
    ended: run(TaskCounts.endedByHour(sql)),
    tasks: run(Tasks.list(filter, mostTasks))
  }
  return yield* Effect.all(reads, { concurrency: "unbounded" })
})
type Read = Effect.Success<ReturnType<typeof readTasks>>

const deletionChart = ({ ended }: Read, now: number) =>
  chart(
    "Deletions that ended in an hour",
    { points: ended, now, step: 60 * minute, slots: 24 },
    {
      teal: ["all", ({ cancelled, completed, dead }) => completed + cancelled + dead],
      amber: ["cancelled and dead", ({ cancelled, dead }) => cancelled + dead],
      red: ["dead", ({ dead }) => dead]
    }
  )

const stateBadges = {
  scheduled: "quiet",
  running: "warning",
  completed: "fine",
  dead: "problem",
  cancelled: "quiet"
} as const

const deletions = ({ tasks }: Read, chosen: Chosen, now: number) => [
  h("nav", { "aria-label": "Deletions by state" })(
    [undefined, ...State.literals].map((state) => {
      const href = tasksLink({ ...Struct.omit(chosen, ["state"]), ...(state && { state }) })
      return h("a", { href, "aria-current": state === chosen.state && "page" })(state ?? "all")
    }),
    chosen.organization !== undefined &&
      h("a", { href: tasksLink(Struct.pick(chosen, ["state"])) })("All organizations")
  ),
  table("Deletions", tasks, {
    "Idempotency-Key": (task) => [id(task.idempotency_key), h("small")(task.id)],
    State: ({ attempts, state }) => [
      badge(stateBadges[state], state),
      attempts > 0 && h("small")(Format.counted(attempts, "attempt"))
    ],
    Organization: ({ organization_id: organization }) => id(organization, tasksLink({ ...chosen, organization })),
    "Scheduled for": ({ scheduled_for }) => Format.moment(scheduled_for, now),
    "Due, or ended": ({ due_at, finished_at }) => Format.moment(due_at ?? finished_at, now),
    "Outcome, or last error": (task) => clamped(Format.outcomeText(task))
  }),
  h("p")(`The latest ${mostTasks}. Commands list all, and change them:`),
  h("pre")(["list", "show ID", "replay ID", "cancel ID"].map((words) => invocation(`tasks ${words}`)).join("\n"))
]

const processFacts = (ready: boolean, roles: ReadonlyArray<string>, now: number): Content =>
  h("p")(
    ready ? badge("fine", "ready") : badge("problem", "not ready"),
    ` Version ${version}, roles ${roles.join(", ")}, ${Format.count(process.memoryUsage.rss() / 1024 ** 2)} MiB, `,
    `pid ${process.pid}, started `,
    Format.moment(performance.timeOrigin, now)
  )

const overview = Effect.fnUntraced(function* (chosen: Chosen, now: number) {
  const [{ lastHour }, health] = [yield* Recent.Recent, yield* HealthChecks]
  const reads = [lastHour, health.checks, health.isReady, Effect.result(readTasks(chosen))] as const
  const [recent, checks, isReady, read] = yield* Effect.all(reads, { concurrency: "unbounded" })
  const tasks = Result.getOrUndefined(read)
  return [
    h("div", { class: "charts" })(requestCharts(recent, now), tasks && deletionChart(tasks, now)),
    h("dl", { class: "tiles" })(requestTiles(recent, now), tasks && taskTiles(tasks.counts, now)),
    h("h2")("Dependencies"),
    processFacts(isReady, health.roles, now),
    dependencies(checks),
    h("h2")("Deletions"),
    Result.isFailure(read) ? note(read.failure) : deletions(read.success, chosen, now)
  ]
})

const respond = (now: number, status: number, content: Content) => {
  const html = document(
    "Practice Data operations",
    style,
    h("main")(h("h1")("Practice Data operations"), content),
    h("footer")(
      h("p")(`Version ${version}. As of `, h("time", { datetime: Format.iso(now) })(Format.utc(now)), ", in UTC.")
    )
  )
  return HttpServerResponse.setStatus(HttpServerResponse.html(html), status)
}

/** The route of the page. It responds within two seconds. */
export const route = HttpRouter.route(
  "GET",
  "/ops",
  Effect.gen(function* () {
    const now = yield* Time.wall
    return yield* HttpServerRequest.schemaSearchParams(Chosen, { onExcessProperty: "error" }).pipe(
      Effect.flatMap((chosen) => overview(chosen, now)),
      Effect.map((content) => HttpServerResponse.setHeader(respond(now, 200, content), "refresh", "15")),
      Effect.catchTag("SchemaError", ({ message }) => Effect.succeed(respond(now, 422, note(message)))),
      Effect.timeoutOrElse({
        duration: "1700 millis",
        orElse: () => Effect.succeed(respond(now, 503, note("No answer in time.")))
      })
    )
  })
)
