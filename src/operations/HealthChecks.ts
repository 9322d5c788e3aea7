/**
 * The health of the service: its endpoints, and the checks of its dependencies; and probes of the databases, which read
 * figures for the metrics: the backlog of tasks, the lag of a replica.
 */
import { Clock, Context, Duration, Effect, identity, Layer, Option, Record, String } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { errorHeader, errorName } from "../api/Errors.ts"
import { type Health, OperationsApi } from "../api/IntakeApi.ts"
import {
  CredentialDatabase,
  type Database,
  isSameDatabase,
  RecordDatabase,
  TaskDatabase
} from "../database/Database.ts"
import * as Store from "../database/Store.ts"
import * as Tasks from "../deletions/Tasks.ts"
import * as Series from "../observability/Series.ts"
import * as Loop from "../process/Loop.ts"
import { version } from "../process/Package.ts"
import * as Time from "../process/Time.ts"
import { PspReads } from "../psp/PspReads.ts"
import { ChangeClock } from "../records/ChangeClock.ts"
import type { Role } from "./Config.ts"
import * as DatabaseChecks from "./doctor/DatabaseChecks.ts"
import * as Readiness from "./Readiness.ts"

const request: Store.StatementRequest<string> = {
  key: "health",
  within: Duration.millis(400),
  unavailable: (failure) => String.capitalize(Store.describe(failure))
}

/** Health responds within half a second. What takes longer than a statement is left out. */
const longest = Duration.millis(450)

type State = Health["checks"][string]

const pass: State = { status: "pass" }

const stateOf = (problem: string | undefined): State =>
  problem === undefined ? pass : { status: "warn", output: problem }

/** An answer in time, of a server whose clock is about right; and its replication from a primary that answers. */
const stateOfDatabase = (sql: Database, primary?: Database) => {
  const answer = Effect.match(sql.run(request, DatabaseChecks.timed(sql)), {
    onFailure: (problem) => problem,
    onSuccess: (measured) => {
      const { message, status } = DatabaseChecks.clock(measured)
      return status === "fail" ? message.replace(/\.$/, "") : undefined
    }
  })
  const replication = primary && DatabaseChecks.replicaProblem(primary, sql, request)
  const problems = [answer, replication ?? Effect.undefined].map((check) =>
    Effect.orElseSucceed(Effect.timeout(check, longest), () => undefined)
  )
  return Effect.map(Effect.all(problems, { concurrency: "unbounded" }), ([first, second]) => stateOf(first ?? second))
}

const stateOfChanges = (seconds: number, isDistributed: boolean): State => {
  if (isDistributed) return { ...pass, output: "Not served: the database is distributed over several servers" }
  if (seconds <= DatabaseChecks.longestDelay) return pass
  return stateOf(`Delayed by ${seconds} seconds: a replica lags, or a writing transaction is open on its primary`)
}

const statesOfProcessor: Readonly<Record<Effect.Success<PspReads["Service"]["state"]>, State>> = {
  up: pass,
  down: stateOf("Cannot be reached"),
  none: { ...pass, output: "None" }
}

export class HealthChecks extends Context.Service<
  HealthChecks,
  {
    /** The state of each dependency by its name. */
    readonly checks: Effect.Effect<Health["checks"]>
    /** True if each database that the roles need is migrated and permits them, and the service is not stopping. */
    readonly isReady: Effect.Effect<boolean>
    /** Ends readiness for good. */
    readonly stop: Effect.Effect<void>
  }
>()("practice-data/operations/HealthChecks") {
  /**
   * Checks the databases of the roles and, where the process has them, the horizon of the changes and the circuit breaker of
   * the PSP.
   */
  static readonly layer = (roles: ReadonlyArray<Role>) =>
    Layer.effect(
      HealthChecks,
      Effect.gen(function* () {
        const [records, credentials, tasks] = [yield* RecordDatabase, yield* CredentialDatabase, yield* TaskDatabase]
        const psp = yield* Effect.serviceOption(PspReads)
        const changes = yield* Effect.serviceOption(ChangeClock)
        const readiness = yield* Readiness.make(roles, { ...request, unavailable: identity })
        let isStopping = false
        const isReady = () => readiness.isReady() && !isStopping
        const { read } = yield* Series.current
        yield* read("practice_data_ready", () => (isReady() ? 1 : 0))
        yield* read("practice_data_stopping", () => (isStopping ? 1 : 0))
        const checks = {
          ...(roles.includes("data-api") && {
            records: stateOfDatabase(records, isSameDatabase(records, tasks) ? undefined : tasks),
            credentials: stateOfDatabase(credentials)
          }),
          tasks: stateOfDatabase(tasks),
          ...(Option.isSome(changes) && {
            changes: Effect.map(changes.value.lastLag, (lag) =>
              stateOfChanges(lag, records.distribution.isDistributed() === true)
            )
          }),
          ...(Option.isSome(psp) && {
            processor: Effect.map(psp.value.state, (state) => statesOfProcessor[state])
          })
        }
        return HealthChecks.of({
          checks: Effect.all(checks, { concurrency: "unbounded" }),
          isReady: Effect.map(readiness.check, isReady),
          stop: Effect.sync(() => void (isStopping = true))
        })
      })
    )

  /** The fake has no dependencies, and is always ready. */
  static readonly layerMemory = Layer.succeed(
    HealthChecks,
    HealthChecks.of({ checks: Effect.succeed({}), isReady: Effect.succeed(true), stop: Effect.void })
  )
}

