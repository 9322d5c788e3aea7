/** Workers that are killed with -9 at every step: another takes the task over, and it runs once in effect. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { options } from "../blackbox/support/Service.ts"
import { inTime } from "../support/inTime.ts"
import { TestDatabase } from "../support/TestDatabase.ts"
import * as Gate from "./support/Gate.ts"
import * as Ledger from "./support/Ledger.ts"
import * as Program from "./support/Program.ts"

/** A worker that takes over, when it is let. */
class Successor extends Context.Service<Successor, Program.Program>()("practice-data/test/faults/Kills/Successor") {
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
  const { letGo } = yield* Gate.close(sql, gate)
  const task = yield* Ledger.schedule(sql, invoice)
  yield* Gate.areWaiting(sql, 1)
  if (committed === undefined) {
    yield* Program.kill(victim)
    // The killed worker's statement must not go on holding its locks for it.
    assert.isBelow(yield* Program.secondsOf(Gate.areWaiting(sql, 0)), inTime(2))
    yield* letGo
  } else {
    yield* victim.kill("SIGSTOP")
    yield* letGo
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
      const { letGo } = yield* Gate.close(sql, "claim")
      const task = yield* Ledger.schedule(sql, 90)
      yield* Gate.areWaiting(sql, 1)
      yield* paused.kill("SIGSTOP")
      yield* letGo
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
