/** One organization's deliveries, however many wait for whatever, leave room for those of others. Decisions: fairness. */
import { assert, layer } from "@effect/vitest"
import { Array, Effect, Fiber } from "effect"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { elsewhere, openTransaction, untilDoneOrBlocked } from "../../support/deletions/sessions.ts"
import {
  claimAll,
  delivery,
  inItsOwnTime,
  layerPostgres,
  onDatabase,
  organization
} from "../../support/deletions/support.ts"

layer(
  TestDatabase.layerDatabases,
  onDatabase
)((it) => {
  it.effect("deliveries that wait for a lock keep neither another organization nor the worker waiting", () =>
    Effect.gen(function* () {
      const { schedule } = yield* Scheduler
      const other = yield* elsewhere
      const given = delivery("stuck")
      const storing = other`
        insert into deletion_tasks (
          organization_id, id, idempotency_key, fingerprint, payload, invoices_count, invoice_lines_count, received_at,
          scheduled_for, due_at
        ) values (${organization}, ${given.taskId}, 'stuck', ${given.fingerprint}, '{}', 1, 0, now(), now(), now())`
      const first = yield* openTransaction(other, storing)
      const stuck = yield* Effect.forEach(Array.range(1, 50), () =>
        Effect.forkScoped(Effect.exit(schedule(given)), { startImmediately: true })
      )
      yield* Effect.forEach(stuck.slice(0, 1), (fiber) => untilDoneOrBlocked(other, fiber))
      const neighbours = yield* schedule(delivery("free", undefined, "org_b"))
      assert.strictEqual(neighbours._tag, "Scheduled")
      assert.isEmpty(yield* claimAll())
      assert.isTrue(stuck.every((fiber) => fiber.pollUnsafe() === undefined))
      yield* first.rollback
      for (const fiber of stuck) assert.strictEqual((yield* Fiber.join(fiber))._tag, "Success")
    }).pipe(Effect.provide(layerPostgres), Effect.scoped, inItsOwnTime)
  )
})
