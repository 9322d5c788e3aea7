/** The health of the service: its endpoints, and the checks of its dependencies. */
import { Context, Duration, Effect, identity, Layer, Predicate, Record, String } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { OperationsApi } from "../api/OperationsApi.ts"
import {
  CredentialDatabase,
  type Database,
  isSameDatabase,
  RecordDatabase,
  TaskDatabase
} from "../database/Database.ts"
import { isMigrated } from "../database/Migrations.ts"
import * as Store from "../database/Store.ts"
import * as Series from "../observability/Series.ts"
import { version } from "../process/Package.ts"
import { PspReads } from "../psp/PspReads.ts"
import { ChangeClock } from "../records/ChangeClock.ts"
import * as Replica from "./Replica.ts"

/** Health responds within half a second. */
const timeout = Duration.millis(400)

const unavailable = (failure: Store.Failure) => String.capitalize(Store.describe(failure))

const ask = <A, E>(database: Database, statement: Effect.Effect<A, E>) =>
  database.run({ key: "health", within: timeout, unavailable }, statement)

const problemOf = (database: Database) =>
  Effect.match(ask(database, database`select 1`), { onSuccess: () => undefined, onFailure: identity })

/** The longest that a transaction may hold changes back, in seconds. */
const maximumLag = 60

const heldBack = (lag: number) =>
  lag > maximumLag
    ? `Held back for ${lag} seconds: a transaction that has written is open, or a replica is behind`
    : undefined

/** A remark on a dependency that is well. */
export interface Note {
  readonly note: string
}

const notServed: Note = { note: "Not served: the database is distributed over several servers" }

export class HealthChecks extends Context.Service<
  HealthChecks,
  {
    /** The problem of each dependency by its name, or a remark. */
    readonly checks: Effect.Effect<Readonly<Record<string, string | Note | undefined>>>
    /** True if the database is migrated and the service is not stopping. */
    readonly isReady: Effect.Effect<boolean>
    /** Ends readiness for good. */
    readonly stop: Effect.Effect<void>
  }
>()("practice-data/operations/HealthChecks") {
  /** Checks the databases, the horizon of the changes, and the circuit breaker of the PSP. */
  static readonly layer = Layer.effect(
    HealthChecks,
    Effect.gen(function* () {
      const records = yield* RecordDatabase
      const credentials = yield* CredentialDatabase
      const tasks = yield* TaskDatabase
      const psp = yield* PspReads
      const changes = yield* ChangeClock
      let isStopping = false
      // Stays true while the database is down.
      let wasMigrated = false
      const isReady = () => wasMigrated && !isStopping
      const { read } = yield* Series.current
      yield* read("practice_data_ready", () => (isReady() ? 1 : 0))
      yield* read("practice_data_stopping", () => (isStopping ? 1 : 0))
      // A primary that does not answer is found by another check.
      const replica = Replica.check(tasks, records, ask).pipe(
        Effect.timeout(timeout),
        Effect.orElseSucceed(() => undefined)
      )
      const checkRecords = isSameDatabase(records, tasks)
        ? problemOf(records)
        : Effect.map(
            Effect.all([problemOf(records), replica], { concurrency: 2 }),
            ([problem, isBehind]) => problem ?? isBehind
          )
      return HealthChecks.of({
        checks: Effect.all(
          {
            records: checkRecords,
            credentials: problemOf(credentials),
            tasks: problemOf(tasks),
            changes: Effect.map(changes.lastLag, (lag) =>
              records.distribution.isDistributed() === true ? notServed : heldBack(lag)
            ),
            processor: Effect.map(psp.isUp, (isUp) => (isUp ? undefined : "Cannot be reached"))
          },
          { concurrency: "unbounded" }
        ),
        isReady: Effect.gen(function* () {
          if (!wasMigrated && !isStopping) {
            const isDone = yield* Effect.orElseSucceed(ask(records, isMigrated(records)), () => false)
            if (isDone) wasMigrated = true
          }
          return isReady()
        }),
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

const checkOf = (problem: string | Note | undefined) => {
  if (problem === undefined) return { status: "pass" } as const
  return Predicate.isString(problem)
    ? ({ status: "warn", output: problem } as const)
    : ({ status: "pass", output: problem.note } as const)
}

/** The endpoints of health and readiness. */
export const handlers = HttpApiBuilder.group(
  OperationsApi,
  "health",
  Effect.fnUntraced(function* (endpoints) {
    const health = yield* HealthChecks
    return endpoints.handleAll({
      health: () =>
        Effect.map(health.checks, (found) => {
          const status = Object.values(found).some(Predicate.isString) ? ("warn" as const) : ("pass" as const)
          return { status, version, checks: Record.map(found, checkOf) }
        }),
      ready: () =>
        Effect.map(health.isReady, (ready) => HttpServerResponse.jsonUnsafe({ ready }, { status: ready ? 200 : 503 }))
    })
  })
)
