/**
 * The one way in which a statement of a request, or of the worker, goes to a database: in its turn, within its time, and
 * not at all while the database is known to be down.
 */
import {
  Cache,
  Cause,
  Clock,
  Data,
  Duration,
  Effect,
  Exit,
  Fiber,
  FiberHandle,
  Latch,
  MutableRef,
  Option,
  PartitionedSemaphore,
  Semaphore
} from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { CurrentNotes, noteStatement } from "../observability/RequestFacts.ts"
import * as Metrics from "../observability/Metrics.ts"
import * as Logging from "../observability/Logging.ts"
import { monotonicMillis as now } from "../observability/Time.ts"
import { Failure, isReadOnly, isShort, isUnreachable, safeReason, toFailure } from "./SqlFailure.ts"

/** The milliseconds that a statement waits for a connection. */
const longestWait = 1000

/** The time before the next probe of a database that is down, or slow. */
const pause = "200 millis"

/** The keys whose connections are counted: more than have a connection. */
const mostKeys = 1000

export interface StatementRequest<E> {
  /**
   * The fairness key, such as an organization. Waiting keys are served in turn, and each leaves two connections to others.
   */
  readonly key: string
  /** The timeout, from the call to the result. */
  readonly within: Duration.Duration
  /** The error of a statement that has no result. */
  readonly unavailable: (failure: Failure) => E
}

export interface StoreOptions {
  /** Its name in the log. */
  readonly name: string
  /** The name of its pool in the metrics. Without one, it is not measured. */
  readonly pool?: Metrics.Pool | undefined
  readonly connections: number
  /** True if statements can be cancelled. Others run to their end after their caller has left. */
  readonly isCancellable: boolean
  /** Probes the database on a connection of its own. */
  readonly probe: Effect.Effect<unknown, SqlError>
  /** Closes all connections, to a server that takes no writes any more. */
  readonly disconnect?: () => void
}

/** The store has given a statement up. */
export class GivenUp extends Data.TaggedError("GivenUp")<{ readonly failure: Failure }> {}

const givenUp = (failure: Failure) => Effect.fail(new GivenUp({ failure }))

// Made once: a stack trace costs more than the rest.
const noConnection = givenUp(Failure.Busy({ reason: "No connection became free in time" }))
const timedOut = givenUp(Failure.Busy({ reason: "No response in time" }))
const isDown = givenUp(Failure.Unreachable({ reason: "The database is down" }))

const isUnanswered = <E>(error: E): error is Extract<E, SqlError | GivenUp> =>
  error instanceof GivenUp || isSqlError(error)

const statementOutcome = (exit: Exit.Exit<unknown, unknown>) =>
  Exit.isSuccess(exit) ? "success" : Cause.hasInterruptsOnly(exit.cause) ? "interrupted" : "failed"

/**
 * The state of a database, watched until the scope closes. An outage begins with a connection that cannot be made, never
 * with a statement that fails. It ends with a statement that succeeds, or a probe.
 */
const makeOutage = Effect.fnUntraced(function* ({ disconnect, name, probe }: StoreOptions) {
  const down = Latch.makeUnsafe()
  const reason = MutableRef.make("")
  const successes = MutableRef.make(0)
  // A database that has no connection left is up: those that are open work.
  const reach = Effect.catchIf(probe, isShort, () => Effect.void)

  /** Begins an outage, unless more statements have succeeded than `before`. */
  const begin = (error: SqlError, before: number) => {
    if (down.isOpen() || successes.current > before) return
    reason.current = safeReason(error)
    down.openUnsafe()
  }

  const succeeded = () => {
    MutableRef.increment(successes)
    down.closeUnsafe()
  }

  const watch = Effect.gen(function* () {
    yield* down.await
    const warning = Effect.logWarning(`The ${name} cannot be reached`)
    yield* Effect.annotateLogs(warning, { dependency: name, reason: reason.current })
    while (down.isOpen()) {
      yield* Effect.sleep(pause)
      if (down.isOpen()) yield* Effect.ignore(Effect.andThen(reach, down.close))
      // It may be gone again at once.
      if (!down.isOpen()) yield* Effect.sleep("1 second")
    }
    yield* Effect.annotateLogs(Effect.log(`The ${name} is back`), { dependency: name })
  })
  yield* Effect.forkScoped(Effect.forever(watch))
  const inBackground = yield* FiberHandle.makeRuntime<never>()

  return {
    down,
    succeeded,
    successes,
    /** Observes statements, with the number of those that had succeeded before. */
    observe: <A, E, R>(statements: Effect.Effect<A, E, R>, before = successes.current) =>
      Effect.onExit(statements, (exit) =>
        Effect.sync(() => {
          if (Exit.isSuccess(exit)) return succeeded()
          const error = Cause.squash(exit.cause)
          if (!isSqlError(error)) return
          if (isUnreachable(error)) begin(error, before)
          if (isReadOnly(error)) disconnect?.()
        })
      ),
    /** Probes the database, unless more statements have succeeded than `before`. If the probe fails, an outage begins. */
    suspect: (before: number) => {
      if (successes.current > before) return
      const probed = Effect.matchEffect(reach, {
        onFailure: (error) => Effect.sync(() => begin(error, before)),
        // A busy database is not probed more often than one that is down.
        onSuccess: () => Effect.sleep(pause)
      })
      inBackground(probed, { onlyIfMissing: true })
    }
  }
})

