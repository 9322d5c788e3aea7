/** The changes of rows by a deletion: their times, in one transaction, for the worker that holds the task. */
import { assert, layer } from "@effect/vitest"
import { Clock, DateTime, Duration, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { deleted, deletedIds, rowsOf, seedInvoices } from "../../support/deletions/invoiceFixture.ts"
import { elsewhere, openTransaction } from "../../support/deletions/sessions.ts"
import {
  claimAll,
  claimed,
  claimOne,
  completes,
  delivery,
  inItsOwnTime,
  isSuperseded,
  onDatabase,
  overPostgres,
  runOne,
  scheduled
} from "../../support/deletions/support.ts"
import { eventually } from "../../support/eventually.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const i1 = { invoices: [{ invoice_id: "i1" }] }
const all = ["i1", "i1a", "i1b"]
const minute = (number: number) => `2026-01-31 09:3${number}:00+00`
const last = "9999-12-31 23:59:59.999999+00"

overPostgres("a deletion", (it) => {
  it.effect("keeps the first time of a deletion, and changes updated_at each time", () =>
    Effect.gen(function* () {
      const sql = yield* seedInvoices
      const times = Effect.map(rowsOf(sql), (rows) =>
        rows.flatMap(({ deleted_at, id, is_deleted, updated_at }) => (is_deleted ? [[id, deleted_at, updated_at]] : []))
      )
      const [first, second, third] = [minute(1), minute(2), minute(3)] as const
      yield* deleted({ invoice_lines: [{ invoice_line_id: "i1a" }] })
      yield* deleted(i1)
      assert.deepStrictEqual(yield* times, [
        ["i1", second, second],
        ["i1a", first, second],
        ["i1b", second, second]
      ])
      yield* deleted(i1)
      assert.deepStrictEqual(yield* times, [
        ["i1", second, third],
        ["i1a", first, third],
        ["i1b", second, third]
      ])
    }).pipe(inItsOwnTime)
  )

  it.effect.each([
    ["2030-01-01 00:00:00.000009+00", "2030-01-01 00:00:00.00001+00"],
    ["2030-01-01 00:00:00.999999+00", "2030-01-01 00:00:01+00"],
    ["9999-12-31 23:59:59.999998+00", last],
    // None is later.
    [last, last]
  ])("has an updated_at after one that is ahead of the clock: %s", ([before, after]) =>
    Effect.gen(function* () {
      const sql = yield* seedInvoices
      yield* sql`update invoices set updated_at = ${before} where id = 'i1'`
      yield* sql`update invoice_lines set updated_at = ${before} where id in ('i1a', 'i1b')`
      yield* deleted(i1)
      const rows = (yield* rowsOf(sql)).filter((row) => row.is_deleted)
      assert.deepStrictEqual(
        rows.map(({ updated_at }) => updated_at),
        [after, after, after]
      )
    }).pipe(inItsOwnTime)
  )

  it.effect("of a worker that was superseded changes nothing", () =>
    Effect.gen(function* () {
      const sql = yield* seedInvoices
      const { claim } = yield* claimed("superseded")
      yield* sql`update deletion_tasks set payload = '{"invoices":[{"invoice_id":"i1"}],"invoice_lines":[]}'`
      yield* TestClock.adjust("1 hour")
      const next = yield* claimOne()
      yield* isSuperseded(claim)
      assert.isEmpty(deletedIds(yield* rowsOf(sql)))
      yield* completes(next)
      assert.deepStrictEqual(deletedIds(yield* rowsOf(sql)), all)
    }).pipe(inItsOwnTime)
  )
})

const millisOf = (time: string | null | undefined) =>
  time == null ? 0 : DateTime.toEpochMillis(DateTime.makeUnsafe(time))

// A client that syncs by time has read until now: a row must not appear behind that.
layer(TestDatabase.layerDatabases, onDatabase)("a deletion that waited for a row", (it) => {
  it.effect.each([
    ["an invoice", "select 1 from invoices where organization_id = 'org_a' and id = 'i1' for update"],
    ["a line", "select 1 from invoice_lines where organization_id = 'org_a' and id = 'i1b' for update"],
    ["its task", "select 1 from deletion_tasks for update"]
  ] as const)("has the time at which it had the row: %s", ([, lock]) =>
    Effect.gen(function* () {
      const sql = yield* seedInvoices
      yield* scheduled(delivery("waits", { ...i1, invoice_lines: [{ invoice_line_id: "i3a" }] }))
      const [claim] = yield* claimAll()
      if (claim === undefined) return assert.fail("There is a task")
      const other = yield* elsewhere
      const holding = yield* openTransaction(other, other.unsafe(lock))
      const running = yield* Effect.forkScoped(runOne(claim), { startImmediately: true })
      yield* eventually(
        "a session that waits for the lock",
        other`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        ({ length }) => length > 0
      )
      yield* other`select pg_sleep(0.3)`
      const releasedAt = yield* Clock.currentTimeMillis
      yield* holding.commit
      assert.strictEqual((yield* Fiber.join(running))._tag, "Completed")
      const rows = (yield* rowsOf(sql)).filter((row) => row.is_deleted)
      assert.deepStrictEqual(deletedIds(rows), [...all, "i3a"])
      const [task] = yield* sql<{ finished_at: string }>`select finished_at::text from deletion_tasks`
      const times = new Set([task?.finished_at, ...rows.flatMap((row) => [row.deleted_at, row.updated_at])])
      assert.strictEqual(times.size, 1)
      // The time of the statement's start is cut to a millisecond, and it was sent a little earlier.
      assert.isAtLeast(millisOf(task?.finished_at), releasedAt - 200)
      assert.isAtMost(millisOf(task?.finished_at), yield* Clock.currentTimeMillis)
    }).pipe(Effect.scoped, Effect.provide(Scheduler.layer(Duration.zero)))
  )
})
