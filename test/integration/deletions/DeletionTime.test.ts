/** When a deletion says that it was: not before it could be seen by anybody. Real time, and a real wait for a lock. */
import { assert, layer } from "@effect/vitest"
import { Clock, DateTime, Duration, Effect, Fiber, Layer } from "effect"
import * as Distribution from "../../../src/database/Distribution.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import * as SchedulerPostgres from "../../../src/deletions/SchedulerPostgres.ts"
import { eventually } from "../../support/eventually.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { long } from "../../support/tries.ts"
import { deletedIds, rowsOf, seedInvoices } from "../../support/deletions/invoiceFixture.ts"
import { elsewhere, openTransaction } from "../../support/deletions/sessions.ts"
import { claimAll, delivery, onDatabase, runOne, scheduled } from "../../support/deletions/support.ts"

const millisOf = (time: string | null) => (time === null ? 0 : DateTime.toEpochMillis(DateTime.makeUnsafe(time)))

const schedulers = [
  { store: "", scheduler: Scheduler.layer(Duration.zero), options: { tags: [] } },
  {
    store: ", one organization at a time",
    scheduler: Layer.effect(
      Scheduler,
      SchedulerPostgres.make({ delay: Duration.zero, distribution: Distribution.distributed })
    ),
    options: long
  }
]

layer(TestDatabase.layerDatabases, onDatabase)("a deletion that waits for a row", (it) => {
  for (const { options, scheduler, store } of schedulers)
    it.effect.each([
      ["an invoice", "select 1 from invoices where organization_id = 'org_a' and id = 'i1' for update"],
      ["a line", "select 1 from invoice_lines where organization_id = 'org_a' and id = 'i1b' for update"],
      ["its task", "select 1 from deletion_tasks for update"]
    ] as const)(
      `says of everything that it deletes when it had the row, and not when it began to wait: %s${store}`,
      ([, lock]) =>
        Effect.gen(function* () {
          const sql = yield* seedInvoices
          yield* scheduled(
            delivery("waits", { invoices: [{ invoice_id: "i1" }], invoice_lines: [{ invoice_line_id: "i3a" }] })
          )
          const [claim] = yield* claimAll()
          if (claim === undefined) return assert.fail("There is a task")
          const other = yield* elsewhere
          const holding = yield* openTransaction(other, other.unsafe(lock))
          const running = yield* Effect.forkScoped(runOne(claim), { startImmediately: true })
          yield* eventually(
            "a session that waits for the lock",
            Effect.map(
              other`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
              ({ length }) => length > 0
            )
          )
          const blockedAt = yield* Clock.currentTimeMillis
          yield* Effect.sleep("300 millis")
          assert.isUndefined(running.pollUnsafe())
          yield* holding.commit
          assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
          const rows = (yield* rowsOf(sql)).filter((row) => row.is_deleted)
          assert.deepStrictEqual(deletedIds(rows), ["i1", "i1a", "i1b", "i3a"])
          const [task] = yield* sql<{ finished_at: string }>`select finished_at::text from deletion_tasks`
          const times = new Set([
            task?.finished_at,
            ...rows.flatMap(({ deleted_at, updated_at }) => [deleted_at, updated_at])
          ])
          assert.strictEqual(times.size, 1)
          for (const time of times) {
            assert.isAtLeast(millisOf(time ?? null), blockedAt + 200)
            assert.isAtMost(millisOf(time ?? null), yield* Clock.currentTimeMillis)
          }
        }).pipe(Effect.scoped, Effect.provide(scheduler)),
      options
    )
})
