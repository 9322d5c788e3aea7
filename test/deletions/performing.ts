/** Tasks in memory whose performance a test sees and decides upon, for the tests of the worker. */
import { Clock, Duration, Effect, Layer, type Scope } from "effect"
import { Scheduler } from "../../src/deletions/Scheduler.ts"
import type { Claim, TaskFailed } from "../../src/deletions/Task.ts"
import * as Worker from "../../src/deletions/Worker.ts"
import { type Faults, faulty } from "./faulty.ts"
import { delay, delivery, inItsOwnTime, scheduled, start } from "./support.ts"
import { outcomeOf } from "./world.ts"

/** How the workers of tests work. */
export const options: Worker.Options = { batch: 4, concurrency: 2, lease: Duration.millis(1500) }

/** A task that was begun: which one, in which attempt, and how many seconds after the test began. */
export interface Performance {
  readonly taskId: string
  readonly attempt: number
  readonly at: number
}

/** What tasks do when they are performed. */
export type Perform = (performance: Performance) => Effect.Effect<void, TaskFailed>

const succeeds: Perform = () => Effect.void

/** Tests with tasks in memory. The test sees what was performed. */
export const performing = <A, E, R>(
  test: (performed: ReadonlyArray<Performance>) => Effect.Effect<A, E, R>,
  perform: Perform = succeeds,
  after = delay
) =>
  Effect.suspend(() => {
    const performed: Array<Performance> = []
    const record = Effect.fnUntraced(function* (_: unknown, { taskId, attempt }: Claim) {
      const performance = { taskId, attempt, at: ((yield* Clock.currentTimeMillis) - start) / 1000 }
      performed.push(performance)
      yield* perform(performance)
      return outcomeOf({})
    })
    return Effect.provide(test(performed), Layer.fresh(Scheduler.layerMemory(after, record)))
  }).pipe(inItsOwnTime)

/** Lets a worker see the scheduler with faults. */
export const withFaults =
  (faults: Faults) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.flatMap(Scheduler, (scheduler) => Effect.provideService(effect, Scheduler, faulty(scheduler, faults)))

/** A worker, until the test ends. */
export const working: Effect.Effect<void, never, Scheduler | Scope.Scope> = Effect.asVoid(
  Effect.forkScoped(Worker.run(options), { startImmediately: true })
)

/** A round of a new worker. */
export const oneRound = (with_: Worker.Options = options) =>
  Effect.flatMap(Worker.makeRound(with_), ({ round }) => round)

/** Schedules tasks, whose ids it gives. */
export const scheduledAll = (...keys: ReadonlyArray<string>) =>
  Effect.forEach(keys, (key) => Effect.map(scheduled(delivery(key)), ({ taskId }) => taskId))
