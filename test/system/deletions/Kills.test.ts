/**
 * Workers that are killed with -9 at every step: each task runs once in effect. `npm run faults` kills intakes and
 * Postgres, too.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import * as Gate from "./Gate.ts"
import { inTime } from "../../support/inTime.ts"
import * as Ledger from "./Ledger.ts"
import * as Program from "../../support/Program.ts"
import { live } from "../../support/tries.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** A worker that takes over, when it may. */
class Successor extends Context.Service<Successor, Program.Program>()(
  "practice-data/test/system/deletions/Kills/Successor"
) {
  static readonly layer = Layer.effect(
    Successor,
    Effect.gen(function* () {
      const { url, sql } = yield* TestDatabase
      yield* Ledger.open(sql, 1000)
      yield* Gate.install(sql)
      return yield* Ledger.start("worker", url)
    })
  ).pipe(Layer.provideMerge(TestDatabase.layer))
}

const paused = Effect.flatMap(Successor, ({ kill }) => kill("SIGSTOP"))
const resumed = Effect.flatMap(Successor, ({ kill }) => kill("SIGCONT"))

let scheduled = 0

/** Schedules a task for an invoice that no other one names. */
const newTask = Effect.flatMap(TestDatabase, ({ sql }) => Ledger.schedule(sql, ++scheduled))

layer(Successor.layer, live)("A worker", (it) => {
  it.effect.each([
    ["before its claim is committed", "claim", undefined, 1],
    ["after its claim is committed", "claim", "running", 2],
    ["in the middle of the deletion", "deletion", undefined, 2],
    ["after the deletion is committed", "deletion", "completed", 1]
  ] as const)("killed %s leaves a task that another completes within 2 s, once", ([, gate, committed, attempts]) =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      yield* paused
      const worker = yield* Ledger.start("worker", url)
      const { commit: release } = yield* Gate.close(sql, gate)
      const task = yield* newTask
      yield* Gate.areWaiting(sql, 1)
      if (committed === undefined) {
        yield* Program.kill(worker)
        // The killed worker's statement must not go on holding its locks for it.
        assert.isBelow(yield* Program.secondsOf(Gate.areWaiting(sql, 0)), inTime(2))
        yield* release
      } else {
        // A claim is one statement, which ends without its worker.
        if (gate === "claim") yield* worker.kill("SIGSTOP")
        yield* release
        yield* Ledger.reaches(sql, task, committed)
        yield* Program.kill(worker)
      }
      yield* resumed
      assert.isBelow(yield* Program.secondsOf(Ledger.reaches(sql, task, "completed")), inTime(2))
      // By the time a later task is completed, the workers would have run this one again.
      yield* Ledger.reaches(sql, yield* newTask, "completed")
      assert.deepStrictEqual(yield* Ledger.entryOf(sql, task), Ledger.completedOnce(attempts))
      assert.strictEqual((yield* Ledger.balance(sql))?.rewritten, 0)
    }).pipe(Effect.ensuring(resumed))
  )

  it.effect("paused in the middle of a deletion leaves a task that another completes within 3 s", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      yield* paused
      const worker = yield* Ledger.start("worker", url)
      const { commit: release } = yield* Gate.close(sql, "deletion")
      const task = yield* newTask
      yield* Gate.areWaiting(sql, 1)
      yield* worker.kill("SIGSTOP")
      yield* release
      yield* resumed
      assert.isBelow(yield* Program.secondsOf(Ledger.reaches(sql, task, "completed")), inTime(3))
      yield* Program.kill(worker)
    }).pipe(Effect.ensuring(resumed))
  )
})
