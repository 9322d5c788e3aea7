/** The worker: fibers that each take a task that is due, and run it. */
import { Array, Clock, Duration, Effect, Fiber, Layer, Predicate, Ref, Result, Schedule, Semaphore } from "effect"
import { errorType } from "../observability/Tracing.ts"
import * as Loop from "../observability/Loop.ts"
import * as Report from "./Report.ts"
import * as Retries from "./Retries.ts"
import type { TaskId } from "./Marks.ts"
import { type Claim, Scheduler, type SchedulerUnavailable, TaskFailed, type TaskPostponed } from "./Scheduler.ts"

/** The tasks that are read at once. */
const most = 256

/** The time between looks for due tasks: while there is none, and since other organizations may have some by then. */
const pause = Duration.millis(500)

/** The fibers of a worker over a pool of connections, of which it leaves two to the intake and to its own short statements. */
export const slotsFor = (poolSize: number) => Math.max(1, poolSize - 2)

/**
 * The tasks that are to be run next, in turns of their organizations. Since tasks may take long, an organization takes another
 * slot only while it has fewer than are free.
 */
const makeQueue = Effect.fnUntraced(function* (slots: number) {
  const { due } = yield* Scheduler
  const mutex = yield* Semaphore.make(1)
  const running = new Set<TaskId>()
  const found = yield* Ref.make({ waiting: Array.empty<TaskId>(), lookAt: 0n })

  const isRunning = (task: TaskId) =>
    [...running].some(({ organization, taskId }) => taskId === task.taskId && organization === task.organization)
  const mayRun = (task: TaskId) =>
    [...running].filter(({ organization }) => organization === task.organization).length < slots - running.size

  const look = Effect.gen(function* () {
    const now = yield* Clock.monotonicTimeNanos
    const before = yield* Ref.get(found)
    if (now < before.lookAt) return before
    const waiting = (yield* due(most)).filter((task) => !isRunning(task))
    return { waiting, lookAt: now + Duration.toNanosUnsafe(pause) }
  })

  const next = Effect.gen(function* () {
    const { lookAt, waiting } = yield* look
    const task = waiting.find(mayRun)
    if (task !== undefined) running.add(task)
    yield* Ref.set(found, { waiting: waiting.filter((each) => each !== task), lookAt })
    return task
  })

  /** Takes a task and runs it. False if there is none. `run` returns true if this worker ran it. */
  return Effect.fnUntraced(function* <E>(run: (task: TaskId) => Effect.Effect<boolean, E>) {
    const task = yield* mutex.withPermit(next)
    if (task === undefined) return false
    const hasRun = yield* Effect.ensuring(
      run(task),
      Effect.sync(() => running.delete(task))
    )
    // There may be more. What others run is due as well, and is not looked at again and again.
    if (hasRun) yield* Ref.update(found, (known) => (known.waiting.length === 0 ? { ...known, lookAt: 0n } : known))
    return true
  })
})

/** Runs a worker of so many fibers until it is interrupted. It ends what it has begun. */
export const run = Effect.fnUntraced(function* (slots: number) {
  const scheduler = yield* Scheduler
  const takeNext = yield* makeQueue(slots)

  /** Ends an attempt without an outcome. */
  const retry = Effect.fnUntraced(function* (
    claim: Claim,
    { _tag, message: reason }: TaskFailed | TaskPostponed | SchedulerUnavailable,
    duration: Duration.Duration
  ) {
    const isCounted = _tag === "TaskFailed"
    const result = !isCounted ? "released" : claim.attempt < Retries.maximumAttempts ? "failed" : "dead"
    yield* Report.report(claim, result, { duration, reason })
    const after = yield* isCounted ? Retries.backoff(claim.attempt) : Retries.pause(claim.scheduledFor)
    const ending = isCounted ? scheduler.fail(claim, reason, after) : scheduler.postpone(claim, after)
    // In an outage nothing else can be run. If it lasts longer than five minutes, the attempt counts.
    yield* Effect.ignore(Effect.retry(ending, { schedule: Schedule.spaced("500 millis"), times: 600 }))
  })

  const runClaim = Effect.fnUntraced(
    function* (claim: Claim) {
      const [duration, result] = yield* scheduler.run(claim).pipe(
        Effect.tapError(({ _tag }) => Effect.annotateCurrentSpan(errorType, _tag)),
        Effect.catchDefect((defect) => {
          const message = `A bug: ${Predicate.isError(defect) ? defect.name : typeof defect}`
          return Effect.andThen(
            Effect.logError("A deletion task met a bug", defect),
            Effect.fail(new TaskFailed({ message }))
          )
        }),
        Effect.result,
        Effect.timed
      )
      if (Result.isFailure(result)) return yield* retry(claim, result.failure, duration)
      const outcome = result.success
      yield* Report.report(claim, outcome === undefined ? "superseded" : "completed", { duration, outcome })
    },
    (running, claim) => Report.traceRun(claim)(running)
  )

  const attempt = Effect.fnUntraced(function* (task: TaskId) {
    const started = yield* scheduler.start(task)
    if (started === undefined) return false
    yield* started.isDead ? Report.report(started, "dead", { reason: started.lastError }) : runClaim(started)
    return true
  })

  const slot = Effect.uninterruptible(takeNext(attempt)).pipe(
    Effect.repeat({ while: (hasTaken) => hasTaken }),
    Effect.retry(Schedule.spaced(pause)),
    Effect.repeat(Schedule.spaced(pause))
  )
  return yield* Effect.forEach(Array.range(1, slots), () => Loop.forever("The worker", slot), {
    concurrency: "unbounded",
    discard: true
  })
})

/** The time in which a stopping worker ends the tasks that it has started. */
const grace = "9 seconds"

/** Runs a worker until the scope closes. */
export const layer = (slots: number) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      yield* Report.runMetrics
      yield* Effect.acquireRelease(Effect.forkDetach(run(slots)), (worker) =>
        Effect.timeoutOption(Fiber.interrupt(worker), grace)
      )
    })
  )
