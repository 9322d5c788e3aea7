/**
 * The worker: a fiber that claims tasks when they are due and runs them.
 *
 * A round is not interrupted: a stop signal ends the worker between rounds, with nothing half done.
 */
import {
  Array,
  Clock,
  DateTime,
  Duration,
  Effect,
  Fiber,
  Layer,
  Predicate,
  Random,
  Ref,
  Result,
  Schedule,
  Semaphore
} from "effect"
import { errorType } from "../observability/Tracing.ts"
import { Scheduler } from "./Scheduler.ts"
import {
  byOrganization,
  type Claim,
  type ClaimLimits,
  maximumAttempts,
  type RunOutcome,
  SchedulerUnavailable,
  TaskFailed
} from "./Task.ts"
import { report, runMetrics, traceRound, traceRun } from "./TaskRuns.ts"

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
 * How a worker works beside the intake over a pool of connections. It leaves two of them to the intake, to claims and
 * to heartbeats. The tasks of a worker that dies expire 0.75 to 0.9 seconds later.
 */
export const optionsFor = (poolSize: number): Options => ({
  batch: 64,
  concurrency: Math.max(1, poolSize - 2),
  lease: Duration.millis(900)
})

const shortestSleep = Duration.millis(100)
const longestSleep = Duration.seconds(1)

const heartbeatsPerLease = 6

/** How many transactions a batch is divided into: few cost less, and leave slots to tasks that expire meanwhile. */
const transactionsPerBatch = 5

/**
 * From which heartbeat of a round on, and until which, it takes in due tasks of organizations that it has none of. Rounds
 * are seldom so long, and larger batches cost less. It ends some time, so that a task that must be alone has its turn.
 */
const open = { from: heartbeatsPerLease, until: 200 }

/** How long to wait after an attempt: full jitter, up to twice as long each time, from 1 second to 5 minutes. */
export const backoff = (attempt: number): Effect.Effect<Duration.Duration> =>
  Effect.map(Random.nextBetween(1000, Math.min(300_000, 1000 * 2 ** attempt)), Duration.millis)

/** Logs a bug, and fails with an error instead. */
const catchBug = <E2>(message: string, error: (name: string) => E2) =>
  Effect.catchDefect((defect) =>
    Effect.andThen(
      Effect.logError(message, defect),
      Effect.fail(error(Predicate.isError(defect) ? defect.name : typeof defect))
    )
  )

const millisNow = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1_000_000)

const reportAll = (claims: ReadonlyArray<Claim>, outcomes: ReadonlyArray<RunOutcome>, duration: number) =>
  Effect.forEach(
    Array.zip(claims, outcomes),
    ([claim, outcome]) =>
      outcome._tag === "Completed"
        ? report(claim, { result: "completed", outcome: outcome.outcome, duration })
        : report(claim, { result: "superseded", duration }),
    { discard: true }
  )

/**
 * A round claims what is due or has expired, and runs it. Meanwhile it claims what expires, and after a while what is due
 * of organizations that it has no task of: those do not wait for its end. Then it runs one of the tasks that must be alone.
 * It returns how many tasks it claimed at first.
 */
