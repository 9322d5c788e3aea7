/** What the service depends on, and whether it is there. */
import type { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Ref } from "effect"
import { CredentialDatabase, RecordDatabase, within } from "../Database/Database.ts"
import { isMigrated } from "../Database/Migrations.ts"
import { PspReads } from "../Psp/PspReads.ts"

/** Health is answered within half a second, whatever it finds. */
const deadline = "400 millis"

const inTime = within(deadline, () => "no answer in time" as const)

const isUp = (sql: PgClient.PgClient) => Effect.isSuccess(inTime(sql`select 1`))

export class HealthChecks extends Context.Service<
  HealthChecks,
  {
    /** Whether each thing that the service depends on answers, by its name. */
    readonly checks: Effect.Effect<Readonly<Record<string, boolean>>>
    /** Whether the service is migrated and not stopping. */
    readonly isReady: Effect.Effect<boolean>
    /** From now on the service is not ready. */
    readonly stop: Effect.Effect<void>
  }
>()("practice-data/Health/HealthChecks") {
  /** Checks both databases, and asks whether the payment processor is being called. */
  static readonly layer = Layer.effect(
    HealthChecks,
    Effect.gen(function* () {
      const records = yield* RecordDatabase
      const credentials = yield* CredentialDatabase
      const psp = yield* PspReads
      const isStopping = yield* Ref.make(false)
      // What was migrated once stays so, also while its database is down.
      const wasMigrated = yield* Ref.make(false)
      const migrated = inTime(isMigrated(records)).pipe(
        Effect.tap((isDone) => Ref.set(wasMigrated, isDone)),
        Effect.orElseSucceed(() => false)
      )
      const isMigratedByNow = Effect.flatMap(Ref.get(wasMigrated), (isDone) =>
        isDone ? Effect.succeed(true) : migrated
      )
      return HealthChecks.of({
        checks: Effect.all(
          { records: isUp(records), credentials: isUp(credentials), processor: psp.isUp },
          { concurrency: "unbounded" }
        ),
        isReady: Effect.flatMap(Ref.get(isStopping), (stopping) =>
          stopping ? Effect.succeed(false) : isMigratedByNow
        ),
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
