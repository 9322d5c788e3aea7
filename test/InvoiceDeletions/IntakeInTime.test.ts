/**
 * A store that hangs: the sender has its 503 within 2 seconds, whatever hangs, and nothing was stored. Decisions: "Invoice
 * deletion intake": store down or busy.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { HealthChecks } from "../../src/Health/HealthChecks.ts"
import { IntakeSecrets } from "../../src/InvoiceDeletions/IntakeSecrets.ts"
import { Scheduler } from "../../src/InvoiceDeletions/Scheduler.ts"
import { TestDatabase } from "../support/TestDatabase.ts"
import { deliver, layerIntake } from "./intake.ts"
import { elsewhere, openTransaction, untilDoneOrBlocked } from "./sessions.ts"
import { delay, inItsOwnTime, onDatabase } from "./support.ts"

const services = Layer.mergeAll(Scheduler.layer(delay), IntakeSecrets.layer, HealthChecks.layerMemory)

/** Secrets that are read in the last moment in which they may be. */
const slowSecrets = Layer.succeed(
  IntakeSecrets,
  IntakeSecrets.of({ of: () => Effect.delay(Effect.succeed([]), "490 millis") })
)

layer(TestDatabase.layerDatabases, onDatabase)("a delivery is answered with 503 within 2 seconds", (it) => {
  it.effect.each([
    ["the table of tasks is locked", "deletion_tasks", services, 0],
    ["the table of secrets is locked", "intake_secrets", services, 0],
    [
      "the secrets are slow, and then the table of tasks is locked",
      "deletion_tasks",
      Layer.merge(services, slowSecrets),
      490
    ]
  ] as const)("while %s", ([, table, given, blockedAfter]) =>
    Effect.gen(function* () {
      const other = yield* elsewhere
      const lock = yield* openTransaction(other, other`lock table ${other(table)} in access exclusive mode`)
      const context = yield* Effect.context<Layer.Success<typeof TestDatabase.layerDatabases>>()
      const intake = layerIntake(Layer.provide(given, Layer.succeedContext(context)))
      const answering = yield* deliver().pipe(
        Effect.provide(Layer.fresh(intake)),
        Effect.forkScoped({ startImmediately: true })
      )
      yield* TestClock.adjust(blockedAfter)
      assert.strictEqual(yield* untilDoneOrBlocked(other, answering), "blocked")
      yield* TestClock.adjust(2000 - blockedAfter)
      // The answer is on its way to the sender.
      yield* Effect.suspend(() =>
        answering.pollUnsafe() === undefined ? Effect.fail("no answer" as const) : Effect.void
      ).pipe(
        Effect.retry({ schedule: Schedule.spaced("5 millis"), times: 40 }),
        TestClock.withLive,
        Effect.ensuring(lock.rollback)
      )
      const answer = yield* Fiber.join(answering)
      assert.strictEqual(answer.status, 503)
      assert.isDefined(answer.headers["retry-after"])
      assert.deepInclude(answer.json, { status: "error", received_at: null })
    }).pipe(inItsOwnTime)
  )
})
