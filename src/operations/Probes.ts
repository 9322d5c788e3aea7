/** Probes databases every few seconds, and reads figures for the metrics: the backlog of tasks, the lag of a replica. */
import { Clock, Duration, Effect, Layer, Option, Predicate, Record, Schedule } from "effect"
import {
  CredentialDatabase,
  type Database,
  isSameDatabase,
  RecordDatabase,
  TaskDatabase
} from "../database/Database.ts"
import type { Failure, Request } from "../database/Store.ts"
import * as Tasks from "../deletions/Tasks.ts"
import * as Series from "../observability/Series.ts"
import type { Role } from "./Config.ts"
import { HealthChecks } from "./HealthChecks.ts"
import * as Replica from "./Replica.ts"

/** The longest time for which the figures of a busy database are kept, in milliseconds. */
const longestKept = 15_000

const request: Request<Failure> = { key: "the metrics", within: Duration.seconds(2), unavailable: (failure) => failure }

/** Updates the gauges of the backlog each time that it runs. */
const tasksOf = (sql: Database, { gauge }: Series.Series, clock: Clock.Clock) => {
  const states = Record.map({ scheduled: 0, running: 0, dead: 0 }, (_, state) =>
    gauge("practice_data_tasks", { state })
  )
  const oldest = gauge("practice_data_task_oldest_due_age_seconds")
  const offset = gauge("practice_data_clock_offset_seconds")
  const readAt = gauge("practice_data_tasks_read_timestamp_seconds")
  const now = () => clock.currentTimeMillisUnsafe()
  let lastRead = 0
  readAt.set(0)

  const forget = Effect.sync(() => {
    for (const each of [...Object.values(states), oldest, offset]) each.set(undefined)
  })
  return Effect.gen(function* () {
    const before = now()
    const counts = yield* sql.run(request, Tasks.counts(sql))
    const dueAt = counts.oldest_due_at === null ? Infinity : Date.parse(counts.oldest_due_at)
    lastRead = now()
    Record.map(states, (tasks, state) => tasks.set(Math.min(Tasks.mostCounted, counts[state])))
    oldest.set(() => Math.max(0, now() - dueAt) / 1000)
    offset.set(((before + lastRead) / 2 - Date.parse(counts.now)) / 1000)
    readAt.set(lastRead / 1000)
  }).pipe(Effect.catch(({ _tag }) => (_tag !== "Busy" || now() - lastRead > longestKept ? forget : Effect.void)))
}

/** Updates the lag of the replica that serves the records each time that it runs. */
const replicaOf = (primary: Database, replica: Database, { gauge }: Series.Series) => {
  const lag = gauge("practice_data_replica_lag_seconds")
  return Effect.map(Effect.option(Replica.standing(primary, replica, request)), (standing) =>
    lag.set(Option.getOrUndefined(Option.filter(standing, Predicate.isNumber)))
  )
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
      const [records, credentials, tasks] = [yield* RecordDatabase, yield* CredentialDatabase, yield* TaskDatabase]
      const used = [
        ...new Set(has("data-api") ? [records, credentials, tasks] : has("worker") ? [records, tasks] : [tasks])
      ]
      const whenReady = [
        ...(has("intake") || has("worker") ? [tasksOf(tasks, series, yield* Clock.Clock)] : []),
        ...(has("data-api") && !isSameDatabase(records, tasks) ? [replicaOf(tasks, records, series)] : [])
      ]
      const round = Effect.gen(function* () {
        yield* together(used.map((sql) => sql.run(request, sql`select 1`)))
        if (yield* health.isReady) yield* together(whenReady)
      })
      // Opens connections for the first health check. Not through the store: its log begins with the address.
      yield* together(used.map((sql) => Effect.timeout(sql`select 1`, "1 second")))
      yield* round.pipe(Effect.repeat(Schedule.spaced("5 seconds")), Effect.forkScoped)
    })
  )
