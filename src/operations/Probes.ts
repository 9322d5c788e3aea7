/**
 * Asks the databases every few seconds for what the metrics cannot know otherwise: whether those are there that nobody
 * else asks, what tasks there are to do, and how far a replica is behind.
 */
import { Clock, Duration, Effect, Layer, Schedule } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Role } from "../app/Config.ts"
import {
  CredentialDatabase,
  type Database,
  isSameDatabase,
  RecordDatabase,
  TaskDatabase
} from "../database/Database.ts"
import type { Failure } from "../database/Store.ts"
import * as Tasks from "../deletions/Tasks.ts"
import { HealthChecks } from "./HealthChecks.ts"
import * as Replica from "./Replica.ts"
import * as Series from "../observability/Series.ts"

const interval = "5 seconds"

const within = Duration.seconds(2)

/** What is known of a database that is merely busy is shown for this long, in milliseconds. */
const longestKept = 15_000

const ask = <A>(database: Database, statement: Effect.Effect<A, SqlError>) =>
  database.run({ key: "the metrics", within, unavailable: (failure: Failure) => failure }, statement)

/** Shows the tasks that there are to do, each time that it runs. */
const tasksOf = (sql: Database, { gauge }: Series.Series, clock: Clock.Clock) => {
  const states = {
    scheduled: gauge("practice_data_tasks", { state: "scheduled" }),
    running: gauge("practice_data_tasks", { state: "running" }),
    dead: gauge("practice_data_tasks", { state: "dead" })
  }
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
    const counts = yield* ask(sql, Tasks.counts(sql))
    const dueAt = counts.oldest_due_at === null ? Infinity : Date.parse(counts.oldest_due_at)
    lastRead = now()
    states.scheduled.set(Math.min(Tasks.mostCounted, counts.scheduled))
    states.running.set(Math.min(Tasks.mostCounted, counts.running))
    states.dead.set(Math.min(Tasks.mostCounted, counts.dead))
    oldest.set(() => Math.max(0, now() - dueAt) / 1000)
    offset.set(((before + lastRead) / 2 - Date.parse(counts.now)) / 1000)
    readAt.set(lastRead / 1000)
  }).pipe(Effect.catch(({ _tag }) => (_tag !== "Busy" || now() - lastRead > longestKept ? forget : Effect.void)))
}

/** Shows how far the replica is behind that the records are read from, each time that it runs. */
const replicaOf = (primary: Database, replica: Database, { gauge }: Series.Series) => {
  const lag = gauge("practice_data_replica_lag_seconds")
  const askFor: Replica.Ask = (database, statement) => Effect.mapError(ask(database, statement), ({ reason }) => reason)
  return Replica.standing(primary, replica, askFor).pipe(
    Effect.map(
      Replica.Standing.$match({
        Unrelated: () => undefined,
        Parted: () => undefined,
        Following: ({ behind }) => behind
      })
    ),
    Effect.orElseSucceed(() => undefined),
    Effect.map((behind) => lag.set(behind))
  )
}

/**
 * Watches what a process of these roles uses, until the scope closes.
 *
 * @param roles what the process does
 */
export const layer = (roles: ReadonlyArray<Role>) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const has = (role: Role) => roles.includes(role)
      const health = yield* HealthChecks
      const series = yield* Series.current
      const [records, credentials, tasks] = [yield* RecordDatabase, yield* CredentialDatabase, yield* TaskDatabase]
      const used = has("data-api") ? [records, credentials, tasks] : has("worker") ? [records, tasks] : [tasks]
      const signsOfLife = Array.from(new Set(used), (database) => Effect.ignore(ask(database, database`select 1`)))
      const whenReady = [
        ...(has("intake") || has("worker") ? [tasksOf(tasks, series, yield* Clock.Clock)] : []),
        ...(has("data-api") && !isSameDatabase(records, tasks) ? [replicaOf(tasks, records, series)] : [])
      ]
      const round = Effect.gen(function* () {
        yield* Effect.all(signsOfLife, { concurrency: "unbounded", discard: true })
        if (yield* health.isReady) yield* Effect.all(whenReady, { concurrency: "unbounded", discard: true })
      })
      // The first health check finds open connections. Not through the store: its log begins with the address.
      const opened = Array.from(new Set(used), (database) =>
        Effect.ignore(Effect.timeout(database`select 1`, "1 second"))
      )
      yield* Effect.all(opened, { concurrency: "unbounded", discard: true })
      yield* round.pipe(Effect.repeat(Schedule.spaced(interval)), Effect.forkScoped)
    })
  )
