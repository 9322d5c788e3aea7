/** The report of an attempt that ended: in a line of the log, and in the metrics. */
import { assert, it } from "@effect/vitest"
import { Effect, Logger, References } from "effect"
import { TestClock } from "effect/testing"
import { maximumAttempts, TaskFailed } from "../../../src/deletions/Task.ts"
import { samples, withRegistry } from "../../support/metrics.ts"
import { delay, inItsOwnTime, takenOver } from "../../support/deletions/support.ts"
import { oneRound, scheduledAll, unavailable, withFaults, withRuns } from "../../support/deletions/workerFixture.ts"
import { report, runMetrics } from "../../../src/deletions/TaskRuns.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"

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

const linesOf = (runs: ReadonlyArray<Readonly<Record<string, unknown>>>) =>
  runs.map(({ logLevel, result }) => `${String(logLevel)} ${String(result)}`)

it.effect("a task that runs is logged once, with its counts, duration and delay", () =>
  withRuns(() =>
    Effect.gen(function* () {
      const [taskId = ""] = yield* scheduledAll("one")
      yield* TestClock.adjust("61 seconds")
      const runs = yield* logged(oneRound())
      assert.deepStrictEqual(linesOf(runs), ["Info completed"])
      assert.deepInclude(runs[0], {
        task_id: taskId,
        idempotency_key: "one",
        attempt: 1,
        ms: 0,
        late_ms: 1000,
        invoices_deleted: 0
      })
      assert.isUndefined(runs[0]?.["takeover"])
    })
  )
)

it.effect("a task that fails is logged each time with the reason, and as dead at last", () =>
  withRuns(
    () =>
      Effect.gen(function* () {
        yield* scheduledAll("one")
        yield* TestClock.adjust(delay)
        const runs = yield* logged(
          Effect.repeat(Effect.andThen(oneRound(), TestClock.adjust("10 minutes")), { times: maximumAttempts + 1 })
        )
        const failures = Array.from({ length: maximumAttempts - 1 }, () => "failed")
        assert.deepStrictEqual(linesOf(runs), [...failures.map((result) => `Warn ${result}`), "Error dead"])
        assert.isTrue(runs.every(({ reason }) => reason === "no luck"))
      }),
    () => Effect.fail(new TaskFailed({ message: "no luck" }))
  )
)

it.effect("an attempt that an outage ended is logged as released", () =>
  withRuns(() =>
    Effect.gen(function* () {
      yield* scheduledAll("one")
      yield* TestClock.adjust(delay)
      const down = withFaults({ around: (call, effect) => (call === "run" ? unavailable : effect) })
      assert.deepStrictEqual(linesOf(yield* logged(down(oneRound()))), ["Info released"])
    })
  )
)

it.effect("a takeover is logged", () =>
  Effect.gen(function* () {
    const { first, second } = yield* takenOver("one")
    const runs = yield* logged(
      Effect.andThen(report(first, { result: "superseded" }), report(second, { result: "completed" }))
    )
    assert.deepInclude(runs[0], { attempt: 1, result: "superseded" })
    assert.isUndefined(runs[0]?.["takeover"])
    assert.deepInclude(runs[1], { attempt: 2, result: "completed", takeover: true })
  }).pipe(Effect.provide(Scheduler.layerMemory(delay)), inItsOwnTime)
)

const outcome = {
  invoices: { deleted: 1, not_found: 2, clinic_mismatch: 3, client_mismatch: 4 },
  invoice_lines: { deleted: 5, not_found: 6, invoice_mismatch: 7, clinic_mismatch: 8 },
  lines_of_invoices: 9
}

it.effect("attempts are counted by their result, and the items of completed tasks by their verdict", () =>
  Effect.gen(function* () {
    yield* runMetrics
    assert.strictEqual((yield* samples)['practice_data_task_runs_total{outcome="dead"}'], 0)
    const { first, second } = yield* takenOver("one")
    yield* TestClock.adjust("1 minute")
    yield* report(first, { result: "completed", outcome })
    yield* report(second, { result: "failed" })
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
  }).pipe(Effect.provide(Scheduler.layerMemory(delay)), inItsOwnTime, withRegistry)
)
