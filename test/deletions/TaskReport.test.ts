/** What is told of an attempt that ended: to observers, and in a line of the log. */
import { assert, it } from "@effect/vitest"
import { Effect, Logger, References } from "effect"
import { TestClock } from "effect/testing"
import { maximumAttempts, TaskFailed } from "../../src/deletions/Task.ts"
import { TaskObservers, type TaskRun } from "../../src/observability/TaskRun.ts"
import { delay, inItsOwnTime, takenOver } from "./support.ts"
import { oneRound, scheduledAll, withFaults, withRuns } from "./workerFixture.ts"
import { unavailable } from "./faulty.ts"
import { report } from "../../src/deletions/TaskRuns.ts"
import { Scheduler } from "../../src/deletions/Scheduler.ts"

/** Runs an effect, and gives what observers saw and the levels of what was logged of tasks. */
const told = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const runs: Array<TaskRun> = []
    const lines: Array<string> = []
    return effect.pipe(
      Effect.provideService(TaskObservers, [(run) => void runs.push(run)]),
      Effect.provideService(
        Logger.CurrentLoggers,
        new Set([
          Logger.make(({ fiber, logLevel }) => {
            const { result, task_id: task } = fiber.getRef(References.CurrentLogAnnotations)
            if (task !== undefined) lines.push(`${logLevel} ${String(result)}`)
          })
        ])
      ),
      Effect.map((result) => ({ result, runs, lines }))
    )
  })

it.effect("a task that runs is told once, with what it deleted, how long it took and how late it was", () =>
  withRuns(() =>
    Effect.gen(function* () {
      const [taskId = ""] = yield* scheduledAll("one")
      yield* TestClock.adjust("61 seconds")
      const { lines, runs } = yield* told(oneRound())
      assert.deepStrictEqual(lines, ["Info completed"])
      assert.lengthOf(runs, 1)
      assert.deepInclude(runs[0], {
        taskId,
        idempotencyKey: "one",
        attempt: 1,
        result: "completed",
        isTakeover: false,
        duration: 0,
        late: 1000
      })
      assert.strictEqual(runs[0]?.outcome?.invoices.deleted, 0)
    })
  )
)

it.effect("a task that fails is told each time with the reason, and as dead at last", () =>
  withRuns(
    () =>
      Effect.gen(function* () {
        yield* scheduledAll("one")
        yield* TestClock.adjust(delay)
        const { lines, runs } = yield* told(
          Effect.repeat(Effect.andThen(oneRound(), TestClock.adjust("10 minutes")), { times: maximumAttempts + 1 })
        )
        const failures = Array.from({ length: maximumAttempts - 1 }, () => "failed")
        assert.deepStrictEqual(
          runs.map(({ result }) => result),
          [...failures, "dead"]
        )
        assert.deepStrictEqual(lines, [...failures.map((result) => `Warn ${result}`), "Error dead"])
        assert.isTrue(runs.every(({ reason }) => reason === "no luck"))
      }),
    () => Effect.fail(new TaskFailed({ message: "no luck" }))
  )
)

it.effect("an attempt that an outage ended is told as given back", () =>
  withRuns(() =>
    Effect.gen(function* () {
      yield* scheduledAll("one")
      yield* TestClock.adjust(delay)
      const down = withFaults({ around: (call, effect) => (call === "run" ? unavailable : effect) })
      const { lines, runs } = yield* told(down(oneRound()))
      assert.deepStrictEqual([runs.map(({ result }) => result), lines], [["released"], ["Info released"]])
    })
  )
)

it.effect("a task that was taken over says so", () =>
  Effect.gen(function* () {
    const { first, second } = yield* takenOver("one")
    const { runs } = yield* told(
      Effect.andThen(report(first, { result: "superseded" }), report(second, { result: "completed" }))
    )
    assert.deepStrictEqual(
      runs.map(({ attempt, isTakeover, result }) => [attempt, isTakeover, result]),
      [
        [1, false, "superseded"],
        [2, true, "completed"]
      ]
    )
  }).pipe(Effect.provide(Scheduler.layerMemory(delay)), inItsOwnTime)
)
