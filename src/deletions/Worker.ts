/**
 * The worker: a fiber that claims tasks when they are due and runs them.
 *
 * A round is not interrupted: a stop signal ends the worker between rounds, with nothing half done.
 */
import { Array, DateTime, Duration, Effect, Fiber, Layer, Predicate, Random, Schedule, Semaphore } from "effect"
import { errorType } from "../observability/Tracing.ts"
import { Scheduler } from "./Scheduler.ts"
import * as Task from "./Task.ts"

export interface Options {
  /** The number of due tasks to claim at once. */
  readonly batch: number
  /** The number of transactions at once. */
  readonly concurrency: number
  readonly lease: Duration.Duration
}

/**
 * The options of a worker over a pool of connections, of which it leaves two to the intake, to claims and to
 * heartbeats. The tasks of a worker that dies expire 0.75 to 0.9 seconds later.
 */
export const optionsFor = (poolSize: number): Options => ({
  batch: 64,
  concurrency: Math.max(1, poolSize - 2),
  lease: Duration.millis(900)
})

const shortestSleep = Duration.millis(100)
const longestSleep = Duration.seconds(1)

const heartbeatsPerLease = 6

/** A batch is divided into this many transactions: few cost less, and leave slots to tasks that expire meanwhile. */
const transactionsPerBatch = 5

/**
 * The heartbeats of a round that claim due tasks of other organizations. Rounds are seldom so long, and larger batches
 * cost less. They end, so that a task that must be alone has its turn.
 */
const claimsMore = { from: heartbeatsPerLease, until: 200 }

/** The delay until a task whose rows others hold is run again. */
const retryLocked = { minimum: Duration.seconds(1), maximum: Duration.seconds(10) }

/** The delay after an attempt: random from 1 second to a bound that doubles with each, of 2 seconds to 5 minutes. */
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

type Group = ReadonlyArray<Task.Claim>

/**
 * A round claims due and expired tasks, and runs them. At its heartbeats it claims tasks that expire and, after a
 * while, due tasks of other organizations, which do not wait for its end. Then it runs one of the tasks that must be
 * alone. It returns the number of tasks that it claimed at first, less those that an outage released: they are due at
 * once, and would be claimed again and again.
 */
