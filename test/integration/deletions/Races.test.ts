/** Deliveries, and claims that meet in the database. */
import { assert } from "@effect/vitest"
import { Array, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { elsewhere, openTransaction, untilDoneOrBlocked } from "../../support/deletions/sessions.ts"
import * as Task from "../../support/deletions/tasks.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { addTasks } from "../../support/deletions/invoiceFixture.ts"

const atOnce = { concurrency: "unbounded" } as const

/** Makes tasks due, and another session. */
const dueTasks = Effect.fnUntraced(function* (...keys: ReadonlyArray<string>) {
  const other = yield* elsewhere
  const ids = Task.idsOf(yield* Effect.forEach(keys, (key) => Task.scheduled(Task.delivery(key))))
  yield* TestClock.adjust(Task.delay)
  return { other, ids }
})

/** Checks that a process does not wait for an open transaction that holds a task. */
const doesNotWait = Effect.fnUntraced(function* <A, E, R>(
  other: Effect.Success<typeof elsewhere>,
  id: string | undefined,
  process: Effect.Effect<A, E, R>
) {
  const lock = other`select 1 from deletion_tasks where organization_id = 'org_a' and id = ${id ?? ""}::uuid for update`
  const holding = yield* openTransaction(other, lock)
  const running = yield* Effect.forkScoped(process)
  const state = yield* untilDoneOrBlocked(other, running)
  yield* holding.rollback
  assert.strictEqual(state, "done")
  return yield* Fiber.join(running)
})

/** Stores a task that another process still stores. Its receipt has 7 invoices. */
const storing = (other: Effect.Success<typeof elsewhere>, given: ReturnType<typeof Task.delivery>) =>
  openTransaction(
    other,
    other`
      insert into deletion_tasks (
        organization_id, id, idempotency_key, fingerprint, payload,
        invoices_count, invoice_lines_count, received_at, scheduled_for, due_at
      ) values (
        ${given.organization}, ${given.taskId}, ${given.idempotencyKey}, ${given.fingerprint}, '{}', 7, 0,
        '2026-01-01', '2026-01-02', '2026-01-02'
      )`
  )

/** Checks what becomes of a delivery that waits, and the invoices of its receipt. */
const waitsFor = (end: "commit" | "rollback", status: string, invoicesCount: number) =>
  Effect.gen(function* () {
    const other = yield* elsewhere
    const { schedule } = yield* Scheduler
    const given = Task.delivery("in flight")
    const first = yield* storing(other, given)
    const second = yield* Effect.forkScoped(schedule(given))
    assert.strictEqual(yield* untilDoneOrBlocked(other, second), "blocked")
    yield* first[end]
    const outcome = yield* Fiber.join(second)
    assert.strictEqual(outcome.status, status)
    assert.strictEqual("receipt" in outcome && outcome.receipt.invoices_count, invoicesCount)
  })

Task.suite("at once", {
  "identical deliveries are one task, and duplicates with its receipt": Effect.gen(function* () {
    const { schedule } = yield* Scheduler
    const keys = Array.makeBy(12, (index) => `key-${index}`)
    for (const key of keys) {
      const outcomes = yield* Effect.replicateEffect(schedule(Task.delivery(key)), 32, atOnce)
      const statuses = outcomes.map(({ status }) => status).toSorted()
      assert.deepStrictEqual(statuses, [...Array.replicate("duplicate", 31), "scheduled"])
      assert.strictEqual(new Set(outcomes.map((each) => JSON.stringify("receipt" in each && each.receipt))).size, 1)
    }
    yield* TestClock.adjust(Task.delay)
    assert.lengthOf(yield* Task.claimAll(1000), keys.length)
  }),
  "a delivery waits for the same one that is being stored: after its commit it is a duplicate": waitsFor(
    "commit",
    "duplicate",
    7
  ),
  "a delivery waits for the same one that is being stored: after its rollback it is scheduled": waitsFor(
    "rollback",
    "scheduled",
    1
  ),

  "a start skips a task whose row is locked, and one that was started meanwhile": Effect.gen(function* () {
    const { ids, other } = yield* dueTasks("1", "2", "3")
    const others = yield* doesNotWait(other, ids[0], Task.claimAll())
    assert.sameMembers(Task.idsOf(others), ids.slice(1))
    assert.deepStrictEqual(Task.idsOf([yield* Task.claimOne()]), ids.slice(0, 1))
    assert.isEmpty(yield* Task.claimAll())
  })
})

Task.suite("beside", {
  "finished tasks that a dump still sees, a look reads none, and finds a late one": Effect.gen(function* () {
    const { sql } = yield* TestDatabase
    const { due } = yield* Scheduler
    const other = yield* elsewhere
    yield* addTasks(5000, {
      organization_id: "'org_' || n % 3",
      due_at: "'2026-01-31'::timestamptz - n * interval '1 hour'"
    })
    const dump = other`set transaction isolation level repeatable read`
    const open = yield* openTransaction(other, Effect.andThen(dump, other`select from deletion_tasks limit 1`))
    yield* sql`update deletion_tasks set state = 'completed', due_at = null`
    assert.isEmpty(yield* due(64))
    const read = sql<{ entries: number }>`
        select sum(pg_stat_get_xact_tuples_returned(indexrelid))::int as entries
        from pg_index where indrelid = 'deletion_tasks'::regclass`
    yield* sql.withTransaction(
      Effect.gen(function* () {
        const before = yield* read
        assert.isEmpty(yield* due(64))
        assert.deepStrictEqual(yield* read, before)
      })
    )
    yield* addTasks(1, { organization_id: "'late'", due_at: "'2026-01-31'" })
    assert.isEmpty(yield* due(64))
    yield* TestClock.adjust("1 minute")
    assert.lengthOf(yield* due(64), 1)
    yield* open.rollback
  })
})
