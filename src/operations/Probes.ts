/** Probes of the databases, which read the figures of the backlog of tasks. */
import { Duration, Effect, Layer, Option, Record, identity } from "effect"
import { CredentialDatabase, type Database, RecordDatabase, TaskDatabase } from "../database/Database.ts"
import type { Failure } from "../database/SqlFailure.ts"
import type { StatementRequest } from "../database/Store.ts"
import * as Tasks from "../deletions/OperatorTasks.ts"
import { Sweep } from "../deletions/Sweep.ts"
import * as Series from "../observability/Series.ts"
import * as Loop from "../observability/Loop.ts"
import * as Time from "../observability/Time.ts"
import { HealthChecks } from "./HealthChecks.ts"
import type { Role } from "./Settings.ts"

const probe: StatementRequest<Failure> = {
  key: "the metrics",
  within: Duration.seconds(2),
  unavailable: identity
}

/** Updates the gauges of the backlog each time that it runs. A database that does not answer in time has none. */
const backlogProbe = (sql: Database, { gauge }: Series.Series) => {
  const states = Record.map({ scheduled: 0, running: 0, dead: 0 }, (_, state) =>
    gauge("practice_data_tasks", { state })
  )
  const oldest = gauge("practice_data_task_oldest_due_age_seconds")
  const unsettled = gauge("practice_data_deletions_unsettled_seconds")
  const offset = gauge("practice_data_clock_offset_seconds")
  const readAt = gauge("practice_data_tasks_read_timestamp_seconds")
  readAt.set(0)

  const read = Effect.gen(function* () {
    const before = yield* Time.wall
    const counts = yield* sql.run(probe, Tasks.counts(sql))
    const [after, then] = [yield* Time.wall, Date.parse(counts.now)]
    const secondsSince = (at: string | null) => (at === null ? 0 : Math.max(0, then - Date.parse(at)) / 1000)
    Record.map(states, (tasks, state) => tasks.set(Math.min(Tasks.mostCounted, counts[state])))
    oldest.set(secondsSince(counts.oldest_due_at))
    unsettled.set(secondsSince(counts.unsettled_since))
    // The server read its clock at some time between the two.
    offset.set((Math.min(after, Math.max(before, then)) - then) / 1000)
    readAt.set(after / 1000)
  })
  const forget = Effect.sync(() => {
    for (const each of [...Object.values(states), oldest, unsettled, offset]) each.set(undefined)
  })
  return Effect.catch(read, () => forget)
}

const together = <E>(all: ReadonlyArray<Effect.Effect<unknown, E>>) =>
  Effect.forEach(all, (one) => Effect.ignore(one), { concurrency: "unbounded", discard: true })

/** Probes the databases that a process of these roles uses, until the scope closes. */
export const layer = (roles: ReadonlyArray<Role>) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const has = (role: Role) => roles.includes(role)
      const health = yield* HealthChecks
      const series = yield* Series.current
      const sweep = yield* Effect.serviceOption(Sweep)
      const [records, credentials, tasks] = [yield* RecordDatabase, yield* CredentialDatabase, yield* TaskDatabase]
      const used = [...new Set(has("data-api") ? [records, credentials, tasks] : [tasks])]
      const whenReady = has("intake") || has("worker") ? [backlogProbe(tasks, series)] : []
      const unswept = series.gauge("practice_data_deletions_unswept_seconds")
      const round = Effect.gen(function* () {
        if (yield* health.isReady) yield* together(whenReady)
        yield* together(used.map((sql) => sql.run(probe, sql`select 1`)))
        if (Option.isSome(sweep)) unswept.set(yield* sweep.value.unswept)
      })
      // Opens connections for the first health check. Not through the store: its log begins with the address.
      yield* together(used.map((sql) => Effect.timeout(sql`select 1`, "1 second")))
      yield* Effect.forkScoped(
        Loop.forever("The probes of the databases", Effect.andThen(round, Effect.sleep("5 seconds")))
      )
    })
  )