type Permits = PartitionedSemaphore.PartitionedSemaphore<string>

/** Measures a pool, its database and its statements until the scope closes. */
const metered = Effect.fnUntraced(function* (pool: Metrics.Pool, permits: Permits, down: Latch.Latch) {
  const series = yield* Metrics.series
  const run = Effect.runSyncWith(yield* Effect.context())
  const busy = () => permits.capacity - run(permits.available)
  yield* series.read("practice_data_pool_connections", () => permits.capacity, { pool })
  yield* series.read("practice_data_pool_connections_busy", busy, { pool })
  yield* series.read("practice_data_dependency_up", () => (down.isOpen() ? 0 : 1), { dependency: pool })
  const waits = series.histogram("practice_data_pool_wait_seconds", { pool })
  const durations = series.histogram("practice_data_statement_duration_seconds", { pool })
  const counter = (outcome: ReturnType<typeof statementOutcome>) =>
    series.counter("practice_data_statements_total", { pool, outcome })
  const counters = { success: counter("success"), failed: counter("failed"), interrupted: counter("interrupted") }
  /** Counts a statement. Times are in milliseconds; `took` is undefined if it never had a connection. */
  return (outcome: keyof typeof counters, waited: number, took: number | undefined) => {
    counters[outcome].add()
    waits.observe(waited / 1000)
    if (took !== undefined) durations.observe(took / 1000)
  }
})

export const make = Effect.fnUntraced(function* (options: StoreOptions) {
  const { connections, isCancellable, name, pool } = options
  const permits = yield* PartitionedSemaphore.make<string>({ permits: connections })
  const share = Math.max(1, connections - 2)
  const shares = yield* Cache.make({ capacity: mostKeys, lookup: (_key: string) => Semaphore.make(share) })
  const { down, observe, succeeded, successes, suspect } = yield* makeOutage(options)
  const count = pool && (yield* metered(pool, permits, down))
  const warnUnanswered = Logging.limitedWarning(`The ${name} did not answer`)
  const warnRefused = Logging.limitedWarning(`The ${name} refuses the service`)

  /**
   * Runs statements, one after the other, for a key. Statements that time out, or whose caller is interrupted, are
   * cancelled where the database can do that; their connection counts as taken until they end. A `run` inside another may
   * wait for itself.
   */
  const run = Effect.fnUntraced(function* <A, E, R, E1>(
    { key, unavailable, within }: StatementRequest<E1>,
    statements: Effect.Effect<A, E, R>
  ) {
    const clock = yield* Clock.Clock
    const notes = yield* CurrentNotes
    const limit = Duration.toMillis(within)
    const requested = now(clock)
    const before = successes.current
    const begun = MutableRef.make<number | undefined>(undefined)

    const statement = Effect.suspend((): Effect.Effect<A, E | GivenUp, R> => {
      if (down.isOpen()) return isDown
      begun.current = now(clock)
      return observe(isCancellable ? statements : Effect.uninterruptible(statements))
    })
    const admitted = Effect.flatMap(Cache.get(shares, key), (own) => own.withPermit(permits.withPermit(key)(statement)))

    const wait = Effect.fnUntraced(function* (result: Effect.Effect<A, E | GivenUp>) {
      const early = yield* Effect.timeoutOption(result, Math.min(limit, longestWait))
      if (Option.isSome(early)) return early.value
      if (limit <= longestWait) return yield* timedOut
      suspect(before)
      if (begun.current === undefined) return yield* noConnection
      const ended = Effect.raceFirst(result, Effect.andThen(down.await, isDown))
      return yield* Effect.timeoutOrElse(ended, { duration: limit - longestWait, orElse: () => timedOut })
    })

    // In a fiber of its own, which is cancelled in the background: where a server hangs, that takes seconds.
    const result = Effect.acquireUseRelease(
      Effect.forkDetach(admitted, { startImmediately: true }),
      (fiber) => wait(Fiber.join(fiber)),
      (fiber) => Effect.sync(() => fiber.interruptUnsafe())
    )
    return yield* (down.isOpen() ? isDown : result).pipe(
      Effect.onExit((exit) =>
        Effect.sync(() => {
          const { current: started = now(clock) } = begun
          const [waited, took] = [started - requested, now(clock) - started]
          if (notes !== undefined) noteStatement(notes, waited, took)
          count?.(statementOutcome(exit), waited, begun.current === undefined ? undefined : took)
        })
      ),
      Effect.catchIf(isUnanswered, (error) => {
        const failure = error instanceof GivenUp ? error.failure : toFailure(error)
        if (notes !== undefined) notes.refusal = failure._tag === "Busy" ? "load" : "outage"
        // A caller with a shorter timeout, such as a health check, proves nothing about the database.
        const isSilent = down.isOpen() || (error instanceof GivenUp && limit < longestWait)
        const warn = failure._tag === "Refused" ? warnRefused : warnUnanswered
        return Effect.andThen(isSilent ? Effect.void : warn(failure.reason), Effect.fail(unavailable(failure)))
      })
    )
  })

  return {
    run,
    connections,
    isDown: () => down.isOpen(),
    /** Counts a statement that had its result without `run`, after some milliseconds. */
    answered: (took: number) => {
      succeeded()
      count?.("success", 0, took)
    }
  }
})

// An interface has a name in declarations.
export interface Store extends Effect.Success<ReturnType<typeof make>> {}
