/**
 * The worker: a fiber that claims tasks when they are due and runs them.
 *
 * A round is not interrupted: a stop signal ends the worker between rounds, with nothing half done.
 */
import { Array, Duration, Effect, Fiber, Layer, Random, Ref, Schedule } from "effect"
import { Scheduler } from "./Scheduler.ts"
import { type Claim, SchedulerUnavailable, TaskFailed } from "./Task.ts"

/** How a worker works. */
export interface Options {
  /** How many tasks to claim at once. */
  readonly batch: number
  /** How many tasks to run at once. */
  readonly concurrency: number
  /** For how long a task is claimed; it is renewed while its worker lives. */
  readonly lease: Duration.Duration
}

const shortestSleep = Duration.millis(50)
const longestSleep = Duration.seconds(1)

/** How long to wait after an attempt: at random, up to twice as long each time, from 1 second to 5 minutes. */
export const backoff = (attempt: number): Effect.Effect<Duration.Duration> =>
  Effect.map(Random.nextBetween(1000, Math.min(300_000, 1000 * 2 ** attempt)), Duration.millis)

/** One round: claims what is due and runs it. Says how many tasks it had. */
export const makeRound = Effect.fnUntraced(function* (options: Options) {
  const scheduler = yield* Scheduler
  const stopping = yield* Ref.make(false)
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

  const owe = (claims: ReadonlyArray<Claim>) => Ref.update(owed, (all) => [...all, ...claims])

  const alone = (claims: ReadonlyArray<Claim>) =>
    Effect.andThen(
      Effect.ignore(scheduler.renew(claims, options.lease)),
      Effect.forEach(claims, (claim) => work([claim]), { discard: true })
    )

  // Tasks run together while none of them fails, and else each alone. A stopping worker begins none.
  const work = (claims: ReadonlyArray<Claim>): Effect.Effect<void> =>
    Effect.flatMap(Ref.get(stopping), (isStopping) => (isStopping ? owe(claims) : begin(claims)))

  const begin = (claims: ReadonlyArray<Claim>): Effect.Effect<void> =>
    scheduler.runTogether(claims).pipe(
      Effect.asVoid,
      Effect.catchDefect((defect) => Effect.fail(new TaskFailed({ message: String(defect) }))),
      Effect.catchTags({
        TaskFailed: ({ message }) =>
          claims.length === 1
            ? Effect.forEach(claims, (claim) => failed(claim, message), { discard: true })
            : alone(claims),
        SchedulerUnavailable: () => owe(claims)
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
    // A task that was tried before is run after the others and alone: it may end the process once more.
    const fresh = claims.filter((claim) => claim.attempt === 1)
    const tried = claims.filter((claim) => claim.attempt > 1)
    const together = Math.max(1, Math.ceil(fresh.length / options.concurrency))
    const working = Effect.andThen(
      Effect.forEach(Array.chunksOf(fresh, together), work, { concurrency: options.concurrency, discard: true }),
      Effect.forEach(tried, (claim) => work([claim]), { discard: true })
    )
    yield* Effect.raceFirst(working, heartbeat)
    if (yield* Ref.get(stopping)) yield* settle
    return claims.length
  }).pipe(Effect.withSpan("Worker.round"))
  return { round, stop: Ref.set(stopping, true) }
})

/** A worker: its rounds without end, and what tells it to begin no further task. */
export const make = Effect.fnUntraced(function* (options: Options) {
  const scheduler = yield* Scheduler
  const { round, stop } = yield* makeRound(options)
  // A task that is due and locked by another is not worth asking for again at once.
  const rest = (claimed: number) =>
    claimed > 0
      ? Effect.yieldNow
      : Effect.flatMap(scheduler.untilDue, (untilDue = longestSleep) =>
          Effect.sleep(Duration.isZero(untilDue) ? shortestSleep : Duration.min(untilDue, longestSleep))
        )
  const rounds = Effect.uninterruptible(round).pipe(
    Effect.flatMap(rest),
    Effect.catchDefect((defect) =>
      Effect.andThen(
        Effect.logError("A round of the worker failed", defect),
        Effect.fail(new SchedulerUnavailable({ message: String(defect) }))
      )
    ),
    Effect.retry(Schedule.spaced("500 millis")),
    Effect.forever
  )
  return { rounds, stop }
})

/** A worker, run until it is interrupted. */
export const run = (options: Options) => Effect.flatMap(make(options), ({ rounds }) => rounds)

/** How long a stopping worker may take to finish what it has begun. */
const grace = "9 seconds"

/** The worker, until the scope closes. */
export const layer = (options: Options) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { rounds, stop } = yield* make(options)
      yield* Effect.acquireRelease(Effect.forkDetach(rounds), (worker) =>
        Effect.andThen(stop, Effect.timeoutOption(Fiber.interrupt(worker), grace))
      )
    })
  )
