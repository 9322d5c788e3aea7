/**
 * The worker: a fiber that claims tasks when they are due and runs them.
 *
 * A round is not interrupted: a stop signal ends the worker between rounds, with nothing half done.
 */
import { Array, Duration, Effect, Fiber, Layer, Random, Ref, Schedule } from "effect"
import { Scheduler } from "./Scheduler.ts"
import { type Claim, TaskFailed } from "./Task.ts"

/** How a worker works. */
export interface Options {
  /** How many tasks to claim at once. */
  readonly batch: number
  /** How many tasks to run at once. */
  readonly concurrency: number
  /** For how long a task is claimed; it is renewed while its worker lives. */
  readonly lease: Duration.Duration
}

const longestSleep = Duration.seconds(1)

/** How long to wait after an attempt: at random, up to twice as long each time, from 1 second to 5 minutes. */
export const backoff = (attempt: number): Effect.Effect<Duration.Duration> =>
  Effect.map(Random.nextBetween(1000, Math.min(300_000, 1000 * 2 ** attempt)), Duration.millis)

/** One round: claims what is due and runs it. Says how many tasks it had. */
export const makeRound = Effect.fnUntraced(function* (options: Options) {
  const scheduler = yield* Scheduler
  // Attempts that a failure of the database ended, and that must not count.
  const owed = yield* Ref.make<ReadonlyArray<Claim>>([])

  const settle = Effect.gen(function* () {
    const claims = yield* Ref.get(owed)
    yield* Effect.forEach(claims, (claim) =>
      Effect.andThen(
        scheduler.giveBack(claim),
        Ref.update(owed, (all) => all.filter((other) => other !== claim))
      )
    )
  })

  const failed = (claim: Claim, message: string) =>
    Effect.gen(function* () {
      yield* Effect.logWarning("A deletion task failed", message)
      yield* scheduler.fail(claim, message, yield* backoff(claim.attempt))
    }).pipe(
      // A failure that cannot be recorded either: the lease ends, and the attempt counts.
      Effect.ignore,
      Effect.annotateLogs({ task_id: claim.taskId, organization: claim.organization, attempt: claim.attempt })
    )

  // Tasks run together while none of them fails, and else each alone.
  const work = (claims: ReadonlyArray<Claim>): Effect.Effect<void> =>
    scheduler.runTogether(claims).pipe(
      Effect.asVoid,
      Effect.catchDefect((defect) => Effect.fail(new TaskFailed({ message: String(defect) }))),
      Effect.catchTags({
        TaskFailed: ({ message }) =>
          Effect.forEach(claims, (claim) => (claims.length === 1 ? failed(claim, message) : work([claim])), {
            discard: true
          }),
        SchedulerUnavailable: () => Ref.update(owed, (all) => [...all, ...claims])
      })
    )

  const round = Effect.gen(function* () {
    yield* settle
    const claims = yield* scheduler.claim({ limit: options.batch, lease: options.lease })
    const heartbeat = scheduler
      .renew(claims, options.lease)
      .pipe(
        Effect.ignore,
        Effect.delay(Duration.millis(Duration.toMillis(options.lease) / 3)),
        Effect.forever,
        Effect.interruptible
      )
    const together = Math.ceil(claims.length / options.concurrency)
    const working = Effect.forEach(Array.chunksOf(claims, Math.max(1, together)), work, {
      concurrency: options.concurrency,
      discard: true
    })
    yield* Effect.raceFirst(working, heartbeat)
    return claims.length
  }).pipe(Effect.withSpan("Worker.round"))
  return { round }
})

/** Rounds without end: at once while there is more to do, else when the next task is due, a second later at most. */
export const run = Effect.fnUntraced(function* (options: Options) {
  const scheduler = yield* Scheduler
  const { round } = yield* makeRound(options)
  const rest = (claimed: number) =>
    claimed === options.batch
      ? Effect.yieldNow
      : Effect.flatMap(scheduler.untilDue, (untilDue = longestSleep) =>
          Effect.sleep(Duration.min(untilDue, longestSleep))
        )
  return yield* Effect.uninterruptible(round).pipe(
    Effect.flatMap(rest),
    Effect.retry(Schedule.spaced("500 millis")),
    Effect.forever
  )
})

/** How long a stopping worker may finish its round. */
const grace = "10 seconds"

/** The worker, until the scope closes. */
export const layer = (options: Options) =>
  Layer.effectDiscard(
    Effect.acquireRelease(Effect.forkDetach(run(options)), (worker) =>
      Fiber.interrupt(worker).pipe(Effect.timeoutOption(grace), Effect.asVoid)
    )
  )
