/**
 * The worker: a fiber that claims tasks when they are due and runs them.
 *
 * A round is not interrupted: a stop signal ends the worker between rounds, with nothing half done.
 */
import { Array, DateTime, Duration, Effect, Fiber, Layer, Predicate, Result, Schedule } from "effect"
import { errorType } from "../observability/Tracing.ts"
import * as Loop from "../process/Loop.ts"
import * as Retries from "./Retries.ts"
import { Scheduler, type SchedulerUnavailable, TaskFailed } from "./Scheduler.ts"
import * as Task from "./WorkerTasks.ts"

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
 * The first heartbeat of a round that claims due tasks of other organizations: rounds are seldom so long, and larger batches
 * cost less. From a later one on, an isolated task has its turn: while one waits, the round ends.
 */
const claimsMore = { from: heartbeatsPerLease, yields: 200 }

type Group = ReadonlyArray<Task.Claim>

/** The organization of a task that runs by itself, unless it was taken over, and waits for long. */
const limitedIn = ([claim, ...others]: Group) =>
  claim === undefined || claim.isTakeover || others.length > 0 ? undefined : claim.organization

/**
 * The slots of transactions. A task that runs by itself may take long: for those, an organization takes another slot only
 * while it has fewer than are free.
 */
const makeSlots = (count: number) => {
  let free = count
  const taken = new Map<string, number>()
  const takenBy = (owner: string) => taken.get(owner) ?? 0
  const take = (owner: string | undefined, slots: number) => {
    free -= slots
    if (owner !== undefined) taken.set(owner, takenBy(owner) + slots)
  }
  return {
    isFree: (group: Group) => free > 0 && takenBy(limitedIn(group) ?? "") < free,
    with: <A>(group: Group, running: Effect.Effect<A>) => {
      const owner = limitedIn(group)
      take(owner, 1)
      return Effect.ensuring(
        running,
        Effect.sync(() => take(owner, -1))
      )
    }
  }
}

/**
 * A round claims due and expired tasks, and runs them. At its heartbeats it claims tasks that expire and, after a
 * while, due tasks of other organizations, which do not wait for its end. Then it runs one of the isolated
 * tasks. It returns the number of tasks that it claimed at first, less those that an outage released: they are due at
 * once, and would be claimed again and again.
 */
