/**
 * Several workers over one table of tasks: sharing it, stopping in the middle of it, and meeting locks of others.
 *
 * @module-tag long
 */
import { assert, it } from "@effect/vitest"
import { Array, Effect, Layer, type Scope } from "effect"
import type { PgClient } from "@effect/sql-pg"
import { eventually } from "../../support/eventually.ts"
import { inTime } from "../../support/inTime.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import * as Gate from "../../support/Gate.ts"
import * as Ledger from "../../support/Ledger.ts"
import * as Program from "../../support/Program.ts"

/** Gives a test a database of its own, which outlives its processes and its locks. */
const alone = <A, E>(test: Effect.Effect<A, E, TestDatabase | Scope.Scope>) =>
  Effect.provide(Effect.scoped(test), Layer.fresh(TestDatabase.layer))

/** Tasks of one invoice each, of which a feeder of the records holds some, beside a worker that runs one at a time. */
const blocked = Effect.fnUntraced(function* (tasks: number, held: number) {
  const { url, sql } = yield* TestDatabase
  yield* Ledger.open(sql, tasks)
  const ids = Array.range(1, held).map(Ledger.idOf)
  const feeder = yield* Gate.hold(sql, sql`select 1 from invoices where ${sql.in("id", ids)} for update`)
  yield* Ledger.scheduleAll(sql, Array.range(1, tasks))
  const worker = yield* Program.start("worker", url, { DATABASE_POOL_SIZE: "2" })
  yield* eventually(
    "a deletion that waits for the feeder",
    Effect.map(
      sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      (rows) => rows.length > 0
    )
  )
  return { url, sql, worker, feeder }
})

/** Longer than a lease, shorter than a statement may take. */
const aWhile = (sql: PgClient.PgClient) => sql`select pg_sleep(2.5)`

it.live("Four workers on 2,000 due tasks, twenty for each invoice, complete each once, and without a deadlock", () =>
  Effect.gen(function* () {
    const { url, sql } = yield* TestDatabase
    yield* Ledger.open(sql, 100)
    const settings = { DATABASE_POOL_SIZE: "4" }
    yield* Effect.forEach(Array.range(1, 4), () => Program.start("worker", url, settings), { concurrency: 2 })
    yield* Ledger.scheduleAll(
      sql,
      Array.makeBy(2000, (n) => (n % 100) + 1)
    )
    yield* Ledger.untilCompleted(sql)
    // On a machine that keeps a worker waiting longer than its leases, another may have taken a task from it.
    const { attempts: _, ...expected } = Ledger.allCompletedOnce(2000)
    assert.deepInclude(yield* Ledger.balance(sql), expected)
    const [database] = yield* sql`
      select deadlocks::integer as deadlocks from pg_stat_database where datname = current_database()`
    assert.deepStrictEqual(database, { deadlocks: 0 })
  }).pipe(alone)
)

it.live(
  "A stop signal in the middle of a batch ends a worker in 10 s with code 0, nothing half done, no attempt lost",
  () =>
    Effect.gen(function* () {
      const { url, sql } = yield* TestDatabase
      yield* Ledger.open(sql, 3000)
      const worker = yield* Program.start("worker", url, { DATABASE_POOL_SIZE: "2" })
      yield* Ledger.scheduleAll(sql, Array.range(1, 3000))
      yield* eventually(
        "some tasks are done",
        Effect.map(Ledger.outstanding(sql), (open) => open < 2950)
      )
      yield* worker.kill("SIGTERM")
      assert.isBelow(yield* Program.secondsOf(worker.ended), inTime(10))
      assert.deepStrictEqual(yield* worker.ended, { code: 0, signal: null }, worker.output())
      const balance = yield* Ledger.balance(sql)
      const completed = balance?.completed ?? 0
      assert.isBelow(completed, 3000)
      assert.deepStrictEqual(balance, {
        ...Ledger.allCompletedOnce(3000),
        completed,
        completions: completed,
        attempts: { 0: 3000 - completed, 1: completed }
      })
    }).pipe(alone)
)

it.live("A stop signal while deletions wait for a lock ends a worker in 10 s with code 0, and no attempt lost", () =>
  Effect.gen(function* () {
    const { sql, worker, feeder } = yield* blocked(20, 3)
    yield* worker.kill("SIGTERM")
    assert.isBelow(yield* Program.secondsOf(worker.ended), inTime(10))
    assert.deepStrictEqual(yield* worker.ended, { code: 0, signal: null }, worker.output())
    yield* feeder.release
    const balance = yield* Ledger.balance(sql)
    assert.deepInclude(balance, { running: 0, early: 0, rewritten: 0, unfounded: 0, halfDone: 0 })
    // What was started and waited in vain had its attempt. What was not started had none.
    const tried = yield* sql`select 1 from deletion_tasks where state <> 'completed' and attempts > 0`
    assert.isAtMost(tried.length, 3)
  }).pipe(alone)
)

it.live("A worker keeps the tasks of its batch that it has not started, while one waits longer than the lease", () =>
  Effect.gen(function* () {
    const { url, sql, feeder } = yield* blocked(10, 1)
    yield* Program.start("worker", url)
    yield* aWhile(sql)
    yield* feeder.release
    yield* Ledger.untilCompleted(sql)
    assert.deepStrictEqual(yield* Ledger.balance(sql), Ledger.allCompletedOnce(10))
  }).pipe(alone)
)

it.live("Tasks that together take longer than a statement may are each completed once, at their first attempt", () =>
  Effect.gen(function* () {
    const { url, sql } = yield* TestDatabase
    yield* Ledger.open(sql, 12)
    yield* sql.unsafe(`create function take_long() returns trigger language plpgsql as $$ begin
      perform pg_sleep(0.5);
      return new;
    end $$`)
    yield* sql.unsafe("create trigger take_long before update on invoices for each row execute function take_long()")
    const settings = { DATABASE_POOL_SIZE: "2" }
    yield* Effect.all([Program.start("worker", url, settings), Program.start("worker", url, settings)], {
      concurrency: 2
    })
    yield* Ledger.scheduleAll(sql, Array.range(1, 12))
    yield* Ledger.untilCompleted(sql)
    assert.deepStrictEqual(yield* Ledger.balance(sql), Ledger.allCompletedOnce(12))
  }).pipe(alone)
)

it.live("A worker with nothing to do rests, also while a deletion of another outlasts its lease", () =>
  Effect.gen(function* () {
    const { url, sql, feeder } = yield* blocked(1, 1)
    yield* Program.start("worker", url)
    const commits = Effect.map(
      sql<{ count: number }>`
        select xact_commit::integer as count from pg_stat_database where datname = current_database()`,
      ([row]) => row?.count ?? 0
    )
    yield* sql`select pg_sleep(1)`
    const before = yield* commits
    yield* sql`select pg_sleep(1.5)`
    assert.isBelow((yield* commits) - before, 200)
    yield* feeder.release
    yield* Ledger.untilCompleted(sql)
    assert.deepStrictEqual(yield* Ledger.balance(sql), Ledger.allCompletedOnce(1))
  }).pipe(alone)
)
