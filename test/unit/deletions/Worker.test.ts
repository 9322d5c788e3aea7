/**
 * The worker, by a clock that the test moves: when it works and when it rests, that tasks do not depend on each other,
 * and how it stops.
 */
import { assert, it } from "@effect/vitest"
import { Arbitrary, Array, Duration, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Scheduler, TaskFailed } from "../../../src/deletions/Scheduler.ts"
import * as Worker from "../../../src/deletions/Worker.ts"
import { integer } from "../../support/arbitraries.ts"
import {
  keysOf,
  oneRound,
  options,
  withFaults,
  withRuns,
  scheduledAll,
  startWorker
} from "../../support/deletions/workerFixture.ts"
import { claimAll, delay, delivery, isIdle, scheduled } from "../../support/deletions/support.ts"

const takes = (time: Duration.Input) => () => Effect.sleep(time)

const fails = Effect.fail(new TaskFailed({ message: "No" }))

/** Deliveries, by the milliseconds from each to the next. */
const gaps = Arbitrary.array(
  Arbitrary.map(integer(0, 20), (n) => [0, 0, 1, 999, 1000, 1001, 60_000][n] ?? n * 137),
  { minLength: 1, maxLength: 30 }
)

it.effect.prop(
  "runs every task once, within 50 milliseconds after it is due, however many are due at once",
  { gaps },
  ({ gaps: given }) =>
    withRuns(function* (runs) {
      yield* startWorker
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
        assert.isAtMost(late, 0.05 + 1e-6)
      }
      yield* isIdle
    }),
  { arbitrary: { runs: 40, size: 30, maxShrinks: 100 } }
)

it("leaves two connections of its pool to the intake and to claims", () => {
  assert.deepStrictEqual(
    [1, 3, 10].map((poolSize) => Worker.optionsFor(poolSize).concurrency),
    [1, 1, 8]
  )
})

it.effect("looks for work every second, so that a task without delay runs a second late at most", () =>
  withRuns(
    function* (runs) {
      yield* startWorker
      yield* TestClock.adjust("10.2 seconds")
      yield* scheduledAll("1")
      yield* TestClock.adjust("799 millis")
      assert.isEmpty(runs)
      yield* TestClock.adjust("1 milli")
      assert.strictEqual(runs[0]?.at, 11)
    },
    undefined,
    Duration.zero
  )
)

it.effect("runs a batch with as many tasks at once as it may, and the next batch when that is done", () =>
  withRuns(function* (runs) {
    yield* scheduledAll("1", "2", "3", "4", "5", "6")
    yield* startWorker
    yield* TestClock.adjust("2 minutes")
    assert.deepStrictEqual(
      runs.map(({ at }) => at),
      [60, 60, 70, 70, 80, 90]
    )
  }, takes("10 seconds"))
)

it.effect("lets a task of another organization begin while a long batch runs", () =>
  withRuns(function* (runs) {
    yield* scheduledAll(...Array.makeBy(20, String))
    yield* TestClock.adjust("200 millis")
    yield* scheduled(delivery("other", undefined, "org_b"))
    yield* Effect.forkScoped(Worker.run({ ...options, batch: 24, concurrency: 6 }), { startImmediately: true })
    yield* TestClock.adjust("2 minutes")
    const begun = runs.find(({ key }) => key === "other")?.at ?? Infinity
    assert.isBelow(begun, 62)
    assert.lengthOf(runs, 21)
  }, takes("1 second"))
)

it.effect.each([
  [false, [60, 109, 111]],
  [true, [60, 109, 180]]
] as const)(
  "claims for others as long as a round takes, which ends after 200 heartbeats if an isolated task waits: %s",
  ([hasIsolated, expected]) =>
    withRuns(
      function* (runs) {
        yield* scheduledAll("long")
        for (const [owner, pause] of [
          ["org_b", "49 seconds"],
          ["org_c", "2 seconds"]
        ] as const) {
          yield* TestClock.adjust(pause)
          yield* scheduled(delivery("1", undefined, owner))
        }
        yield* TestClock.adjust("9 seconds")
        const scheduler = { ...(yield* Scheduler), hasIsolated: Effect.succeed(hasIsolated) }
        yield* Effect.provideService(startWorker, Scheduler, scheduler)
        yield* TestClock.adjust("2 minutes")
        assert.deepStrictEqual(
          runs.map(({ at }) => Math.floor(at)),
          [...expected]
        )
      },
      ({ at }) => Effect.sleep(at === 60 ? "2 minutes" : 0)
    )
)

