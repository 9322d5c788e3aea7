/** A worker of a test: tasks in memory whose run the test decides upon, and a scheduler whose calls fail, hang, or end it. */
import { Clock, Effect, Layer } from "effect"
import * as MemoryScheduler from "../../../src/deletions/MemoryScheduler.ts"
import { type Claim, Scheduler, SchedulerUnavailable, type TaskFailed } from "../../../src/deletions/Scheduler.ts"
import * as Worker from "../../../src/deletions/Worker.ts"
import { delay, delivery, inItsOwnTime, scheduled, start } from "./tasks.ts"
import { outcomeOf } from "./invoiceFixture.ts"

export type Call = "due" | "start" | "run" | "fail" | "postpone"

/** What happens around the calls of a worker, and in the tasks that it runs. */
export interface Faults {
  readonly around: <A, E>(call: Call, effect: Effect.Effect<A, E>) => Effect.Effect<A, E | SchedulerUnavailable>
  readonly task?: (claim: Claim) => Effect.Effect<void, TaskFailed>
}

export const faulty = (
  scheduler: Scheduler["Service"],
  { around, task = () => Effect.void }: Faults
): Scheduler["Service"] => ({
  ...scheduler,
  due: (limit) => around("due", scheduler.due(limit)),
  start: (given) => around("start", scheduler.start(given)),
  run: (claim) => around("run", Effect.andThen(task(claim), scheduler.run(claim))),
  fail: (claim, reason, after) => around("fail", scheduler.fail(claim, reason, after)),
  postpone: (claim, after) => around("postpone", scheduler.postpone(claim, after))
})

export const unavailable = Effect.fail(new SchedulerUnavailable({ message: "The store is down" }))

/** A run of a task that was started: the key of its delivery, its attempt, and the seconds since the test began. */
interface Run {
  readonly key: string
  readonly attempt: number
  readonly at: number
}

type RunTask = (run: Run) => Effect.Effect<void, TaskFailed>

export const keysOf = (tasks: ReadonlyArray<{ readonly key: string } | Claim>) =>
  tasks.map((task) => ("key" in task ? task.key : task.idempotencyKey))

/** A test with tasks in memory, whose runs it sees. */
export const withRuns = <Step extends Effect.Effect<unknown, unknown, unknown>, A>(
  test: (runs: ReadonlyArray<Run>) => Generator<Step, A, never>,
  runTask: RunTask = () => Effect.void,
  after = delay
) =>
  Effect.suspend(() => {
    const runs: Array<Run> = []
    const record = Effect.fnUntraced(function* (_: unknown, { idempotencyKey: key, attempt }: Claim) {
      const run = { key, attempt, at: ((yield* Clock.currentTimeMillis) - start) / 1000 }
      runs.push(run)
      yield* runTask(run)
      return outcomeOf({})
    })
    return Effect.provide(
      Effect.gen(() => test(runs)),
      Layer.fresh(MemoryScheduler.layer(after, record))
    )
  }).pipe(inItsOwnTime)

/** Lets a worker see the scheduler with faults. */
export const withFaults =
  (faults: Faults) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.flatMap(Scheduler, (scheduler) => Effect.provideService(effect, Scheduler, faulty(scheduler, faults)))

/** A worker of so many fibers, until the test ends. */
export const startWorker = (slots = 2) =>
  Effect.asVoid(Effect.forkScoped(Worker.run(slots), { startImmediately: true }))

export const scheduledAll = (...keys: ReadonlyArray<string>) =>
  Effect.forEach(keys, (key) => scheduled(delivery(key)), { discard: true })
