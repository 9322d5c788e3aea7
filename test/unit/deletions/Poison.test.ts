/**
 * Tasks that end each process that runs them, beside others, with any number of workers. Decisions: "Invoice deletion
 * intake": fails 8 times: dead. On paper: a task has at most 4 attempts beside others (`attemptsBesideOthers`), so at
 * most 4 of them end with a process that another task ends. Its next claim is the only one that its process holds, so
 * no other task can end that.
 */
import { assert, it } from "@effect/vitest"
import { Arbitrary, Array, Duration, Effect } from "effect"
import { TestClock } from "effect/testing"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { attemptsBesideOthers, maximumAttempts } from "../../../src/deletions/Task.ts"
import * as Worker from "../../../src/deletions/Worker.ts"
import { integer } from "../../support/arbitraries.ts"
import type { Faults } from "../../support/deletions/faulty.ts"
import { withRuns, scheduledAll, withFaults } from "../../support/deletions/workerFixture.ts"
import { isIdle } from "../../support/deletions/support.ts"

const lease = Duration.seconds(1)

/** A task: when it is delivered after the one before, how long it takes, and whether it ends its process then. */
const task = Arbitrary.all({
  gap: integer(0, 4),
  takes: integer(0, 9),
  isPoison: Arbitrary.map(integer(0, 5), (n) => n === 0)
})

const fleets = {
  tasks: Arbitrary.array(task, { minLength: 2, maxLength: 40 }),
  workers: integer(1, 4),
  batch: integer(1, 16),
  concurrency: integer(1, 5),
  restart: integer(0, 3)
}

/** Process after process of a worker, each from its start to its end. */
const processes = (
  options: Worker.Options,
  restart: Duration.Duration,
  runTask: (taskId: string) => Effect.Effect<"ends well" | "ends the process">
) =>
  Effect.suspend(() => {
    let isOver = false
    const unlessOver = Effect.suspend(() => (isOver ? Effect.interrupt : Effect.void))
    const faults: Faults = {
      around: (_, effect) => Effect.andThen(unlessOver, effect),
      task: ({ taskId }) =>
        Effect.interruptible(runTask(taskId)).pipe(
          Effect.flatMap((end) => {
            isOver ||= end === "ends the process"
            return unlessOver
          })
        )
    }
    return Effect.exit(withFaults(faults)(Worker.run(options)))
  }).pipe(Effect.andThen(Effect.sleep(restart)), Effect.forever)

it.effect.prop(
  "what ends its process each time is dead after 8 attempts, and all others are done after 5 at most",
  fleets,
  ({ tasks, workers, batch, concurrency, restart }) =>
    withRuns((runs) =>
      Effect.gen(function* () {
        const scheduler = yield* Scheduler
        const given = new Map<string, { readonly takes: Duration.Duration; readonly isPoison: boolean }>()
        const claims = new Map<string, number>()
        const counting: Scheduler["Service"] = {
          ...scheduler,
          claim: (limits, length) =>
            Effect.tap(scheduler.claim(limits, length), (all) =>
              Effect.sync(() => all.forEach(({ taskId, attempt }) => claims.set(taskId, attempt)))
            )
        }
        const runTask = (taskId: string) => {
          const { takes = Duration.zero, isPoison = false } = given.get(taskId) ?? {}
          return Effect.as(Effect.sleep(takes), isPoison ? ("ends the process" as const) : ("ends well" as const))
        }
        yield* Effect.forEach(Array.makeBy(workers, Duration.millis), (offset) =>
          Effect.sleep(offset).pipe(
            Effect.andThen(processes({ batch, concurrency, lease }, Duration.millis(restart * 700), runTask)),
            Effect.provideService(Scheduler, counting),
            Effect.forkScoped
          )
        )
        for (const [index, { gap, takes, isPoison }] of tasks.entries()) {
          yield* TestClock.adjust(gap * 130)
          const [id = ""] = yield* scheduledAll(String(index))
          given.set(id, { takes: Duration.millis(takes * 170), isPoison })
        }
        for (let wait = 0; wait < 60; wait++) {
          yield* TestClock.adjust(wait === 0 ? "1 minute" : "10 seconds")
          if ((yield* scheduler.untilDue) === undefined) break
        }
        yield* isIdle
        const innocent = [...given].filter(([, { isPoison }]) => !isPoison).map(([id]) => id)
        assert.sameMembers(
          runs.map(({ taskId }) => taskId),
          innocent
        )
        for (const [id, attempts] of claims) {
          if (innocent.includes(id)) assert.isAtMost(attempts, attemptsBesideOthers + 1)
          else assert.strictEqual(attempts, maximumAttempts)
        }
      })
    ),
  { arbitrary: { runs: 30, size: 40, maxShrinks: 100 } }
)
