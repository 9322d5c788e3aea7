/** A store that hangs: the sender has its 503 within 2 seconds, whatever hangs. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { TaskDatabase } from "../../../src/database/Database.ts"
import { HealthChecks } from "../../../src/operations/HealthChecks.ts"
import { IntakeSecrets } from "../../../src/deletions/IntakeSecrets.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { deliver, layerIntake } from "../../support/deletions/intake.ts"
import { elsewhere, openTransaction } from "../../support/deletions/sessions.ts"
import { delay, inItsOwnTime, onDatabase } from "../../support/deletions/support.ts"

/** Repeats a check until it is true, in real time. */
const eventually = <E, R>(ask: Effect.Effect<boolean, E, R>, times: number) =>
  Effect.repeat(ask, { until: (yes) => yes, schedule: Schedule.spaced("5 millis"), times }).pipe(TestClock.withLive)

layer(TestDatabase.layerDatabases, onDatabase)("a delivery gets 503 within 2 seconds", (it) => {
  it.effect.each([
    ["the tasks cannot be written", 0],
    ["the secrets are read after 200 milliseconds, and the tasks cannot be written", 200],
    ["the secrets are read after 490 milliseconds, and the tasks cannot be written", 490],
    ["the secrets are read after 790 milliseconds, and the tasks cannot be written", 790],
    ["the secrets cannot be read", 2000]
  ] as const)("when %s", ([, secretsAfter]) =>
    Effect.gen(function* () {
      const other = yield* elsewhere
      const lock = (table: string) => openTransaction(other, other`lock table ${other(table)} in access exclusive mode`)
      const [secrets, tasks] = [yield* lock("intake_secrets"), yield* lock("deletion_tasks")]
      const services = Layer.mergeAll(Scheduler.layer(delay), IntakeSecrets.layer, HealthChecks.layerMemory).pipe(
        Layer.provide(Layer.succeed(TaskDatabase, yield* TaskDatabase))
      )
      const delivering = yield* deliver().pipe(
        Effect.provide(Layer.fresh(layerIntake(services))),
        Effect.forkScoped({ startImmediately: true })
      )
      const isDone = Effect.sync(() => delivering.pollUnsafe() !== undefined)
      const doneOrWaitingFor = (table: string) =>
        eventually(
          Effect.gen(function* () {
            const waiting = yield* other`select 1 from pg_locks where relation = ${table}::regclass and not granted`
            return waiting.length > 0 || (yield* isDone)
          }),
          2000
        )

      yield* doneOrWaitingFor("intake_secrets")
      yield* TestClock.adjust(secretsAfter)
      if (secretsAfter < 2000) {
        yield* secrets.commit
        yield* doneOrWaitingFor("deletion_tasks")
        yield* TestClock.adjust(2000 - secretsAfter)
      }
      // The response is on its way to the sender.
      yield* eventually(isDone, 40)
      const isInTime = yield* isDone
      yield* tasks.commit
      assert.isTrue(isInTime)
      const response = yield* Fiber.join(delivering)
      assert.strictEqual(response.status, 503)
      assert.isDefined(response.headers["retry-after"])
      assert.deepInclude(response.json, { status: "error", received_at: null })
    }).pipe(inItsOwnTime)
  )
})
