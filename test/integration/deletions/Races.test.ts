/** Deliveries, claims, renewals, runs and deletions of the same rows that meet in the database. */
import { assert } from "@effect/vitest"
import { Array, Duration, Effect, Fiber, Random } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { TestClock } from "effect/testing"
import { TaskDatabase } from "../../../src/database/Database.ts"
import * as Claims from "../../../src/deletions/Claims.ts"
import { Scheduler, SchedulerUnavailable } from "../../../src/deletions/Scheduler.ts"
import { eventually } from "../../support/eventually.ts"
import { elsewhere, openTransaction, untilDoneOrBlocked } from "../../support/deletions/sessions.ts"
import {
  claimAll,
  claimOne,
  completes,
  delay,
  delivery,
  idsOf,
  lease,
  postgres,
  runOne,
  scheduled,
  single,
  suite
} from "../../support/deletions/support.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { addTasks, rowsOf } from "../../support/deletions/invoiceFixture.ts"

const atOnce = { concurrency: "unbounded" } as const

/** Makes tasks due, and another session. */
const dueTasks = Effect.fnUntraced(function* (...keys: ReadonlyArray<string>) {
  const other = yield* elsewhere
  const ids = idsOf(yield* Effect.forEach(keys, (key) => scheduled(delivery(key))))
  yield* TestClock.adjust(delay)
  return { other, ids }
})

/** Checks that a process does not wait for an open transaction that holds a task. */
const doesNotWait = Effect.fnUntraced(function* <A, E, R>(
  other: Effect.Success<typeof elsewhere>,
  id: string | undefined,
  process: Effect.Effect<A, E, R>
) {
  const lock = other`select 1 from deletion_tasks where id = ${id ?? ""}::uuid for update`
  const holding = yield* openTransaction(other, lock)
  const running = yield* Effect.forkScoped(process)
  const state = yield* untilDoneOrBlocked(other, running)
  yield* holding.rollback
  assert.strictEqual(state, "done")
  return yield* Fiber.join(running)
})

/** Stores a task that another process still stores. Its receipt has 7 invoices. */
const storing = (other: Effect.Success<typeof elsewhere>, given: ReturnType<typeof delivery>) =>
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
    const given = delivery("in flight")
    const first = yield* storing(other, given)
    const second = yield* Effect.forkScoped(schedule(given))
    assert.strictEqual(yield* untilDoneOrBlocked(other, second), "blocked")
    yield* first[end]
    const outcome = yield* Fiber.join(second)
    assert.strictEqual(outcome.status, status)
    assert.strictEqual("receipt" in outcome && outcome.receipt.invoices_count, invoicesCount)
  })

