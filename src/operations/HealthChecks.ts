/** The health of the service: the states of its dependencies, its readiness, and the endpoints of both. */
import { Context, Duration, Effect, identity, Layer, MutableRef, Option, Schema, String } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { errorHeader, errorName } from "../api/Errors.ts"
import { type Health, OperationsApi } from "../api/HealthApi.ts"
import { decodeRows } from "../database/Columns.ts"
import { CredentialDatabase, type Database, RecordDatabase, TaskDatabase } from "../database/Database.ts"
import { missing } from "../database/Migrations.ts"
import { describe } from "../database/SqlFailure.ts"
import type { StatementRequest } from "../database/Store.ts"
import * as Metrics from "../observability/Metrics.ts"
import { version } from "../process/Package.ts"
import * as Time from "../observability/Time.ts"
import { Sweep } from "../deletions/Sweep.ts"
import { PspReads } from "../psp/PspReads.ts"
import { ChangeClock, type FeedState } from "../changes/ChangeClock.ts"
import { lacking, type Need, neededBy } from "./Privileges.ts"
import type { Role } from "./Settings.ts"

/** Health responds within half a second. */
const request: StatementRequest<string> = {
  key: "health",
  within: Duration.millis(400),
  unavailable: (failure) => String.capitalize(describe(failure))
}

const Answer = Schema.Struct({ now: Schema.Finite, isReadOnly: Schema.Boolean })

interface Measurement {
  /** The milliseconds that a statement takes. */
  readonly took: number
  /** The milliseconds that the clock of the server is ahead of this machine's. */
  readonly ahead: number
  readonly isReadOnly: boolean
}

/** Measures a database server: its distance, its clock, and if it accepts writes. */
export const measure = Effect.fnUntraced(function* (sql: Database) {
  const asking = decodeRows(Answer)(sql`
    select (extract(epoch from clock_timestamp()) * 1000)::float8 as now,
      current_setting('transaction_read_only')::boolean as "isReadOnly"`)
  const [duration, [answer]] = yield* Effect.timed(asking)
  const took = Math.round(Duration.toMillis(duration))
  const ahead = (answer?.now ?? NaN) - ((yield* Time.wall) - took / 2)
  return { took, ahead, isReadOnly: answer?.isReadOnly === true } satisfies Measurement
})

/** The difference of the clocks as a sentence, if it is certainly more than some milliseconds. */
export const clockFault = ({ ahead, took }: Measurement, most: number) =>
  Math.abs(ahead) - took / 2 <= most
    ? undefined
    : `Its clock is ${(Math.abs(ahead) / 1000).toFixed(1)} s ${ahead < 0 ? "behind" : "ahead of"} this machine's`

type State = Health["checks"][string]

const pass: State = { status: "pass" }

const warn = (output: string): State => ({ status: "warn", output })

/** An answer in time, of a server whose clock is about right. */
const databaseState = (sql: Database, { isWritten = false } = {}) =>
  Effect.match(sql.run(request, measure(sql)), {
    onFailure: warn,
    onSuccess: (measured) => {
      const fault = isWritten && measured.isReadOnly ? "Accepts only reads" : clockFault(measured, 60_000)
      return fault === undefined ? pass : warn(fault)
    }
  })

const changeStates: Readonly<Record<FeedState, State>> = {
  Served: pass,
  // The database has a check of its own.
  Unknown: pass,
  Unsettled: warn("Not served: the order of changes waits for triggers, indexes, or a writer"),
  Distributed: { ...pass, output: "Not served: the database is distributed over several servers" }
}

const processorStates: Readonly<Record<Effect.Success<PspReads["Service"]["state"]>, State>> = {
  up: pass,
  down: warn("Cannot be reached"),
  none: { ...pass, output: "None" }
}

const databases = Effect.all({ records: RecordDatabase, credentials: CredentialDatabase, tasks: TaskDatabase })

/** True if a database is migrated, and its login may do what statements need. */
const isUsable = Effect.fnUntraced(function* (sql: Database, needed: ReadonlyArray<Need>) {
  return (yield* missing(sql)).names.length === 0 && (yield* lacking(sql, needed)).length === 0
})

// Without the tasks, records are read all the same.
const isOptional = ({ database, role }: Need) => role === "data-api" && database === "tasks"

/** The readiness for roles: each database that they need is usable. One that is down keeps the state that it had. */
const makeReadiness = Effect.fnUntraced(function* (roles: ReadonlyArray<Role>) {
  const all = yield* databases
  const needed = Map.groupBy(neededBy(roles), ({ database }) => all[database])
  const states = new Map(Array.from(needed, ([sql, needs]) => [sql, needs.every(isOptional)]))
  const isReady = () => [...states.values()].every((state) => state)
  const check = Effect.forEach(
    needed,
    ([sql, needs]) =>
      Effect.match(sql.run({ ...request, unavailable: identity }, isUsable(sql, needs)), {
        onFailure: ({ _tag }) => void (_tag === "Refused" && states.set(sql, false)),
        onSuccess: (answer) => void states.set(sql, answer)
      }),
    { concurrency: "unbounded", discard: true }
  )
  // Many may ask at once.
  return { isReady, check: yield* Time.cachedFor(check, () => (isReady() ? "5 seconds" : "200 millis")) }
})

export class HealthChecks extends Context.Service<
  HealthChecks,
  {
    /** The roles of this process. */
    readonly roles: ReadonlyArray<Role>
    /** The states of the dependencies, at most a second old: many may ask at once. */
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
        const { credentials, records, tasks } = yield* databases
        const psp = yield* Effect.serviceOption(PspReads)
        const changes = yield* Effect.serviceOption(ChangeClock)
        const sweep = yield* Effect.serviceOption(Sweep)
        const unswept = Option.isSome(sweep) ? sweep.value.unswept : Effect.succeed(0)
        const readiness = yield* makeReadiness(roles)
        const stopping = MutableRef.make(false)
        const isReady = () => readiness.isReady() && !stopping.current
        const { read } = yield* Metrics.series
        yield* read("practice_data_ready", () => (isReady() ? 1 : 0))
        yield* read("practice_data_stopping", () => (stopping.current ? 1 : 0))
        const checks = {
          ...(roles.includes("data-api") && {
            records: databaseState(records),
            credentials: databaseState(credentials)
          }),
          tasks: Effect.zipWith(databaseState(tasks, { isWritten: true }), unswept, (state, seconds) =>
            state.status === "pass" && seconds > 60 ? warn("Deletions are not applied again: see the log") : state
          ),
          ...(Option.isSome(changes) && {
            changes: Effect.map(changes.value.state, (state) => changeStates[state])
          }),
          ...(Option.isSome(psp) && {
            processor: Effect.map(psp.value.state, (state) => processorStates[state])
          })
        }
        return HealthChecks.of({
          roles,
          checks: yield* Time.cachedFor(Effect.all(checks, { concurrency: "unbounded" }), () => "1 second"),
          isReady: Effect.map(readiness.check, isReady),
          stop: Effect.sync(() => void MutableRef.set(stopping, true))
        })
      })
    )

  /** The fake has no dependencies, and is always ready. */
  static readonly layerMemory = Layer.succeed(
    HealthChecks,
    HealthChecks.of({ roles: [], checks: Effect.succeed({}), isReady: Effect.succeed(true), stop: Effect.void })
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
        Effect.map(health.isReady, (ready) =>
          HttpServerResponse.jsonUnsafe(
            { ready },
            ready ? { status: 200 } : { status: 503, headers: { [errorHeader]: errorName("NotReady") } }
          )
        )
    })
  })
)
