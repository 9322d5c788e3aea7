/** Whether what the service depends on can be reached. */
import { Context, Duration, Effect, identity, Layer, Ref, String } from "effect"
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
import { PspReads } from "../psp/PspReads.ts"
import { ChangeClock } from "../records/ChangeClock.ts"
import * as Replica from "./Replica.ts"

/** Health responds within half a second, whatever it finds. */
const timeout = Duration.millis(400)

const unavailable = (failure: Store.Failure) => String.capitalize(Store.describe(failure))

const ask = <A, E>(database: Database, statement: Effect.Effect<A, E>) =>
  database.run({ key: "health", within: timeout, unavailable }, statement)

const problemOf = (database: Database) =>
  Effect.match(ask(database, database`select 1`), { onSuccess: () => undefined, onFailure: identity })

/** How long a transaction may hold the changes back, in seconds. */
const maximumLag = 60

const heldBack = (lag: number) =>
  lag > maximumLag
    ? `Held back for ${lag} seconds: a transaction that has written is open, or a replica is behind`
    : undefined

/** What is as it should be, and to be known. */
export interface Note {
  readonly note: string
}

const notServed: Note = { note: "Not served: the database is distributed over several servers" }

export class HealthChecks extends Context.Service<
  HealthChecks,
  {
    /** What is wrong with each thing that the service depends on, by its name; or what is to be known of it. */
    readonly checks: Effect.Effect<Readonly<Record<string, string | Note | undefined>>>
    /** Whether the service is migrated and not stopping. */
    readonly isReady: Effect.Effect<boolean>
    /** From now on the service is not ready. */
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
      const isStopping = yield* Ref.make(false)
      const wasMigrated = yield* Ref.make(false)
      const { read } = yield* Series.current
      const isReadyNow = () => !Ref.getUnsafe(isStopping) && Ref.getUnsafe(wasMigrated)
      yield* read("practice_data_ready", () => (isReadyNow() ? 1 : 0))
      yield* read("practice_data_stopping", () => (Ref.getUnsafe(isStopping) ? 1 : 0))
      const isMigratedNow = ask(records, isMigrated(records)).pipe(
        Effect.tap((isDone) => Ref.set(wasMigrated, isDone)),
        Effect.orElseSucceed(() => false)
      )
      // A primary that does not answer, or does not say where it is, is a matter of another check.
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
          if (yield* Ref.get(isStopping)) return false
          // What was migrated once stays so, also while its database is down.
          return (yield* Ref.get(wasMigrated)) || (yield* isMigratedNow)
        }),
        stop: Ref.set(isStopping, true)
      })
    })
  )

  /** The fake: depends on nothing, and is always ready. */
  static readonly layerMemory = Layer.succeed(
    HealthChecks,
    HealthChecks.of({ checks: Effect.succeed({}), isReady: Effect.succeed(true), stop: Effect.void })
  )
}