suite("at once", postgres, {
  "identical deliveries are one task, and duplicates with its receipt": Effect.gen(function* () {
    const { schedule } = yield* Scheduler
    const keys = Array.makeBy(12, (index) => `key-${index}`)
    for (const key of keys) {
      const outcomes = yield* Effect.replicateEffect(schedule(delivery(key)), 32, atOnce)
      const statuses = outcomes.map(({ status }) => status).toSorted()
      assert.deepStrictEqual(statuses, [...Array.replicate("duplicate", 31), "scheduled"])
      assert.strictEqual(new Set(outcomes.map((each) => JSON.stringify("receipt" in each && each.receipt))).size, 1)
    }
    yield* TestClock.adjust(delay)
    assert.lengthOf(yield* claimAll(1000), keys.length)
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

  "a claim, a renewal and a release skip a task that another session holds": Effect.gen(function* () {
    const { ids, other } = yield* dueTasks("1", "2", "3")
    const { release, renew } = yield* Scheduler
    const others = yield* doesNotWait(other, ids[0], claimAll())
    assert.sameMembers(idsOf(others), ids.slice(1))
    const first = yield* claimOne()
    yield* TestClock.adjust("9 seconds")
    yield* doesNotWait(other, ids[0], renew([first, ...others], lease))
    yield* TestClock.adjust("9 seconds")
    const again = yield* claimOne()
    assert.deepStrictEqual(idsOf([again]), ids.slice(0, 1))
    assert.isFalse(yield* doesNotWait(other, ids[0], release(again)))
    assert.isTrue(yield* release(again))
    assert.strictEqual((yield* claimOne()).attempt, 2)
  }),
  "a run that waits for a renewal is completed": Effect.gen(function* () {
    const { other } = yield* dueTasks("1")
    const claim = yield* claimOne()
    const renewal = yield* openTransaction(
      other,
      other`update deletion_tasks set due_at = due_at + interval '1 second' where id = ${claim.taskId}::uuid`
    )
    const running = yield* Effect.forkScoped(completes(claim))
    assert.strictEqual(yield* untilDoneOrBlocked(other, running), "blocked")
    yield* renewal.commit
    yield* Fiber.join(running)
  }),
  "a claim whose response was lost is released once, without an attempt, before the next": Effect.gen(function* () {
    const { ids } = yield* dueTasks("1")
    const sql = yield* TaskDatabase
    let isLost = true
    let statements = 0
    const make = () =>
      Claims.make(sql, <A>(statement: Effect.Effect<A, SqlError>) => {
        statements += 1
        return Effect.filterOrFail(
          Effect.orDie(statement),
          () => !isLost,
          () => new SchedulerUnavailable({ message: "No response" })
        )
      }).claim
    const claim = make()
    assert.isFalse(yield* Effect.isSuccess(claim({ due: 1 }, Duration.hours(1))))
    isLost = false
    const claims = yield* claim({ due: 1 }, Duration.hours(1))
    assert.deepStrictEqual(
      claims.map(({ attempt, taskId }) => [taskId, attempt]),
      [[ids[0], 1]]
    )
    const counts: Array<number> = []
    // Until it finds nothing, a worker looks further.
    for (const one of [claim, claim, make()]) {
      statements = 0
      assert.isEmpty(yield* one({ due: 1 }, Duration.hours(1)))
      counts.push(statements)
    }
    assert.strictEqual(counts[1], counts[2])
  })
})

suite("beside", single, {
  "deliveries that wait for a lock, another organization and the worker do not wait": Effect.gen(function* () {
    const { schedule } = yield* Scheduler
    const other = yield* elsewhere
    const given = delivery("stuck")
    const first = yield* storing(other, given)
    const stuck = yield* Effect.replicateEffect(
      Effect.forkScoped(Effect.exit(schedule(given)), { startImmediately: true }),
      50
    )
    yield* Effect.forEach(stuck.slice(0, 1), (fiber) => untilDoneOrBlocked(other, fiber))
    assert.strictEqual((yield* schedule(delivery("free", undefined, "org_b"))).status, "scheduled")
    assert.isEmpty(yield* claimAll())
    assert.isTrue(stuck.every((fiber) => fiber.pollUnsafe() === undefined))
    yield* first.rollback
    for (const fiber of stuck) assert.strictEqual((yield* Fiber.join(fiber))._tag, "Success")
  }),
  "20,000 tasks, a claim reads none but those in its order, by a plan for any claim": Effect.gen(function* () {
    const { sql } = yield* TestDatabase
    const { claim } = yield* Scheduler
    yield* addTasks(20_000, {
      organization_id: "'org_a'",
      due_at: "case when n % 2 = 0 then '2026-01-01'::timestamptz + (n * 7919 % 20011) * interval '1 second' end",
      state: "case n % 2 when 0 then 'scheduled' else 'completed' end"
    })
    yield* sql`analyze deletion_tasks`
    const oldest = yield* sql<{ id: string }>`
      select id from deletion_tasks where state = 'scheduled' order by due_at limit 128`
    const scanned = sql`
      select seq_tup_read::integer as rows from pg_stat_xact_user_tables where relname = 'deletion_tasks'`
    yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* sql`set local plan_cache_mode = force_generic_plan`
        const before = yield* scanned
        // The first is full, so the second is in turns.
        const claims = yield* Effect.replicateEffect(claim({ due: 64, expired: 16, isolated: 0 }, lease), 2)
        assert.deepStrictEqual(
          idsOf(claims.flat()),
          oldest.map(({ id }) => id)
        )
        assert.deepStrictEqual(yield* scanned, before)
      })
    )
  }),
  "finished tasks that a dump still sees, claims read none, and find one of a machine whose clock is behind":
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const { claim, untilDue } = yield* Scheduler
      const other = yield* elsewhere
      yield* addTasks(5000, { organization_id: "'org_' || n % 3", due_at: "now() - n * interval '1 hour'" })
      const dump = other`set transaction isolation level repeatable read`
      const open = yield* openTransaction(other, Effect.andThen(dump, other`select from deletion_tasks limit 1`))
      yield* sql`update deletion_tasks set state = 'running', due_at = now() - interval '2 minutes'`
      yield* sql`update deletion_tasks set state = 'completed', due_at = null`
      yield* untilDue
      const read = sql<{ entries: number }>`
        select sum(pg_stat_get_xact_tuples_returned(indexrelid))::int as entries
        from pg_index where indrelid = 'deletion_tasks'::regclass`
      yield* sql.withTransaction(
        Effect.gen(function* () {
          const before = yield* read
          for (const except of [undefined, new Set(["org_a"])])
            assert.isEmpty(yield* claim({ due: 64, expired: 16, isolated: 1, ...(except && { except }) }, lease))
          assert.deepStrictEqual(yield* read, before)
        })
      )
      yield* addTasks(1, { organization_id: "'late'", due_at: "now() - interval '1 hour'" })
      const claiming = Effect.andThen(untilDue, claim({ due: 1 }, lease))
      yield* Effect.orDie(eventually("its claim", claiming, ({ length }) => length === 1))
      yield* open.rollback
    }).pipe(TestClock.withLive),
  "more organizations with nothing due than a turn visits, the next turn reaches the one behind them": Effect.gen(
    function* () {
      const { claim } = yield* Scheduler
      yield* addTasks(40, { organization_id: "'a'", due_at: "'2026-01-01'" })
      yield* addTasks(5000, { organization_id: "'idle_' || n", due_at: "'2090-01-01'" })
      yield* addTasks(1, { organization_id: "'z'", due_at: "'2026-01-02'" })
      const claims = yield* Effect.replicateEffect(claim({ due: 8 }, lease), 3)
      assert.deepStrictEqual(
        claims.map((each) => Array.dedupe(each.map((task) => task.organization)).toSorted()),
        [["a"], ["a"], ["z"]]
      )
    }
  )
})

