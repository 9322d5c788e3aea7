/**
 * The worker, by a clock that the test moves: when it works and when it rests, that tasks do not depend on each other,
 * and how it stops.
 */
import { assert, it } from "@effect/vitest"
import { Arbitrary, Array, Duration, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { TaskFailed } from "../../../src/deletions/Scheduler.ts"
import * as Worker from "../../../src/deletions/Worker.ts"
import { integer } from "../../support/arbitraries.ts"
import { keysOf, withRuns, scheduledAll, startWorker } from "../../support/deletions/workerFixture.ts"
import { claimAll, delivery, isIdle, scheduled } from "../../support/deletions/tasks.ts"

const takes = (time: Duration.Input) => () => Effect.sleep(time)

const firstRuns: Readonly<Record<string, Effect.Effect<void, TaskFailed>>> = {
  fails: Effect.fail(new TaskFailed({ message: "No" })),
  "meets a bug": Effect.die(new Error("A bug"))
}

/** Deliveries, by the milliseconds from each to the next. */
const gaps = Arbitrary.array(
  Arbitrary.map(integer(0, 20), (n) => [0, 0, 1, 999, 1000, 1001, 60_000][n] ?? n * 137),
  { minLength: 1, maxLength: 30 }
)

it.effect.prop(
  "runs every task once, within half a second after it is due, however many are due at once",
  { gaps },
  ({ gaps: given }) =>
    withRuns(function* (runs) {
      yield* startWorker()
      const due = new Map<string, number>()
      let at = 60
      for (const [index, gap] of given.entries()) {
        yield* TestClock.adjust(gap)
        at += gap / 1000
        due.set(`${index}`, at)
        yield* scheduledAll(`${index}`)
      }
      yield* TestClock.adjust("2 minutes")
      assert.sameMembers(keysOf(runs), [...due.keys()])
      for (const task of runs) {
        const late = task.at - (due.get(task.key) ?? task.at)
        assert.isAtLeast(late, -1e-6)
        assert.isAtMost(late, 0.5 + 1e-6)
      }
      yield* isIdle
    }),
  { arbitrary: { runs: 15, size: 30, maxShrinks: 100 } }
)

it("leaves two connections of its pool to the intake and to its short statements", () => {
  assert.deepStrictEqual([1, 3, 10].map(Worker.slotsFor), [1, 1, 8])
})

it.effect("runs as many tasks at once as it may", () =>
  withRuns(function* (runs) {
    yield* scheduledAll("1", "2", "3", "4")
    yield* Effect.forEach(["1", "2"], (key) => scheduled(delivery(key, undefined, "org_b")))
    yield* startWorker()
    yield* TestClock.adjust("2 minutes")
    const starts = runs.map(({ at }) => Math.floor(at))
    assert.deepStrictEqual(starts, [60, 60, 70, 70, 80, 90])
  }, takes("10 seconds"))
)

it.effect("leaves slots to others, though all tasks of some organizations take long", () =>
  withRuns(function* (runs) {
    yield* startWorker(8)
    const owners = ["org_a", "org_b", "org_c", "org_d"]
    for (const owner of owners) {
      yield* Effect.forEach(Array.range(1, 5), (n) => scheduled(delivery(`${owner} ${n}`, undefined, owner)))
      yield* TestClock.adjust("10 seconds")
    }
    yield* TestClock.adjust("1 minute")
    const begun = owners.map((owner) => runs.find(({ key }) => key.startsWith(owner))?.at ?? 0)
    assert.deepStrictEqual(begun.map(Math.floor), [60, 70, 80, 90])
    yield* TestClock.adjust("4 minutes")
    yield* isIdle
  }, takes("50 seconds"))
)

it.effect("keeps a task that takes long for itself, and has it counted once", () =>
  withRuns(function* (runs) {
    yield* scheduledAll("1", "2", "3")
    yield* startWorker()
    yield* startWorker()
    yield* TestClock.adjust("5 minutes")
    assert.strictEqual(runs.length, 3)
    yield* isIdle
  }, takes("2 minutes"))
)

it.effect("tries a task that failed, or met a bug, again", () =>
  withRuns(
    function* (runs) {
      yield* scheduledAll("fails", "2", "meets a bug", "4")
      yield* startWorker()
      yield* TestClock.adjust("66 seconds")
      const again = runs.filter(({ attempt }) => attempt === 2)
      assert.sameMembers(keysOf(again), Object.keys(firstRuns))
    },
    ({ attempt, key }) => (attempt === 1 ? firstRuns[key] : undefined) ?? Effect.void
  )
)

/** A worker that runs a task at a time, in a scope of its own, and its stop, which is under way. */
const stopping = Effect.fnUntraced(function* (runFor: Duration.Input) {
  const scope = yield* Scope.make()
  yield* Layer.buildWithScope(Worker.layer(1), scope)
  yield* TestClock.adjust(runFor)
  return yield* Effect.forkScoped(Scope.close(scope, Exit.void), { startImmediately: true })
})

it.effect("stops at once while it rests, and works no more", () =>
  withRuns(function* (runs) {
    yield* scheduledAll("1")
    const stop = yield* stopping("30.5 seconds")
    yield* Fiber.join(stop)
    yield* TestClock.adjust("1 hour")
    assert.isEmpty(runs)
  })
)

it.effect("finishes the task that it runs when it stops, and takes no other", () =>
  withRuns(function* (runs) {
    yield* scheduledAll("1", "2")
    const stop = yield* stopping("61 seconds")
    yield* TestClock.adjust("3.9 seconds")
    assert.isUndefined(stop.pollUnsafe())
    yield* TestClock.adjust("100 millis")
    yield* Fiber.join(stop)
    yield* TestClock.adjust("1 hour")
    assert.deepStrictEqual([keysOf(runs), keysOf(yield* claimAll())], [["1"], ["2"]])
  }, takes("5 seconds"))
)

it.effect("has stopped after 10 seconds, whatever its task does", () =>
  withRuns(
    function* () {
      yield* scheduledAll("1")
      const stop = yield* stopping("61 seconds")
      yield* TestClock.adjust("10 seconds")
      assert.isDefined(stop.pollUnsafe())
    },
    () => Effect.never
  )
)
