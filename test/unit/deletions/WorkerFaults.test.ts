/** A store that fails its worker, a worker that is killed, and the report of each attempt. */
import { assert, it } from "@effect/vitest"
import { Array, Effect, Logger, References } from "effect"
import { TestClock } from "effect/testing"
import * as MemoryScheduler from "../../../src/deletions/MemoryScheduler.ts"
import { TaskFailed } from "../../../src/deletions/Scheduler.ts"
import { maximumAttempts } from "../../../src/deletions/Retries.ts"
import { report, runMetrics } from "../../../src/deletions/Report.ts"
import { delay, delivery, inItsOwnTime, isIdle, scheduled, takenOver } from "../../support/deletions/tasks.ts"
import {
  type Call,
  type Faults,
  scheduledAll,
  startWorker,
  unavailable,
  withFaults,
  withRuns
} from "../../support/deletions/workerFixture.ts"
import { samples, withRegistry } from "../../support/metrics.ts"

/** A store that can go down, for some calls or all. */
const outage = (...calls: ReadonlyArray<Call>) => {
  const state = { isDown: true, failures: 0 }
  const faults: Faults = {
    around: (call, effect) =>
      Effect.gen(function* () {
        if (!state.isDown || (calls.length > 0 && !calls.includes(call))) return yield* effect
        state.failures += 1
        return yield* unavailable
      })
  }
  return { state, faults }
}

it.effect.each([
  ["running them", ["run"], "11 seconds"],
  ["all but finding them", ["start", "run", "fail", "postpone"], "11 seconds"],
  ["everything", [], "1 second"]
] as const)("an outage of %s uses up no attempt, and then they run within $2", ([, calls, within]) =>
  withRuns(function* (runs) {
    const { state, faults } = outage(...calls)
    yield* scheduledAll("1", "2")
    yield* withFaults(faults)(startWorker(1))
    yield* TestClock.adjust("4 minutes")
    assert.isAbove(state.failures, 2 * maximumAttempts)
    assert.isEmpty(runs)
    state.isDown = false
    yield* TestClock.adjust(within)
    const attempts = runs.map(({ attempt }) => attempt)
    assert.deepStrictEqual(attempts, [1, 1])
    yield* isIdle
  })
)

/** Runs an effect, and gives what was logged of tasks. */
const logged = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const runs: Array<Readonly<Record<string, unknown>>> = []
    return effect.pipe(
      Effect.provideService(
        Logger.CurrentLoggers,
        new Set([
          Logger.make(({ fiber, logLevel }) => {
            const run = fiber.getRef(References.CurrentLogAnnotations)
            if (run["task_id"] !== undefined) runs.push({ logLevel, ...run })
          })
        ])
      ),
      Effect.as(runs)
    )
  })

it.effect("an attempt is logged once: as released by an outage, or with its counts and times", () =>
  withRuns(function* () {
    const { taskId } = yield* scheduled(delivery("one"))
    const { faults, state } = outage("run")
    const working = Effect.gen(function* () {
      yield* withFaults(faults)(startWorker(1))
      yield* TestClock.adjust("60 seconds")
      state.isDown = false
      yield* TestClock.adjust("1 second")
    })
    const [released, completed, ...others] = yield* logged(working)
    assert.deepInclude(released, { logLevel: "Info", result: "released", reason: "The store is down" })
    assert.deepInclude(completed, {
      logLevel: "Info",
      result: "completed",
      task_id: taskId,
      idempotency_key: "one",
      attempt: 1,
      ms: 0,
      late_ms: 1000,
      invoices_deleted: 0
    })
    assert.isEmpty(others)
  })
)

it.effect("a task that fails is logged each time with the reason, and as dead at last", () =>
  withRuns(
    function* () {
      yield* scheduledAll("one")
      const runs = yield* logged(Effect.andThen(startWorker(1), TestClock.adjust("1 hour")))
      const said = runs.map(({ logLevel, reason, result }) => [logLevel, result, reason].join(" "))
      assert.deepStrictEqual(said, [...Array.replicate("Warn failed no luck", 7), "Error dead no luck"])
    },
    () => Effect.fail(new TaskFailed({ message: "no luck" }))
  )
)

it.effect("attempts are logged and counted by their result", () =>
  Effect.gen(function* () {
    yield* runMetrics
    assert.strictEqual((yield* samples)['practice_data_task_runs_total{outcome="dead"}'], 0)
    const { first, second } = yield* takenOver("one")
    yield* TestClock.adjust("1 minute")
    const [completed, failed] = yield* logged(Effect.andThen(report(first, "completed"), report(second, "failed")))
    assert.deepInclude(completed, { attempt: 1, result: "completed" })
    assert.isUndefined(completed?.["takeover"])
    assert.deepInclude(failed, { attempt: 2, result: "failed", takeover: true })
    const all = yield* samples
    assert.deepInclude(all, {
      'practice_data_task_runs_total{outcome="completed"}': 1,
      'practice_data_task_runs_total{outcome="failed"}': 1,
      practice_data_task_delay_seconds_count: 1
    })
  }).pipe(Effect.provide(MemoryScheduler.layer(delay)), inItsOwnTime, withRegistry)
)
