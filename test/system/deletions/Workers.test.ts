/**
 * Several workers over one table of tasks: they share it, stop in the middle of it, and meet locks of others.
 *
 * @module-tag long
 */
import { assert, describe, it } from "@effect/vitest"
import { Array, Effect, Layer, type Scope } from "effect"
import { eventually } from "../../support/eventually.ts"
import * as Gate from "../../support/Gate.ts"
import { inTime } from "../../support/inTime.ts"
import * as Ledger from "../../support/Ledger.ts"
import * as Program from "../../support/Program.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** Gives a test a database of its own, which outlives its processes and its locks. */
const isolated = <A, E>(test: Effect.Effect<A, E, TestDatabase | Scope.Scope>) =>
  Effect.provide(Effect.scoped(test), Layer.fresh(TestDatabase.layer))

const oneAtATime = { DATABASE_POOL_SIZE: "2" }

/** Tasks of one invoice each, some of which a feeder of the records has locked, and a worker that waits for one. */
const blocked = Effect.fnUntraced(function* (tasks: number, locked: number) {
  const { url, sql } = yield* TestDatabase
  yield* Ledger.open(sql, tasks)
  const ids = Array.range(1, locked).map(Ledger.idOf)
  const feeder = yield* Gate.hold(sql, sql`select 1 from invoices where ${sql.in("id", ids)} for update`)
  yield* Ledger.scheduleAll(sql, Array.range(1, tasks))
  const worker = yield* Ledger.start("worker", url, oneAtATime)
  yield* Gate.locksAwaited(sql, 1)
  return { url, sql, worker, feeder }
})

const stopsInOrder = Effect.fnUntraced(function* (worker: Program.Program) {
  const { end, seconds } = yield* Program.stop(worker)
  assert.deepStrictEqual(end, Program.inOrder, worker.output())
  assert.isBelow(seconds, inTime(10))
})

describe.concurrent("Workers", () => {
  it.live("four of them on 800 due tasks, eight for each invoice, complete each once, and without a deadlock", () =>
    Effect.gen(function* () {
      const { url, sql } = yield* TestDatabase
      yield* Ledger.open(sql, 100)
      const workers = Array.makeBy(4, () => Ledger.start("worker", url, { DATABASE_POOL_SIZE: "4" }))
      yield* Effect.all(workers, { concurrency: 2 })
      yield* Ledger.scheduleAll(
        sql,
        Array.makeBy(800, (n) => (n % 100) + 1)
      )
      yield* Ledger.untilCompleted(sql)
      // A worker that waits longer than its lease on a busy machine may lose a task to another.
      const { attempts: _, ...expected } = Ledger.allCompletedOnce(800)
      assert.deepInclude(yield* Ledger.balance(sql), expected)
      const [database] = yield* sql`
        select deadlocks::integer as deadlocks from pg_stat_database where datname = current_database()`
      assert.deepStrictEqual(database, { deadlocks: 0 })
    }).pipe(isolated)
  )

  it.live("a stop signal in the middle of a batch leaves nothing half done, and no attempt lost", () =>
    Effect.gen(function* () {
      const { url, sql } = yield* TestDatabase
      yield* Ledger.open(sql, 3000)
      const worker = yield* Ledger.start("worker", url, oneAtATime)
      yield* Ledger.scheduleAll(sql, Array.range(1, 3000))
      yield* eventually(
        "some tasks are done",
        Effect.map(Ledger.outstanding(sql), (open) => open < 2950)
      )
      yield* stopsInOrder(worker)
      const balance = yield* Ledger.balance(sql)
      const completed = balance?.completed ?? 0
      assert.isBelow(completed, 3000)
      assert.deepStrictEqual(balance, {
        ...Ledger.allCompletedOnce(3000),
        completed,
        completions: completed,
        attempts: { 0: 3000 - completed, 1: completed }
      })
    }).pipe(isolated)
  )

  it.live("a stop signal while deletions wait for a lock loses no attempt", () =>
    Effect.gen(function* () {
      const { sql, worker, feeder } = yield* blocked(20, 3)
      yield* stopsInOrder(worker)
      yield* feeder.release
      const balance = yield* Ledger.balance(sql)
      assert.deepInclude(balance, { running: 0, early: 0, rewritten: 0, unfounded: 0, halfDone: 0 })
      // A task that was started and waited in vain had its attempt. One that was not started had none.
      const tried = yield* sql`select 1 from deletion_tasks where state <> 'completed' and attempts > 0`
      assert.isAtMost(tried.length, 3)
    }).pipe(isolated)
  )

  it.live("one keeps the tasks of its batch while one waits longer than the lease, and the other rests meanwhile", () =>
    Effect.gen(function* () {
      const { url, sql, feeder } = yield* blocked(10, 10)
      yield* Ledger.start("worker", url)
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
      assert.deepStrictEqual(yield* Ledger.balance(sql), Ledger.allCompletedOnce(10))
    }).pipe(isolated)
  )

  it.live("tasks that together take longer than a statement may are each completed at their first attempt", () =>
    Effect.gen(function* () {
      const { url, sql } = yield* TestDatabase
      yield* Ledger.open(sql, 12)
      yield* sql.unsafe(`create function take_long() returns trigger language plpgsql as $$ begin
        perform pg_sleep(0.5);
        return new;
      end $$`)
      yield* sql.unsafe("create trigger take_long before update on invoices for each row execute function take_long()")
      yield* Effect.all([Ledger.start("worker", url, oneAtATime), Ledger.start("worker", url, oneAtATime)])
      yield* Ledger.scheduleAll(sql, Array.range(1, 12))
      yield* Ledger.untilCompleted(sql)
      assert.deepStrictEqual(yield* Ledger.balance(sql), Ledger.allCompletedOnce(12))
    }).pipe(isolated)
  )
})