export const makeRound = Effect.fnUntraced(function* (options: Options) {
  const scheduler = yield* Scheduler
  const slots = yield* Semaphore.make(options.concurrency)
  const held = new Set<Task.Claim>()
  let isStopping = false
  let released = 0

  /** Releases claims that an outage or a stop ended, so that their attempts do not count. */
  const release = (claims: Iterable<Task.Claim>) =>
    Effect.forEach(claims, (claim) => Effect.map(scheduler.release(claim), () => held.delete(claim)), { discard: true })

  const fail = Effect.fnUntraced(
    function* (claim: Task.Claim, reason: string, duration: Duration.Duration) {
      yield* Task.report(claim, claim.attempt < Task.maximumAttempts ? "failed" : "dead", { reason, duration })
      yield* scheduler.fail(claim, reason, yield* backoff(claim.attempt))
    },
    // If the failure cannot be recorded, the lease expires, and the attempt still counts.
    (failing) => Effect.ignore(failing)
  )

  /** Schedules a task whose rows others hold for later, without an attempt: the longer it waits, the more seldom. */
  const postpone = Effect.fnUntraced(function* (claim: Task.Claim, duration: Duration.Duration) {
    const waited = DateTime.distance(claim.scheduledFor, yield* DateTime.now)
    yield* Task.report(claim, "released", { duration, reason: "Other transactions hold rows that it deletes" })
    yield* Effect.ignore(scheduler.release(claim, Duration.clamp(Duration.divideUnsafe(waited, 2), retryLocked)))
  })

  /** Runs tasks together. Returns those that are left to be run, each by itself. */
  const run = Effect.fnUntraced(
    function* (claims: Group) {
      if (isStopping) return []
      const [duration, result] = yield* scheduler.run(claims).pipe(
        Effect.tapError(({ _tag }) => Effect.annotateCurrentSpan(errorType, _tag)),
        catchBug("A deletion task met a bug", (name) => new Task.TaskFailed({ message: `A bug: ${name}` })),
        Effect.result,
        Effect.timed
      )
      if (result._tag === "Success") {
        for (const [claim, outcome] of Array.zip(claims, result.success)) {
          if (outcome === "locked") yield* postpone(claim, duration)
          else yield* Task.report(claim, outcome === undefined ? "superseded" : "completed", { duration, outcome })
        }
      } else if (result.failure._tag === "SchedulerUnavailable") {
        released += claims.length
        for (const claim of claims) yield* Task.report(claim, "released", { duration, reason: result.failure.message })
        yield* Effect.ignore(release(claims))
        return []
      } else if (claims.length > 1) {
        yield* Effect.ignore(scheduler.renew(claims, options.lease))
        return claims
      } else {
        for (const claim of claims) yield* fail(claim, result.failure.message, duration)
      }
      for (const claim of claims) held.delete(claim)
      return []
    },
    (running, claims) => Task.traceRun(claims)(running)
  )

  /** Runs tasks, and those that are claimed at its heartbeats, until none is left. */
  const runAll = Effect.fnUntraced(function* (
    given: Group,
    claimMore: (heartbeat: number) => Effect.Effect<Group, Task.SchedulerUnavailable>
  ) {
    if (given.length === 0) return
    // Tasks that were tried before have waited the longest. Those that come later are of organizations that wait.
    const urgent: Array<Group> = []
    const others: Array<Group> = []

    const runNext: Effect.Effect<void> = Effect.suspend(() => {
      const queue = urgent.length > 0 ? urgent : others
      return Effect.map(run(queue.shift() ?? []), (left) => ({ left, queue }))
    }).pipe(
      (running) => slots.withPermit(running),
      Effect.flatMap(({ left, queue }) => enqueue(queue, left.map(Array.of)))
    )

    const enqueue = (queue: Array<Group>, groups: ReadonlyArray<Group>) =>
      Effect.suspend(() => {
        queue.push(...groups)
        return Effect.forEach(groups, () => runNext, { concurrency: "unbounded", discard: true })
      })

    const start = (claims: Group, queue: Array<Group>) => {
      for (const claim of claims) held.add(claim)
      const first = claims.filter(({ attempt }) => attempt === 1)
      const again = claims.filter(({ attempt }) => attempt > 1)
      const size = Math.max(1, Math.ceil(first.length / Math.min(options.concurrency, transactionsPerBatch)))
      // Tasks of an organization with many share no transaction with others, which would fail or be late with them.
      const isApart = (some: Group) => some.length >= size || scheduler.runsApart()
      const all = Task.byOrganization(first)
      const few = all.filter((some) => !isApart(some)).flat()
      const groups = [few, ...all.filter(isApart)].flatMap((group) => Array.chunksOf(group, size))
      const enqueuing = [enqueue(urgent, again.map(Array.of)), enqueue(queue, groups)]
      return Effect.all(enqueuing, { concurrency: "unbounded", discard: true })
    }

    const interval = Duration.divideUnsafe(options.lease, heartbeatsPerLease)
    let running = yield* Effect.forkChild(start(given, others))
    for (let heartbeat = 1; ; heartbeat++) {
      const isDone = yield* Effect.raceFirst(
        Effect.as(Effect.interruptible(Fiber.join(running)), true),
        Effect.as(Effect.interruptible(Effect.sleep(interval)), false)
      )
      if (isDone) return
      // Leases are renewed before more is claimed, so that a worker that was paused does not claim its own tasks.
      const more = yield* scheduler.renew([...held], options.lease).pipe(
        Effect.andThen(Effect.suspend(() => claimMore(heartbeat))),
        Effect.orElseSucceed((): Group => [])
      )
      if (more.length > 0) {
        const both = [Fiber.join(running), start(more, urgent)]
        running = yield* Effect.forkChild(Effect.all(both, { concurrency: 2, discard: true }))
      }
    }
  })

  const claim = (limits: Task.ClaimLimits) =>
    Effect.suspend(() => (isStopping ? Effect.succeed([]) : scheduler.claim(limits, options.lease)))

  const round = Effect.gen(function* () {
    released = 0
    // An attempt whose lease expires counts, so claims that the round before could not release come first.
    yield* release(held)
    // No more than start soon, so that several workers share the tasks of a dead one.
    const expired = 2 * options.concurrency
    const together = yield* claim({ due: options.batch, expired })
    const claimMore = (heartbeat: number) => {
      const isFull = held.size > options.batch || heartbeat < claimsMore.from || heartbeat > claimsMore.until
      const except = new Set(Array.fromIterable(held).map(({ organization }) => organization))
      return claim({ expired, due: isFull ? 0 : options.batch, except })
    }
    yield* runAll(together, claimMore)
    const alone = yield* claim({ alone: 1 })
    yield* runAll(alone, () => Effect.succeed([]))
    if (isStopping) yield* release(held)
    return together.length + alone.length - released
  })
  const stop = Effect.sync(() => {
    isStopping = true
  })
  return { round, stop }
})

/** A worker: its endless rounds, and an effect after which it starts no task. */
export const make = Effect.fnUntraced(function* (options: Options) {
  const scheduler = yield* Scheduler
  const { round, stop } = yield* makeRound(options)
  const sleep = (ifDue: Duration.Duration): Effect.Effect<void, Task.SchedulerUnavailable> =>
    Effect.flatMap(scheduler.untilDue, (left = Duration.infinity) =>
      Effect.andThen(
        Effect.sleep(Duration.isZero(left) ? ifDue : Duration.min(left, longestSleep)),
        Duration.isGreaterThan(left, longestSleep) ? sleep(Duration.zero) : Effect.void
      )
    )
  const rounds = Effect.uninterruptible(round).pipe(
    // A due task may be locked by another worker.
    Effect.flatMap((claimed) => (claimed > 0 ? Effect.yieldNow : sleep(shortestSleep))),
    catchBug("A round of the worker failed", (message) => new Task.SchedulerUnavailable({ message })),
    Effect.retry(Schedule.spaced("500 millis")),
    Effect.forever
  )
  return { rounds, stop }
})

/** Runs a worker until it is interrupted. */
export const run = (options: Options) => Effect.flatMap(make(options), ({ rounds }) => rounds)

/** The time in which a stopping worker finishes the tasks that it has started. */
const grace = "9 seconds"

/** Runs a worker until the scope closes. */
export const layer = (options: Options) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      yield* Task.runMetrics
      const { rounds, stop } = yield* make(options)
      yield* Effect.acquireRelease(Effect.forkDetach(rounds), (worker) =>
        Effect.andThen(stop, Effect.timeoutOption(Fiber.interrupt(worker), grace))
      )
    })
  )

const emptied = { batch: 100, pause: Duration.millis(200), idle: Duration.minutes(1) }

/**
 * Empties the payloads of old completed tasks until the scope closes. A task keeps its receipt, fingerprint and
 * outcome, so that a repeated delivery stays a duplicate. A dead task keeps its payload for its replay.
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