const invoices = Array.range(1, 12)

/** Invoices with three lines each, in an order of their own on the disk. */
const makeInvoices = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  yield* sql`truncate invoices, invoice_lines`
  yield* sql`
    insert into invoices (organization_id, id, created_at, updated_at)
    select 'org_a', 'invoice_' || n, '2026-01-01', '2026-01-01' from generate_series(1, 12) n order by md5(n::text)`
  yield* sql`
    insert into invoice_lines (organization_id, id, invoice, created_at, updated_at)
    select 'org_a', 'line_' || n || '_' || m, 'invoice_' || n, '2026-01-01', '2026-01-01'
    from generate_series(1, 12) n, generate_series(1, 3) m order by md5(n::text || m)`
  return sql
})

/** A task that names all invoices, and a line of each, in an order of its own. */
const someTask = Effect.gen(function* () {
  const [ofInvoices, ofLines] = [yield* Random.shuffle(invoices), yield* Random.shuffle(invoices)]
  return {
    invoices: Array.fromIterable(ofInvoices).map((n) => ({ invoice_id: `invoice_${n}` })),
    invoice_lines: Array.fromIterable(ofLines).map((n) => ({ invoice_line_id: `line_${n}_1` }))
  }
})

const waitForEachOther = (together: number) =>
  Effect.gen(function* () {
    const sql = yield* makeInvoices
    const { run } = yield* Scheduler
    const tasks = yield* Effect.replicateEffect(someTask, 20)
    yield* Effect.forEach(tasks, (task, index) => scheduled(delivery(`${index}`, task)))
    yield* TestClock.adjust(delay)
    const claims = yield* Effect.flatMap(claimAll(), Random.shuffle)
    const outcomes = yield* Effect.forEach(
      Array.chunksOf(claims, together),
      // What takes too long together is run one by one, as a worker does.
      (some) => Effect.catchTag(run(some), "TaskFailed", () => Effect.forEach(some, runOne)),
      { concurrency: 4 }
    )
    assert.notInclude(outcomes.flat(), undefined)
    const rows = yield* rowsOf(sql)
    assert.isTrue(rows.every((row) => row.deleted_at === "2026-01-31 09:31:00+00"))
  })

suite("tasks that all name everything wait for each other,", postgres, {
  "one in a transaction": waitForEachOther(1),
  "three in a transaction": waitForEachOther(3)
})
