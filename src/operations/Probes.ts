/** The figures of the process, and probes of its databases, which read those of the backlog of tasks. */
import { getHeapStatistics } from "node:v8"
import { Duration, Effect, Layer, Option, Record, Struct, identity } from "effect"
import { type Database, TaskDatabase } from "../database/Database.ts"
import type { Failure } from "../database/SqlFailure.ts"
import type { StatementRequest } from "../database/Store.ts"
import * as TaskCounts from "./TaskCounts.ts"
import { Sweep } from "../deletions/Sweep.ts"
import * as Metrics from "../observability/Metrics.ts"
import * as Loop from "../observability/Loop.ts"
import * as Time from "../observability/Time.ts"
import { ownMemory, version } from "../process/Package.ts"
import { HealthChecks } from "./HealthChecks.ts"

const probe: StatementRequest<Failure> = {
  key: "the metrics",
  within: Duration.seconds(2),
  unavailable: identity
}

/** Updates the gauges of the backlog each time that it runs. A database that does not answer in time has none. */
const backlogProbe = (sql: Database, { gauge }: Metrics.Series) => {
  const gauges = {
    scheduled: gauge("practice_data_tasks", { state: "scheduled" }),
    running: gauge("practice_data_tasks", { state: "running" }),
    dead: gauge("practice_data_tasks", { state: "dead" }),
    oldest: gauge("practice_data_task_oldest_due_age_seconds"),
    unsettled: gauge("practice_data_deletions_unsettled_seconds"),
    clockOffset: gauge("practice_data_clock_offset_seconds")
  }
  const readAt = gauge("practice_data_tasks_read_timestamp_seconds")
  readAt.set(0)
  const show = (values: Partial<Record<keyof typeof gauges, number>>) =>
    Struct.keys(gauges).forEach((name) => gauges[name].set(values[name]))

  const read = Effect.gen(function* () {
    const before = yield* Time.wall
    const { dead, now, oldest_due_at, running, scheduled, unsettled_since } = yield* sql.run(
      probe,
      TaskCounts.counts(sql)
    )
    const [after, then] = [yield* Time.wall, Date.parse(now)]
    const secondsSince = (at: string | null) => (at === null ? 0 : Math.max(0, then - Date.parse(at)) / 1000)
    readAt.set(after / 1000)
    return {
      ...Record.map({ scheduled, running, dead }, (tasks) => Math.min(TaskCounts.mostCounted, tasks)),
      oldest: secondsSince(oldest_due_at),
      unsettled: secondsSince(unsettled_since),
      // The server read its clock at some time between the two.
      clockOffset: (Math.min(after, Math.max(before, then)) - then) / 1000
    }
  })
  return Effect.match(read, { onFailure: () => show({}), onSuccess: show })
}

/** The memory and the CPU time of the process, and its build. */
const measureProcess = Effect.fnUntraced(function* ({ gauge, read }: Metrics.Series, roles: ReadonlyArray<string>) {
  yield* read("process_resident_memory_bytes", () => process.memoryUsage.rss())
  yield* read("process_cpu_seconds_total", () => {
    const { system, user } = process.cpuUsage()
    return (system + user) / 1e6
  })
  yield* read("nodejs_heap_size_used_bytes", () => getHeapStatistics().used_heap_size)
  yield* read("nodejs_heap_size_limit_bytes", () => getHeapStatistics().heap_size_limit)
  gauge("process_memory_limit_bytes").set(ownMemory())
  gauge("practice_data_build_info", { version, node: process.versions.node, roles: roles.join(",") }).set(1)
})

/** Measures the process and probes its databases, until the scope closes. */
export const layer = Layer.effectDiscard(
  Effect.gen(function* () {
    const health = yield* HealthChecks
    const series = yield* Metrics.series
    yield* measureProcess(series, health.roles)
    const sweep = yield* Effect.serviceOption(Sweep)
    const hasTasks = health.roles.some((role) => role !== "data-api")
    const readBacklog = hasTasks ? backlogProbe(yield* TaskDatabase, series) : Effect.void
    const unswept = series.gauge("practice_data_deletions_unswept_seconds")
    const round = Effect.gen(function* () {
      // Reaches every database of the roles.
      yield* health.checks
      if (yield* health.isReady) yield* readBacklog
      if (Option.isSome(sweep)) unswept.set(yield* sweep.value.unswept)
    })
    const rounds = Loop.forever("The probes of the databases", Effect.andThen(round, Effect.sleep("5 seconds")))
    // The log begins with the address.
    yield* Effect.forkScoped(Effect.delay(rounds, "1 second"))
  })
)
