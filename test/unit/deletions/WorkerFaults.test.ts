/** A store that fails its worker, a worker that is killed, and the report of each attempt: an outage uses up no attempt, and a task runs exactly once in effect with any number of workers, killed at any point. */
import { assert, it } from "@effect/vitest"
import { Array, Duration, Effect, Logger, References } from "effect"
import { TestClock } from "effect/testing"
import * as MemoryScheduler from "../../../src/deletions/MemoryScheduler.ts"

import { SchedulerUnavailable, TaskFailed } from "../../../src/deletions/Scheduler.ts"
import { maximumAttempts } from "../../../src/deletions/Retries.ts"
import { report, runMetrics } from "../../../src/deletions/WorkerTasks.ts"
import * as Worker from "../../../src/deletions/Worker.ts"
import {
  claimAll,
  delay,
  delivery,
  inItsOwnTime,
  isIdle,
  scheduled,
  takenOver
} from "../../support/deletions/support.ts"
import {
  type Call,
  type Faults,
  keysOf,
  oneRound,
  options,
  scheduledAll,
  unavailable,
  withFaults,
  withRuns
} from "../../support/deletions/workerFixture.ts"
import { samples, withRegistry } from "../../support/metrics.ts"

/** Each run of tasks ends with this instead. */
const eachRun = (end: Effect.Effect<never, SchedulerUnavailable>) =>
  withFaults({ around: (call, effect) => (call === "run" ? end : effect) })

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

it.effect("of a worker that was killed, 64 tasks are done within 2 seconds, beside 20 others a second", () =>
  withRuns(
    function* (runs) {
      const product = Worker.optionsFor(10)
      const keys = Array.makeBy(64, String)
      yield* scheduledAll(...keys)
      const arrivals = Array.makeBy(60, (index) => `load ${index}`)
      for (const key of arrivals) {
        yield* TestClock.adjust("50 millis")
        yield* scheduledAll(key)
      }
      yield* TestClock.adjust(Duration.subtract(delay, Duration.seconds(3)))
      yield* Effect.exit(eachRun(Effect.interrupt)(oneRound(product)))
      assert.isEmpty(yield* claimAll())
      yield* Effect.forkScoped(Worker.run(product), { startImmediately: true })
      yield* TestClock.adjust("1900 millis")
      assert.includeMembers(keysOf(runs), keys)
      yield* TestClock.adjust("1 minute")
      assert.lengthOf(runs, 64 + arrivals.length)
      yield* isIdle
    },
    () => Effect.sleep("100 millis")
  )
)

it.effect("tasks that expire while a worker runs others start before those of its own that still wait", () =>
  withRuns(
    function* (runs) {
      yield* scheduledAll("1", "2")
      yield* TestClock.adjust("900 millis")
      yield* scheduledAll("fails", "4", "5", "6")
      yield* TestClock.adjust(Duration.subtract(delay, Duration.millis(900)))
      yield* Effect.exit(eachRun(Effect.interrupt)(oneRound()))
      yield* Effect.forkScoped(Worker.run({ ...options, concurrency: 1 }), { startImmediately: true })
      yield* TestClock.adjust("7 seconds")
      assert.deepStrictEqual(keysOf(runs.slice(0, 7)), ["fails", "fails", "4", "1", "2", "5", "6"])
    },
    // It fails those with which it runs, so that these are run one after the other.
    ({ key }) => (key === "fails" ? Effect.fail(new TaskFailed({ message: "No" })) : Effect.sleep("1 second"))
  )
)

it.effect.each([
  ["running them", ["run"], "2 seconds"],
  ["all but claiming them", ["run", "release", "renew"], "2 seconds"],
  ["everything", [], "500 millis"]
] as const)(
  "an outage of %s uses up no attempt of tasks that share a transaction, however long, and then they run within $2",
  ([, calls, within]) =>
    withRuns(function* (runs) {
      const { state, faults } = outage(...calls)
      yield* scheduledAll("1", "2")
      const worker = Worker.run({ ...options, concurrency: 1 })
      yield* withFaults(faults)(Effect.forkScoped(worker, { startImmediately: true }))
      yield* TestClock.adjust("5 minutes")
      assert.isAbove(state.failures, 10 * maximumAttempts)
      // Until time passes, nothing is tried again.
      const { failures } = state
      yield* Effect.replicateEffect(Effect.yieldNow, 1000)
      assert.isAtMost(state.failures, failures + 2)
      assert.isEmpty(runs)
      state.isDown = false
      yield* TestClock.adjust(within)
      assert.deepStrictEqual(
        runs.map(({ attempt }) => attempt),
        [1, 1]
      )
      yield* isIdle
    })
)