export const handlers = HttpApiBuilder.group(
  OperationsApi,
  "health",
  Effect.fnUntraced(function* (endpoints) {
    const health = yield* HealthChecks
    // Anyone can send any number of requests.
    const shared = yield* Time.cachedFor(health.checks, "1 second")
    return endpoints.handleAll({
      health: () =>
        Effect.map(shared, (checks) => {
          const isWell = Object.values(checks).every(({ status }) => status === "pass")
          return { status: isWell ? ("pass" as const) : ("warn" as const), version, checks }
        }),
      ready: () =>
        Effect.map(health.isReady, (ready) =>
          HttpServerResponse.jsonUnsafe(
            { ready },
            ready ? { status: 200 } : { status: 503, headers: { [errorHeader]: errorName("NotReady") } }
          )
        )
    })
  })
)

/** The longest time for which the figures of a busy database are kept, in milliseconds. */
const longestKept = 15_000

const probe: Store.StatementRequest<Store.Failure> = {
  key: "the metrics",
  within: Duration.seconds(2),
  unavailable: identity
}

/** Updates the gauges of the backlog each time that it runs. */
const tasksOf = (sql: Database, { gauge }: Series.Series, clock: Clock.Clock) => {
  const states = Record.map({ scheduled: 0, running: 0, dead: 0 }, (_, state) =>
    gauge("practice_data_tasks", { state })
  )
  const oldest = gauge("practice_data_task_oldest_due_age_seconds")
  const unsettled = gauge("practice_data_deletions_unsettled_seconds")
  const offset = gauge("practice_data_clock_offset_seconds")
  const readAt = gauge("practice_data_tasks_read_timestamp_seconds")
  const now = () => Time.monotonicOf(clock)
  let lastRead = 0
  readAt.set(0)

  const forget = Effect.sync(() => {
    for (const each of [...Object.values(states), oldest, unsettled, offset]) each.set(undefined)
  })
  return Effect.gen(function* () {
    const before = Time.wallOf(clock)
    const counts = yield* sql.run(probe, Tasks.counts(sql))
    const [read, after, then] = [now(), Time.wallOf(clock), Date.parse(counts.now)]
    const ageOf = (at: string | null) => () =>
      at === null ? 0 : Math.max(0, then - Date.parse(at) + now() - read) / 1000
    lastRead = read
    Record.map(states, (tasks, state) => tasks.set(Math.min(Tasks.mostCounted, counts[state])))
    oldest.set(ageOf(counts.oldest_due_at))
    unsettled.set(ageOf(counts.unsettled_since))
    offset.set(((before + after) / 2 - then) / 1000)
    readAt.set(after / 1000)
  }).pipe(Effect.catch(({ _tag }) => (_tag !== "Busy" || now() - lastRead > longestKept ? forget : Effect.void)))
}

/** Updates the lag of the replica that serves the records each time that it runs: infinite, once it is promoted. */
const replicaOf = (primary: Database, replica: Database, { gauge }: Series.Series) => {
  const lag = gauge("practice_data_replica_lag_seconds")
  return Effect.map(Effect.option(DatabaseChecks.replicaLag(primary, replica, probe)), (found) =>
    lag.set(Option.getOrUndefined(found))
  )
}

const together = <E>(all: ReadonlyArray<Effect.Effect<unknown, E>>) =>
  Effect.forEach(all, (one) => Effect.ignore(one), { concurrency: "unbounded", discard: true })

/** Probes the databases that a process of these roles uses, until the scope closes. */
export const probes = (roles: ReadonlyArray<Role>) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const has = (role: Role) => roles.includes(role)
      const health = yield* HealthChecks
      const series = yield* Series.current
      const [records, credentials, tasks] = [yield* RecordDatabase, yield* CredentialDatabase, yield* TaskDatabase]
      const used = [...new Set(has("data-api") ? [records, credentials, tasks] : [tasks])]
      const whenReady = [
        ...(has("intake") || has("worker") ? [tasksOf(tasks, series, yield* Clock.Clock)] : []),
        ...(has("data-api") && !isSameDatabase(records, tasks) ? [replicaOf(tasks, records, series)] : [])
      ]
      const round = Effect.gen(function* () {
        const before = used.map(({ successes }) => successes())
        if (yield* health.isReady) yield* together(whenReady)
        // Most have answered by now.
        const silent = used.filter(({ successes }, index) => successes() === before[index])
        yield* together(silent.map((sql) => sql.run(probe, sql`select 1`)))
      })
      // Opens connections for the first health check. Not through the store: its log begins with the address.
      yield* together(used.map((sql) => Effect.timeout(sql`select 1`, "1 second")))
      yield* Effect.forkScoped(
        Loop.forever("The probes of the databases", Effect.andThen(round, Effect.sleep("5 seconds")))
      )
    })
  )
