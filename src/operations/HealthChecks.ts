/** The health of the service: its endpoints, and the checks of its dependencies. */
import { Context, Duration, Effect, Layer, String } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { type Health, OperationsApi } from "../api/IntakeApi.ts"
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
import { clock, longestHeld, timed } from "./doctor/DatabaseChecks.ts"
import * as Replica from "./Replica.ts"

const request: Store.Request<string> = {
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
  const answer = Effect.match(sql.run(request, timed(sql)), {
    onFailure: (problem) => problem,
    onSuccess: (measured) => {
      const { message, status } = clock(measured)
      return status === "fail" ? message.replace(/\.$/, "") : undefined
    }
  })
  const replication =
    primary === undefined ? Effect.undefined : Effect.map(Replica.standing(primary, sql, request), Replica.problemOf)
  const problems = [answer, replication].map((check) =>
    Effect.orElseSucceed(Effect.timeout(check, longest), () => undefined)
  )
  return Effect.map(Effect.all(problems, { concurrency: "unbounded" }), ([first, second]) => stateOf(first ?? second))
}

const stateOfChanges = (seconds: number, isDistributed: boolean): State => {
  if (isDistributed) return { ...pass, output: "Not served: the database is distributed over several servers" }
  if (seconds <= longestHeld) return pass
  return stateOf(
    `Held back for ${seconds} seconds: a replica is behind, or a transaction that has written is open on its primary`
  )
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
      const tasks = yield* TaskDatabase
      const credentials = yield* CredentialDatabase
      const psp = yield* PspReads
      const changes = yield* ChangeClock
      let isStopping = false
      // Stays true while the database is down.
      let wasMigrated = false
      const isReady = () => wasMigrated && !isStopping
      const { read } = yield* Series.current
      yield* read("practice_data_ready", () => (isReady() ? 1 : 0))
      yield* read("practice_data_stopping", () => (isStopping ? 1 : 0))
      return HealthChecks.of({
        checks: Effect.all(
          {
            records: stateOfDatabase(records, isSameDatabase(records, tasks) ? undefined : tasks),
            credentials: stateOfDatabase(credentials),
            tasks: stateOfDatabase(tasks),
            changes: Effect.map(changes.lastLag, (lag) =>
              stateOfChanges(lag, records.distribution.isDistributed() === true)
            ),
            processor: Effect.map(psp.state, (state) => statesOfProcessor[state])
          },
          { concurrency: "unbounded" }
        ),
        isReady: Effect.gen(function* () {
          if (!wasMigrated && !isStopping) {
            const isDone = records.run(request, isMigrated(records))
            if (yield* Effect.orElseSucceed(isDone, () => false)) wasMigrated = true
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

export const handlers = HttpApiBuilder.group(
  OperationsApi,
  "health",
  Effect.fnUntraced(function* (endpoints) {
    const health = yield* HealthChecks
    return endpoints.handleAll({
      health: () =>
        Effect.map(health.checks, (checks) => {
          const isWell = Object.values(checks).every(({ status }) => status === "pass")
          return { status: isWell ? ("pass" as const) : ("warn" as const), version, checks }
        }),
      ready: () =>
        Effect.map(health.isReady, (ready) => HttpServerResponse.jsonUnsafe({ ready }, { status: ready ? 200 : 503 }))
    })
  })
)
