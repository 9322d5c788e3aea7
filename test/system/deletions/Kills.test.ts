/**
 * Workers that are killed with -9 at every step: another takes the task over, and it runs once in effect.
 *
 * @module-tag long
 */
import { assert, it as test, layer } from "@effect/vitest"
import { Array, Context, Effect, Layer, Schedule } from "effect"
import { eventually } from "../../support/eventually.ts"
import { options } from "../../support/Service.ts"
import type { PgClient } from "@effect/sql-pg"
import { inTime } from "../../support/inTime.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import * as Gate from "../../support/Gate.ts"
import * as Ledger from "../../support/Ledger.ts"
import * as Program from "../../support/Program.ts"

/** A worker that takes over, when it is let. */
class Successor extends Context.Service<Successor, Program.Program>()(
  "practice-data/test/system/deletions/Kills/Successor"
) {
  static readonly layer = Layer.effect(
    Successor,
    Effect.gen(function* () {
      const { url, sql } = yield* TestDatabase
      yield* Ledger.open(sql, 100)
      yield* Gate.install(sql)
      return yield* Program.start("worker", url)
    })
  ).pipe(Layer.provideMerge(TestDatabase.layer))
}

const steps = [
  { step: "before its claim is committed", gate: "claim", committed: undefined, attempts: 1 },
  { step: "after its claim is committed", gate: "claim", committed: "running", attempts: 2 },
  { step: "in the middle of the deletion", gate: "deletion", committed: undefined, attempts: 2 },
  { step: "after the deletion is committed", gate: "deletion", committed: "completed", attempts: 1 }
] as const

/** Kills a worker that is held at a gate: there and then, or when what it is doing was committed and it knows nothing of it. */
const killAt = Effect.fnUntraced(function* ({ gate, committed }: (typeof steps)[number], invoice: number) {
  const { url, sql } = yield* TestDatabase
  const successor = yield* Successor
  yield* successor.kill("SIGSTOP")
  const victim = yield* Program.start("worker", url)
  const { release } = yield* Gate.close(sql, gate)
  const task = yield* Ledger.schedule(sql, invoice)
  yield* Gate.areWaiting(sql, 1)
  if (committed === undefined) {
    yield* Program.kill(victim)
    // The killed worker's statement must not go on holding its locks for it.
    assert.isBelow(yield* Program.secondsOf(Gate.areWaiting(sql, 0)), inTime(2))
    yield* release
  } else {
    yield* victim.kill("SIGSTOP")
    yield* release
    yield* Ledger.reaches(sql, task, committed)
    yield* Program.kill(victim)
  }
  yield* successor.kill("SIGCONT")
  return task
})

layer(Successor.layer, options)("A worker", (it) => {
  it.effect.each(steps.map((step, index) => ({ ...step, index })))(
    "that is killed $step leaves a task that another completes within 2 s, once",
    (step) =>
      Effect.gen(function* () {
        const { sql } = yield* TestDatabase
        const task = yield* killAt(step, step.index * 2 + 1)
        assert.isBelow(yield* Program.secondsOf(Ledger.reaches(sql, task, "completed")), inTime(2))
        // By the time that a later task is done, the successor would have run the first again.
        yield* Ledger.reaches(sql, yield* Ledger.schedule(sql, step.index * 2 + 2), "completed")
        assert.deepStrictEqual(yield* Ledger.entryOf(sql, task), Ledger.completedOnce(step.attempts))
        assert.strictEqual((yield* Ledger.balance(sql))?.rewritten, 0)
      }).pipe(Effect.ensuring(Effect.flatMap(Successor, ({ kill }) => kill("SIGCONT"))))
  )

  it.effect("that is paused past its lease, while another completes its task, changes nothing when it goes on", () =>
    Effect.gen(function* () {
      const { url, sql } = yield* TestDatabase
      const successor = yield* Successor
      yield* successor.kill("SIGSTOP")
      const paused = yield* Program.start("worker", url)
      const { release } = yield* Gate.close(sql, "claim")
      const task = yield* Ledger.schedule(sql, 90)
      yield* Gate.areWaiting(sql, 1)
      yield* paused.kill("SIGSTOP")
      yield* release
      yield* successor.kill("SIGCONT")
      yield* Ledger.reaches(sql, task, "completed")
      const completed = yield* sql`select * from deletion_tasks where id = ${task}`
      yield* successor.kill("SIGSTOP")
      yield* paused.kill("SIGCONT")
      // By the time that it is done with another task, it was done with the one that it had claimed.
      yield* Ledger.reaches(sql, yield* Ledger.schedule(sql, 91), "completed")
      assert.deepStrictEqual(yield* sql`select * from deletion_tasks where id = ${task}`, completed)
      assert.deepStrictEqual(yield* Ledger.entryOf(sql, task), Ledger.completedOnce(2))
    }).pipe(Effect.ensuring(Effect.flatMap(Successor, ({ kill }) => kill("SIGCONT"))))
  )
})

/** Lets each deletion of an invoice take a while. */
const takeAWhile = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  yield* sql.unsafe(`create function take_a_while() returns trigger language plpgsql as $$ begin
    perform pg_sleep(0.1);
    return new;
  end $$`)
  yield* sql.unsafe(
    "create trigger take_a_while before update on invoices for each row execute function take_a_while()"
  )
})

const batch = 64

test.live.each([
  ["alone", 0],
  ["beside 20 others a second", 20]
] as const)("64 tasks of 0.1 s of a worker that is killed are done by another in a few seconds, %s", ([, load]) =>
  Effect.gen(function* () {
    const { url, sql } = yield* TestDatabase
    yield* Ledger.open(sql, 1000)
    yield* takeAWhile(sql)
    const [victim, successor] = yield* Effect.all([Program.start("worker", url), Program.start("worker", url)], {
      concurrency: 2
    })
    yield* successor.kill("SIGSTOP")
    const tasks = yield* Ledger.scheduleAll(sql, Array.range(1, batch))
    const ids = tasks.map(({ id }) => id)
    yield* eventually(
      "the batch is claimed",
      Effect.map(sql`select 1 from deletion_tasks where state <> 'scheduled'`, (rows) => rows.length === batch)
    )
    let next = batch
    const arrivals = Effect.suspend(() => Ledger.schedule(sql, ++next)).pipe(
      Effect.repeat(Schedule.spaced(1000 / load)),
      Effect.forkScoped
    )
    if (load > 0) yield* arrivals
    yield* successor.kill("SIGCONT")
    yield* Program.kill(victim)
    const done = eventually(
      "the batch is done",
      Effect.map(
        sql`select 1 from deletion_tasks where state = 'completed' and ${sql.in("id", ids)}`,
        (rows) => rows.length === batch
      )
    )
    // One after the other they would take 6.4 s, and two seconds are promised on a machine that has nothing else to do.
    assert.isBelow(yield* Program.secondsOf(done), inTime(3))
  }).pipe(Effect.scoped, Effect.provide(Layer.fresh(TestDatabase.layer)))
)