it.effect("a task that kills its process is dead after 8 attempts, and takes none of its batch with it", () =>
  withRuns(
    function* (runs) {
      yield* scheduledAll("kills", "2", "3", "4")
      yield* TestClock.adjust(delay)
      const untilKilled = Effect.exit(oneRound({ ...options, concurrency: 1 }))
      yield* Effect.replicateEffect(Effect.andThen(untilKilled, TestClock.adjust(options.lease)), 3 * maximumAttempts)
      yield* isIdle
      assert.sameMembers(keysOf(runs.filter(({ key }) => key !== "kills")), ["2", "3", "4"])
    },
    ({ key }) => (key === "kills" ? Effect.interrupt : Effect.void)
  )
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

it.effect(
  "an attempt is logged once: as released if an outage ended it, else with its counts, duration and delay",
  () =>
    withRuns(function* () {
      const { taskId } = yield* scheduled(delivery("one"))
      yield* TestClock.adjust("61 seconds")
      const rounds = Effect.andThen(eachRun(unavailable)(oneRound()), oneRound())
      const [released, completed, ...others] = yield* logged(rounds)
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
      assert.isUndefined(completed?.["takeover"])
      assert.isEmpty(others)
    })
)

it.effect("a task that fails is logged each time with the reason, and as dead at last", () =>
  withRuns(
    function* () {
      yield* scheduledAll("one")
      yield* TestClock.adjust(delay)
      const runs = yield* logged(
        Effect.repeat(Effect.andThen(oneRound(), TestClock.adjust("10 minutes")), { times: maximumAttempts + 1 })
      )
      assert.deepStrictEqual(
        runs.map(({ logLevel, reason, result }) => [logLevel, result, reason]),
        [...Array.replicate(["Warn", "failed", "no luck"], maximumAttempts - 1), ["Error", "dead", "no luck"]]
      )
    },
    () => Effect.fail(new TaskFailed({ message: "no luck" }))
  )
)

const outcome = {
  invoices: { deleted: 1, not_found: 2, clinic_mismatch: 3, client_mismatch: 4 },
  invoice_lines: { deleted: 5, not_found: 6, invoice_mismatch: 7, clinic_mismatch: 8 },
  lines_of_invoices: 9
}

it.effect(
  "attempts and takeovers are logged and counted by their result, items of completed tasks by their verdict",
  () =>
    Effect.gen(function* () {
      yield* runMetrics
      assert.strictEqual((yield* samples)['practice_data_task_runs_total{outcome="dead"}'], 0)
      const { first, second } = yield* takenOver("one")
      yield* TestClock.adjust("1 minute")
      const [completed, failed] = yield* logged(
        Effect.andThen(report(first, "completed", { outcome }), report(second, "failed"))
      )
      assert.deepInclude(completed, { attempt: 1, result: "completed" })
      assert.isUndefined(completed?.["takeover"])
      assert.deepInclude(failed, { attempt: 2, result: "failed", takeover: true })
      const all = yield* samples
      const { invoice_lines, invoices, lines_of_invoices } = outcome
      const counts = { invoices, invoice_lines, lines_of_invoices: { deleted: lines_of_invoices } }
      for (const [kind, verdicts] of Object.entries(counts)) {
        for (const [verdict, count] of Object.entries(verdicts))
          assert.strictEqual(all[`practice_data_task_items_total{kind="${kind}",verdict="${verdict}"}`], count)
      }
      assert.deepInclude(all, {
        'practice_data_task_runs_total{outcome="completed"}': 1,
        'practice_data_task_runs_total{outcome="failed"}': 1,
        practice_data_task_attempts_total: 2,
        practice_data_task_takeovers_total: 1,
        practice_data_task_delay_seconds_count: 1
      })
    }).pipe(Effect.provide(MemoryScheduler.layer(delay)), inItsOwnTime, withRegistry)
)
