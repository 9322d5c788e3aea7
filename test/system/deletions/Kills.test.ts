/**
 * Workers that are killed with -9 or paused in the middle of a deletion: each task runs once in effect. `npm run faults` kills
 * intakes and Postgres, too.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { openTransaction, waiting } from "../../support/deletions/sessions.ts"
import { inTime } from "../../support/inTime.ts"
import * as Ledger from "./Ledger.ts"
import * as Program from "../../support/Program.ts"
import { live } from "../../support/tries.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** A deletion waits halfway for an advisory lock, while the test holds it. */
const gated = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  yield* Ledger.open(sql, 1000)
  yield* sql.unsafe(`create function pass_gate() returns trigger language plpgsql as $$ begin
    perform pg_advisory_xact_lock_shared(1);
    return new;
  end $$`)
  yield* sql`create trigger gate before update on invoice_lines for each row execute function pass_gate()`
})

/** Waits until so many backends wait at the closed gate. */
const areWaiting = (count: number) =>
  Effect.flatMap(TestDatabase, ({ sql }) => waiting(sql, "advisory", (found) => found === count))

/** Asserts that something takes at most so many seconds. */
const isWithin = <E, R>(seconds: number, effect: Effect.Effect<void, E, R>) =>
  Effect.map(Effect.timed(effect), ([took]) => assert.isBelow(Duration.toSeconds(took), inTime(seconds)))

let scheduled = 0

/** Schedules a task for an invoice that no other one names. */
const newTask = Effect.flatMap(TestDatabase, ({ sql }) => Ledger.schedule(sql, ++scheduled))

/** A worker in the middle of a deletion, beside another one that is paused until it may take over. */
const halfway = Effect.gen(function* () {
  const { sql, url } = yield* TestDatabase
  const successor = yield* Ledger.start("worker", url)
  yield* successor.kill("SIGSTOP")
  const worker = yield* Ledger.start("worker", url)
  const gate = yield* openTransaction(sql, sql`select pg_advisory_xact_lock(1)`)
  const task = yield* newTask
  yield* areWaiting(1)
  return { sql, worker, gate, task, resumed: successor.kill("SIGCONT") }
})

const services = Layer.provideMerge(Layer.effectDiscard(gated), TestDatabase.layer)

layer(services, live)("A worker in the middle of a deletion", (it) => {
  it.effect("that is killed leaves a task that another completes within 2 s, once", () =>
    Effect.gen(function* () {
      const { gate, resumed, sql, task, worker } = yield* halfway
      yield* Program.kill(worker)
      // The killed worker's statement must not go on holding its locks for it.
      yield* isWithin(2, areWaiting(0))
      yield* gate.commit
      yield* resumed
      yield* isWithin(2, Ledger.reaches(sql, task, "completed"))
      // By the time a later task is completed, the workers would have run this one again.
      yield* Ledger.reaches(sql, yield* newTask, "completed")
      assert.deepStrictEqual(yield* Ledger.entryOf(sql, task), Ledger.completedOnce(2))
      assert.isEmpty(yield* sql`select from rewrites`)
    })
  )

  it.effect("that is paused leaves a task that another completes within 3 s", () =>
    Effect.gen(function* () {
      const { gate, resumed, sql, task, worker } = yield* halfway
      yield* worker.kill("SIGSTOP")
      yield* gate.commit
      yield* resumed
      yield* isWithin(3, Ledger.reaches(sql, task, "completed"))
    })
  )
})
