/**
 * The worker: a fiber that claims tasks when they are due and runs them.
 *
 * A round is not interrupted: a stop signal ends the worker between rounds, with nothing half done.
 */
import { Array, Duration, Effect, Fiber, Layer, Predicate, Random, Ref, Result, Schedule, Semaphore } from "effect"
import { type ClaimLimits, Scheduler } from "./Scheduler.ts"
import { type Claim, SchedulerUnavailable, TaskFailed } from "./Task.ts"

/** How a worker works. */
export interface Options {
  /** How many due tasks to claim at once. */
  readonly batch: number
  /** How many transactions to run tasks in at once. */
  readonly concurrency: number
  /** For how long a task is claimed; it is renewed while its worker lives. */
  readonly lease: Duration.Duration
}

/**
 * How a worker works beside the intake over a pool of connections, of which it leaves two to that, to claims and to
 * renewals. The tasks of one that dies are seen when their leases expire, 0.75 to 0.9 seconds later.
 */
export const optionsFor = (poolSize: number): Options => ({
  batch: 64,
  concurrency: Math.max(1, poolSize - 2),
  lease: Duration.millis(900)
})

const shortestSleep = Duration.millis(100)
const longestSleep = Duration.seconds(1)

/** How often a lease is renewed while it would last. */
const beatsOfLease = 6

/** How many transactions a batch is divided into: few cost less, and leave slots to what expires meanwhile. */
const transactionsOfBatch = 5

/** How long to wait after an attempt: at random, up to twice as long each time, from 1 second to 5 minutes. */
export const backoff = (attempt: number): Effect.Effect<Duration.Duration> =>
  Effect.map(Random.nextBetween(1000, Math.min(300_000, 1000 * 2 ** attempt)), Duration.millis)

/**
 * One round: claims what is due or has expired, runs it together with what expires meanwhile, and then runs one of the
 * tasks that must be alone. Says how many tasks it had.
 */
export const makeRound = Effect.fnUntraced(function* (options: Options) {
  const scheduler = yield* Scheduler
  const slots = yield* Semaphore.make(options.concurrency)
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
      // A failure that cannot be recorded either: the lease expires, and the attempt counts.
      Effect.ignore,
      Effect.annotateLogs({ task_id: claim.taskId, organization: claim.organization, attempt: claim.attempt })
    )

  const owe = (claims: ReadonlyArray<Claim>) => Ref.update(owed, (all) => [...all, ...claims])

  /** Runs tasks in one transaction. Gives those that are left to be run, each in its own. */
  const attempt = (claims: ReadonlyArray<Claim>): Effect.Effect<ReadonlyArray<Claim>> =>
    scheduler.runTogether(claims).pipe(
      Effect.as([]),
      Effect.catchDefect((defect) =>
        Effect.andThen(
          Effect.logError("A deletion task met a bug", defect),
          Effect.fail(new TaskFailed({ message: `A bug: ${Predicate.isError(defect) ? defect.name : typeof defect}` }))
        )
      ),
      Effect.catchTags({
        TaskFailed: ({ message }) =>
          claims.length === 1
            ? Effect.as(
                Effect.forEach(claims, (claim) => failed(claim, message)),
                []
              )
            : Effect.as(Effect.ignore(scheduler.renew(claims, options.lease)), claims),
        SchedulerUnavailable: () => Effect.as(owe(claims), [])
      })
    )

  // A stopping worker begins none.
  const begin = (claims: ReadonlyArray<Claim>) =>
    Effect.flatMap(Ref.get(stopping), (isStopping) => (isStopping ? Effect.as(owe(claims), []) : attempt(claims)))

  /** Runs tasks, and what joins them meanwhile, until none is left in hand. */
  const carryOut = Effect.fnUntraced(function* (
    given: ReadonlyArray<Claim>,
    joining: Effect.Effect<ReadonlyArray<Claim>, SchedulerUnavailable>
  ) {
    const inHand = new Set<Claim>()
    // Those that were tried before go first, since they have waited the longest.
    const first: Array<ReadonlyArray<Claim>> = []
    const rest: Array<ReadonlyArray<Claim>> = []

    const runNext: Effect.Effect<void> = Effect.suspend(() => {
      const claims = first.shift() ?? rest.shift() ?? []
      return Effect.map(begin(claims), (left) => {
        for (const claim of claims) if (!left.includes(claim)) inHand.delete(claim)
        return left.map(Array.of)
      })
    }).pipe(
      (running) => slots.withPermit(running),
      Effect.flatMap((left) => runAll(left, rest))
    )

    const runAll = (groups: ReadonlyArray<ReadonlyArray<Claim>>, queue: Array<ReadonlyArray<Claim>>) =>
      Effect.suspend(() => {
        queue.push(...groups)
        return Effect.forEach(groups, () => runNext, { concurrency: "unbounded", discard: true })
      })

    const take = (claims: ReadonlyArray<Claim>) => {
      for (const claim of claims) inHand.add(claim)
      const [tried, fresh] = Array.partition(claims, (claim) =>
        claim.attempt > 1 ? Result.succeed(claim) : Result.fail(claim)
      )
      const together = Math.max(1, Math.ceil(fresh.length / Math.min(options.concurrency, transactionsOfBatch)))
      return Effect.all([runAll(tried.map(Array.of), first), runAll(Array.chunksOf(fresh, together), rest)], {
        concurrency: "unbounded",
        discard: true
      })
    }

    // What is in hand is renewed before more is claimed, so that a worker that was held up does not claim it again.
    const join = Effect.andThen(
      Effect.suspend(() => scheduler.renew([...inHand], options.lease)),
      joining
    ).pipe(Effect.orElseSucceed((): ReadonlyArray<Claim> => []))

    const tend = (working: Fiber.Fiber<void>): Effect.Effect<void> =>
      Effect.raceFirst(
        Effect.as(Effect.interruptible(Fiber.join(working)), true),
        Effect.as(Effect.interruptible(Effect.sleep(Duration.divideUnsafe(options.lease, beatsOfLease))), false)
      ).pipe(
        Effect.flatMap((isDone) =>
          isDone
            ? Effect.void
            : Effect.flatMap(join, (claims) =>
                claims.length === 0
                  ? tend(working)
                  : Effect.flatMap(
                      Effect.forkChild(
                        Effect.all([Fiber.join(working), take(claims)], { concurrency: 2, discard: true })
                      ),
                      tend
                    )
              )
        )
      )

    if (given.length > 0) yield* Effect.flatMap(Effect.forkChild(take(given)), tend)
  })

  const claim = (limits: ClaimLimits) =>
    Effect.flatMap(Ref.get(stopping), (isStopping) =>
      isStopping ? Effect.succeed([]) : scheduler.claim(limits, options.lease)
    )

  const round = Effect.gen(function* () {
    yield* settle
    // No more than are begun soon, so that several workers share what another one left.
    const expired = 2 * options.concurrency
    const beside = yield* claim({ due: options.batch, expired, alone: 0 })
    yield* carryOut(beside, claim({ due: 0, expired, alone: 0 }))
    const alone = yield* claim({ due: 0, expired: 0, alone: 1 })
    yield* carryOut(alone, Effect.succeed([]))
    if (yield* Ref.get(stopping)) yield* settle
    return beside.length + alone.length
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