export const makeRound = Effect.fnUntraced(function* (options: Options) {
  const scheduler = yield* Scheduler
  const held = new Set<Task.Claim>()
  /** Claims whose attempt is to be taken back. */
  const unreleased = new Set<Task.Claim>()
  let isStopping = false
  let released = 0

  /** Takes the attempts of claims back, maybe in the next round. */
  const release = (claims: Iterable<Task.Claim>, after = Duration.zero) =>
    Effect.suspend(() => {
      const all = [...claims]
      for (const claim of all) unreleased.add(claim)
      return Effect.forEach(
        all,
        (claim) => Effect.map(scheduler.release(claim, after), (isDone) => isDone && unreleased.delete(claim)),
        { discard: true }
      )
    })

  /** Ends an attempt that has no outcome. */
  const retry = Effect.fnUntraced(function* (
    claim: Task.Claim,
    ending: "failed" | "postponed",
    reason: string,
    duration: Duration.Duration
  ) {
    const { after, result } = yield* Retries.retryOf(ending, claim)
    yield* Task.report(claim, result, { duration, reason })
    // If a failure cannot be recorded, the lease expires, and the attempt still counts.
    yield* Effect.ignore(result === "released" ? release([claim], after) : scheduler.fail(claim, reason, after))
  })

  /** Runs tasks together. Returns those that are left to be run, each by itself. */
  const run = Effect.fnUntraced(
    function* (claims: Group) {
      if (isStopping) return []
      const [duration, result] = yield* scheduler.run(claims).pipe(
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
      if (result._tag === "Failure" && result.failure._tag === "TaskFailed" && claims.length > 1) {
        yield* Effect.ignore(scheduler.renew(claims, options.lease))
        return claims
      }
      if (result._tag === "Success") {
        for (const [claim, outcome] of Array.zip(claims, result.success)) {
          if (outcome !== undefined && "postponed" in outcome) {
            yield* retry(claim, "postponed", outcome.postponed, duration)
          } else yield* Task.report(claim, outcome === undefined ? "superseded" : "completed", { duration, outcome })
        }
      } else if (result.failure._tag === "TaskFailed") {
        for (const claim of claims) yield* retry(claim, "failed", result.failure.message, duration)
      } else {
        released += claims.length
        for (const claim of claims) yield* Task.report(claim, "released", { duration, reason: result.failure.message })
        yield* Effect.ignore(release(claims))
      }
      for (const claim of claims) held.delete(claim)
      return []
    },
    (running, claims) => Task.traceRun(claims)(running)
  )

  /** Runs tasks, and those that are claimed at its heartbeats, until none is left. */
  const runAll = Effect.fnUntraced(function* (
    given: Group,
    claimMore: (heartbeat: number) => Effect.Effect<Group, SchedulerUnavailable>
  ) {
    if (given.length === 0) return
    // Tasks that were tried before have waited the longest. Those that come later are of organizations that wait.
    const urgent: Array<Group> = []
    const others: Array<Group> = []

    const slots = makeSlots(options.concurrency)
    /** Runs what waits, one group after the other, while there is a slot for it. */
    const runNext: Effect.Effect<void> = Effect.suspend(() => {
      const queue = [urgent, others].find((some) => some.some(slots.isFree)) ?? []
      const [group] = queue.splice(queue.findIndex(slots.isFree), 1)
      if (group === undefined) return Effect.void
      return slots.with(group, run(group)).pipe(
        Effect.flatMap((left) => enqueue(queue, left.map(Array.of))),
        Effect.andThen(runNext)
      )
    })

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
      const [own, shared] = Array.partition(Task.byOrganization(first), (some) =>
        some.length >= size || scheduler.isPerOrganization() ? Result.succeed(some) : Result.fail(some)
      )
      const groups = [shared.flat(), ...own].flatMap((group) => Array.chunksOf(group, size))
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
    yield* release(unreleased)
    // No more than start soon, so that several workers share the tasks of a dead one.
    const expired = 2 * options.concurrency
    const together = yield* claim({ due: options.batch, expired })
    const claimMore = Effect.fnUntraced(function* (heartbeat: number) {
      const isFull = held.size > options.batch || heartbeat < claimsMore.from
      const isOver = heartbeat > claimsMore.yields && (yield* scheduler.hasIsolated)
      const except = new Set(Array.fromIterable(held).map(({ organization }) => organization))
      return yield* claim({ expired, due: isFull || isOver ? 0 : options.batch, except })
    })
    yield* runAll(together, claimMore)
    const isolated = yield* claim({ isolated: 1 })
    yield* runAll(isolated, () => Effect.succeed([]))
    if (isStopping) yield* release(held)
    return together.length + isolated.length - released
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
  const sleep = (ifDue: Duration.Duration): Effect.Effect<void, SchedulerUnavailable> =>
    Effect.flatMap(scheduler.untilDue, (left = Duration.infinity) =>
      Effect.andThen(
        Effect.sleep(Duration.isZero(left) ? ifDue : Duration.min(left, longestSleep)),
        Duration.isGreaterThan(left, longestSleep) ? sleep(Duration.zero) : Effect.void
      )
    )
  const rounds = Effect.uninterruptible(round).pipe(
    // A due task may be locked by another worker.
    Effect.flatMap((claimed) => (claimed > 0 ? Effect.yieldNow : sleep(shortestSleep))),
    Effect.retry(Schedule.spaced("500 millis"))
  )
  return { rounds: Loop.forever("The worker", rounds), stop }
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
      const step = DateTime.now.pipe(
        Effect.flatMap((now) => empty(DateTime.subtractDuration(now, retention), emptied.batch)),
        Effect.orElseSucceed(() => 0),
        Effect.flatMap((count) => Effect.sleep(count < emptied.batch ? emptied.idle : emptied.pause))
      )
      yield* Effect.forkScoped(Loop.forever("The retention of payloads", step))
    })
  )