export const makeRound = Effect.fnUntraced(function* (options: Options) {
  const scheduler = yield* Scheduler
  const slots = yield* Semaphore.make(options.concurrency)
  const stopping = yield* Ref.make(false)

  const held = new Set<Claim>()

  const drop = (claims: ReadonlyArray<Claim>) => Effect.sync(() => claims.forEach((claim) => held.delete(claim)))

  /** Releases claims that an outage or a stop ended, so that their attempts do not count. */
  const release = (claims: Iterable<Claim>) =>
    Effect.forEach(claims, (claim) => Effect.andThen(scheduler.release(claim), drop([claim])), { discard: true })

  const fail = (claim: Claim, reason: string, duration: number) =>
    Effect.gen(function* () {
      const result = claim.attempt < maximumAttempts ? "failed" : "dead"
      yield* report(claim, { result, reason, duration })
      yield* scheduler.fail(claim, reason, yield* backoff(claim.attempt))
    }).pipe(
      // If the failure cannot be recorded, the lease expires, and the attempt still counts.
      Effect.ignore
    )

  /** Runs tasks in one transaction. Returns those that are left to be run, each in its own. */
  const run = Effect.fnUntraced(function* (claims: ReadonlyArray<Claim>) {
    if (yield* Ref.get(stopping)) return []
    const begun = yield* millisNow
    const took = Effect.map(millisNow, (now) => now - begun)
    return yield* scheduler.run(claims).pipe(
      Effect.tapError(({ _tag }) => Effect.annotateCurrentSpan(errorType, _tag)),
      catchBug("A deletion task met a bug", (name) => new TaskFailed({ message: `A bug: ${name}` })),
      Effect.tap((outcomes) => Effect.flatMap(took, (duration) => reportAll(claims, outcomes, duration))),
      Effect.andThen(drop(claims)),
      Effect.as([]),
      Effect.catchTags({
        TaskFailed: ({ message }) => {
          const [claim, ...others] = claims
          if (claim === undefined || others.length > 0)
            return Effect.as(Effect.ignore(scheduler.renew(claims, options.lease)), claims)
          return Effect.flatMap(took, (duration) => fail(claim, message, duration)).pipe(
            Effect.andThen(drop(claims)),
            Effect.as([])
          )
        },
        SchedulerUnavailable: () =>
          Effect.forEach(claims, (claim) => report(claim, { result: "released" }), { discard: true }).pipe(
            Effect.andThen(Effect.ignore(release(claims))),
            Effect.as([])
          )
      }),
      traceRun(claims)
    )
  })

  /** Runs tasks, and those that are claimed at its heartbeats, until none is left. */
  const runAll = Effect.fnUntraced(function* (
    given: ReadonlyArray<Claim>,
    claimMore: (heartbeat: number) => Effect.Effect<ReadonlyArray<Claim>, SchedulerUnavailable>
  ) {
    // Tasks that were tried before have waited the longest. Those that come later are of organizations that wait.
    const urgent: Array<ReadonlyArray<Claim>> = []
    const others: Array<ReadonlyArray<Claim>> = []

    const runNext: Effect.Effect<void> = Effect.suspend(() => {
      const queue = urgent.length > 0 ? urgent : others
      return Effect.map(run(queue.shift() ?? []), (left) => ({ left, queue }))
    }).pipe(
      (running) => slots.withPermit(running),
      Effect.flatMap(({ left, queue }) => enqueue(queue, left.map(Array.of)))
    )

    const enqueue = (queue: Array<ReadonlyArray<Claim>>, groups: ReadonlyArray<ReadonlyArray<Claim>>) =>
      Effect.suspend(() => {
        queue.push(...groups)
        return Effect.forEach(groups, () => runNext, { concurrency: "unbounded", discard: true })
      })

    const start = (claims: ReadonlyArray<Claim>, queue: Array<ReadonlyArray<Claim>>) => {
      for (const claim of claims) held.add(claim)
      const first = claims.filter(({ attempt }) => attempt === 1)
      const again = claims.filter(({ attempt }) => attempt > 1)
      const size = Math.max(1, Math.ceil(first.length / Math.min(options.concurrency, transactionsPerBatch)))
      // Tasks of an organization with many share no transaction with others, which would fail or be late with them.
      const [many, few] = Array.partition(byOrganization(first), (some) =>
        some.length >= size || scheduler.runsApart() ? Result.succeed(some) : Result.fail(some)
      )
      const chunks = [few.flat(), ...many].flatMap((group) => Array.chunksOf(group, size))
      return Effect.all([enqueue(urgent, again.map(Array.of)), enqueue(queue, chunks)], {
        concurrency: "unbounded",
        discard: true
      })
    }

    let heartbeats = 0
    // What is held is renewed before more is claimed, so that a worker that was paused does not claim it again.
    const heartbeat = Effect.suspend(() => scheduler.renew([...held], options.lease)).pipe(
      Effect.andThen(Effect.suspend(() => claimMore(++heartbeats))),
      Effect.orElseSucceed((): ReadonlyArray<Claim> => [])
    )
    const interval = Duration.divideUnsafe(options.lease, heartbeatsPerLease)

    if (given.length === 0) return
    let running = yield* Effect.forkChild(start(given, others))
    while (
      yield* Effect.raceFirst(
        Effect.as(Effect.interruptible(Fiber.join(running)), false),
        Effect.as(Effect.interruptible(Effect.sleep(interval)), true)
      )
    ) {
      const more = yield* heartbeat
      const before = running
      if (more.length > 0) {
        running = yield* Effect.forkChild(
          Effect.all([Fiber.join(before), start(more, urgent)], { concurrency: 2, discard: true })
        )
      }
    }
  })

  const claim = (limits: ClaimLimits) =>
    Effect.flatMap(Ref.get(stopping), (isStopping) =>
      isStopping ? Effect.succeed([]) : scheduler.claim(limits, options.lease)
    )

  const round = Effect.gen(function* () {
    // What the round before could not release comes first, since an attempt whose lease expires counts.
    yield* release(held)
    // No more than start soon, so that several workers share what another one left.
    const expired = 2 * options.concurrency
    const startTime = yield* Clock.currentTimeNanos
    const together = yield* claim({ due: options.batch, expired })
    const claimMore = (heartbeat: number) =>
      claim({
        expired,
        due: heartbeat < open.from || heartbeat > open.until || held.size > options.batch ? 0 : options.batch,
        except: new Set(Array.fromIterable(held).map(({ organization }) => organization))
      })
    yield* runAll(together, claimMore).pipe(traceRound(startTime, together.length))
    const alone = yield* claim({ alone: 1 })
    yield* runAll(alone, () => Effect.succeed([]))
    if (yield* Ref.get(stopping)) yield* release(held)
    return together.length + alone.length
  })
  return { round, stop: Ref.set(stopping, true) }
})

