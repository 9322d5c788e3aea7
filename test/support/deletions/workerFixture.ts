/** Tasks in memory whose run a test sees and decides upon, for the tests of the worker. */
import { Clock, Duration, Effect, Layer, type Scope } from "effect"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import type { Claim, TaskFailed } from "../../../src/deletions/Task.ts"
import * as Worker from "../../../src/deletions/Worker.ts"
import { type Faults, faulty } from "./faulty.ts"
import { delay, delivery, inItsOwnTime, scheduled, start } from "./support.ts"
import { outcomeOf } from "./invoiceFixture.ts"

/** How the workers of tests work. */
export const options: Worker.Options = { batch: 4, concurrency: 2, lease: Duration.millis(1500) }

/** A run of a task that was started: which task, which attempt, and how many seconds after the test began. */
export interface Run {
  readonly taskId: string
  readonly attempt: number
  readonly at: number
}

/** What tasks do when they run. */
export type RunTask = (run: Run) => Effect.Effect<void, TaskFailed>

const succeeds: RunTask = () => Effect.void

/** Tests with tasks in memory. The test sees their runs. */
export const withRuns = <A, E, R>(
  test: (runs: ReadonlyArray<Run>) => Effect.Effect<A, E, R>,
  runTask: RunTask = succeeds,
  after = delay
) =>
  Effect.suspend(() => {
    const runs: Array<Run> = []
    const record = Effect.fnUntraced(function* (_: unknown, { taskId, attempt }: Claim) {
      const run = { taskId, attempt, at: ((yield* Clock.currentTimeMillis) - start) / 1000 }
      runs.push(run)
      yield* runTask(run)
      return outcomeOf({})
    })
    return Effect.provide(test(runs), Layer.fresh(Scheduler.layerMemory(after, record)))
  }).pipe(inItsOwnTime)

/** Lets a worker see the scheduler with faults. */
export const withFaults =
  (faults: Faults) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.flatMap(Scheduler, (scheduler) => Effect.provideService(effect, Scheduler, faulty(scheduler, faults)))

/** A worker, until the test ends. */
export const startWorker: Effect.Effect<void, never, Scheduler | Scope.Scope> = Effect.asVoid(
  Effect.forkScoped(Worker.run(options), { startImmediately: true })
)

/** A round of a new worker. */
export const oneRound = (with_: Worker.Options = options) =>
  Effect.flatMap(Worker.makeRound(with_), ({ round }) => round)

/** Schedules tasks, whose ids it gives. */
export const scheduledAll = (...keys: ReadonlyArray<string>) =>
  Effect.forEach(keys, (key) => Effect.map(scheduled(delivery(key)), ({ taskId }) => taskId))