it.effect("leaves slots to others, though all tasks of some organizations run by themselves for long", () =>
  withRuns(function* (runs) {
    yield* Effect.forkScoped(Worker.run({ ...options, batch: 64, concurrency: 8 }), { startImmediately: true })
    const owners = ["org_a", "org_b", "org_c", "org_d"]
    for (const owner of owners) {
      yield* Effect.forEach(Array.range(1, 5), (n) => scheduled(delivery(`${owner} ${n}`, undefined, owner)))
      yield* TestClock.adjust("10 seconds")
    }
    yield* TestClock.adjust("1 minute")
    const begun = owners.map((owner) => runs.find(({ key }) => key.startsWith(owner))?.at ?? 0)
    assert.deepStrictEqual(begun.map(Math.floor), [60, 70, 80, 90])
    yield* TestClock.adjust("10 minutes")
    yield* isIdle
  }, takes("50 seconds"))
)

it.effect("runs tasks of many organizations in few transactions, and those of one with many in others", () =>
  withRuns(function* () {
    const scheduler = yield* Scheduler
    const transactions: Array<ReadonlyArray<string>> = []
    const recording: Scheduler["Service"] = {
      ...scheduler,
      run: (claims) => {
        transactions.push(claims.map(({ organization }) => organization))
        return scheduler.run(claims)
      }
    }
    yield* scheduledAll(...Array.makeBy(10, String))
    yield* Effect.forEach(Array.range(1, 10), (index) => scheduled(delivery("1", undefined, `org_${index}`)))
    yield* TestClock.adjust(delay)
    yield* Effect.provideService(oneRound({ ...options, batch: 20, concurrency: 6 }), Scheduler, recording)
    const shared = transactions.filter((owners) => !owners.includes("org_a"))
    assert.deepStrictEqual(
      shared.map(({ length }) => length),
      [4, 4, 2]
    )
    assert.sameMembers(transactions.filter((owners) => owners.includes("org_a")).flat(), Array.replicate("org_a", 10))
  })
)

it.effect("keeps a task that takes long for itself, and has it counted once", () =>
  withRuns(function* (runs) {
    yield* scheduledAll("1", "2", "3")
    yield* startWorker
    yield* startWorker
    yield* TestClock.adjust("1 hour")
    assert.strictEqual(runs.length, 3)
    yield* isIdle
  }, takes("10 minutes"))
)

it.effect("runs each task of a batch that failed, or met a bug, by itself, after it has renewed their leases", () =>
  withRuns(
    function* () {
      yield* scheduledAll("fails", "2", "meets a bug", "4")
      yield* TestClock.adjust(delay)
      const calls: Array<string> = []
      const recorded = withFaults({
        around: (call, effect) =>
          Effect.andThen(
            Effect.sync(() => calls.push(call)),
            effect
          )
      })
      assert.strictEqual(yield* recorded(oneRound({ ...options, concurrency: 1 })), 4)
      const during = calls.slice(calls.indexOf("run"), calls.lastIndexOf("run") + 1)
      assert.deepStrictEqual(during, ["run", "renew", "run", "fail", "run", "run", "fail", "run"])
      assert.isEmpty(yield* claimAll())
      yield* TestClock.adjust("5 seconds")
      const again = yield* claimAll()
      assert.sameMembers(keysOf(again), ["fails", "meets a bug"])
      for (const { attempt } of again) assert.strictEqual(attempt, 2)
    },
    ({ key }) => (key === "fails" ? fails : key === "meets a bug" ? Effect.die(new Error("A bug")) : Effect.void)
  )
)

/** A worker that runs a task at a time, in a scope of its own, and its stop, which is under way. */
const stopping = Effect.fnUntraced(function* (runFor: Duration.Input, batch = 1) {
  const scope = yield* Scope.make()
  yield* Layer.buildWithScope(Worker.layer({ ...options, batch, concurrency: 1 }), scope)
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

it.effect("releases what it has not started when it stops, the attempts not counted", () =>
  withRuns(
    function* (runs) {
      yield* scheduledAll("fails", "takes long", "3", "4")
      const stop = yield* stopping("61 seconds", 4)
      yield* TestClock.adjust("5 seconds")
      yield* Fiber.join(stop)
      assert.notIncludeMembers(keysOf(runs), ["3", "4"])
      const again = yield* claimAll()
      assert.sameMembers(keysOf(again.filter(({ attempt }) => attempt === 1)), ["3", "4"])
    },
    // The first fails the batch, and then itself.
    ({ key }) => (key === "fails" ? fails : Effect.sleep(key === "takes long" ? "5 seconds" : 0))
  )
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