/** A worker: its rounds without end, and what tells it to start no further task. */
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
    catchBug("A round of the worker failed", (message) => new SchedulerUnavailable({ message })),
    Effect.retry(Schedule.spaced("500 millis")),
    Effect.forever
  )
  return { rounds, stop }
})

/** A worker, run until it is interrupted. */
export const run = (options: Options) => Effect.flatMap(make(options), ({ rounds }) => rounds)

/** How long a stopping worker may take to finish what it has started. */
const grace = "9 seconds"

/** The worker, until the scope closes. */
export const layer = (options: Options) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      yield* runMetrics
      const { rounds, stop } = yield* make(options)
      yield* Effect.acquireRelease(Effect.forkDetach(rounds), (worker) =>
        Effect.andThen(stop, Effect.timeoutOption(Fiber.interrupt(worker), grace))
      )
    })
  )

const emptied = { batch: 100, pause: Duration.millis(200), idle: Duration.minutes(1) }

/**
 * Empties the payloads of old completed tasks until the scope closes. A task keeps its receipt, fingerprint and outcome, so
 * that a repeated delivery stays a duplicate. A dead task keeps its payload for its replay.
 *
 * @param retention the time that a completed task keeps its payload
 */
export const layerRetention = (retention = Duration.days(90)) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { empty } = yield* Scheduler
      yield* DateTime.now.pipe(
        Effect.flatMap((now) => empty(DateTime.subtractDuration(now, retention), emptied.batch)),
        Effect.orElseSucceed(() => 0),
        Effect.flatMap((count) => Effect.sleep(count < emptied.batch ? emptied.idle : emptied.pause)),
        Effect.forever,
        Effect.forkScoped
      )
    })
  )
