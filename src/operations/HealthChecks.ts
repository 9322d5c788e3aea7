/** The health of the service: the states of its dependencies, its readiness, and the endpoints of both. */
import { Context, Duration, Effect, identity, Layer, Option, String } from "effect"
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
import * as Series from "../observability/Series.ts"
import { version } from "../process/Package.ts"
import * as Time from "../process/Time.ts"
import { PspReads } from "../psp/PspReads.ts"
import { ChangeClock } from "../changes/ChangeClock.ts"
import type { Fact } from "./Check.ts"
import * as DatabaseChecks from "./doctor/DatabaseChecks.ts"
import * as Readiness from "./Readiness.ts"
import type { Role } from "./Settings.ts"

const request: Store.StatementRequest<string> = {
  key: "health",
  within: Duration.millis(400),
  unavailable: (failure) => String.capitalize(Store.describe(failure))
}

/** Health responds within half a second. What takes longer than a statement is left out. */
const longest = Duration.millis(450)

type State = Health["checks"][string]

const pass: State = { status: "pass" }

const warn = (output: string): State => ({ status: "warn", output })

/** The state by a fact that the doctor finds too. Only its failures are warnings here. */
const stateOf = ({ message, status }: Fact) => (status === "fail" ? warn(message.replace(/\.$/, "")) : pass)

interface Kind {
  /** The primary of a replica. */
  readonly primary?: Database | undefined
  readonly isWritten?: boolean
}

/** An answer in time, of a server whose clock is about right; and its replication from a primary that answers. */
const stateOfDatabase = (sql: Database, { isWritten = false, primary }: Kind = {}) => {
  const answer = Effect.match(sql.run(request, DatabaseChecks.timed(sql)), {
    onFailure: warn,
    onSuccess: (measured) =>
      isWritten && measured.isReadOnly ? warn("Accepts only reads") : stateOf(DatabaseChecks.clock(measured))
  })
  const replication = primary && Effect.map(DatabaseChecks.replication(primary, sql, request), stateOf)
  const states = [answer, ...(replication === undefined ? [] : [replication])].map((state) =>
    Effect.timeoutOrElse(state, { duration: longest, orElse: () => Effect.succeed(pass) })
  )
  return Effect.map(
    Effect.all(states, { concurrency: "unbounded" }),
    (all) => all.find(({ status }) => status === "warn") ?? pass
  )
}

const stateOfChanges = (seconds: number, isDistributed: boolean): State => {
  if (isDistributed) return { ...pass, output: "Not served: the database is distributed over several servers" }
  if (seconds <= DatabaseChecks.longestDelay) return pass
  return warn(`Delayed by ${seconds} seconds: a replica lags, or a writing transaction is open on its primary`)
}

const statesOfProcessor: Readonly<Record<Effect.Success<PspReads["Service"]["state"]>, State>> = {
  up: pass,
  down: warn("Cannot be reached"),
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
  /** Checks the databases of the roles and, where the process has them, the changes and the PSP. */
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
            records: stateOfDatabase(records, { primary: isSameDatabase(records, tasks) ? undefined : tasks }),
            credentials: stateOfDatabase(credentials)
          }),
          tasks: stateOfDatabase(tasks, { isWritten: true }),
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
