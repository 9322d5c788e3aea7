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
  MutableRef,
  Option,
  PartitionedSemaphore,
  Semaphore
} from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Pool } from "../observability/Metrics.ts"
import { CurrentNotes, noteStatement } from "../observability/RequestFacts.ts"
import * as Series from "../observability/Series.ts"
import * as Logging from "../observability/Logging.ts"
import { monotonicMillis as now } from "../observability/Time.ts"
import * as Outage from "./Outage.ts"
import { Failure, toFailure } from "./SqlFailure.ts"

/** The milliseconds that a statement waits for a connection. */
const longestWait = 1000

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

export interface StoreOptions extends Outage.OutageOptions {
  /** The name of its pool in the metrics. Without one, it is not measured. */
  readonly pool?: Pool | undefined
  readonly connections: number
  /** True if statements can be cancelled. Others run to their end after their caller has left. */
  readonly isCancellable: boolean
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

/** Measures a pool, its database and its statements until the scope closes. */
const metered = Effect.fnUntraced(function* (
  pool: Pool,
  gauges: Readonly<Record<"connections" | "busy" | "up", () => number>>
) {
  const series = yield* Series.current
  yield* series.read("practice_data_pool_connections", gauges.connections, { pool })
  yield* series.read("practice_data_pool_connections_busy", gauges.busy, { pool })
  yield* series.read("practice_data_dependency_up", gauges.up, { dependency: pool })
  const waits = series.histogram("practice_data_pool_wait_seconds", { pool })
  const durations = series.histogram("practice_data_statement_duration_seconds", { pool })
  const counter = (outcome: ReturnType<typeof statementOutcome>) =>
    series.counter("practice_data_statements_total", { pool, outcome })
  const counters = { success: counter("success"), failed: counter("failed"), interrupted: counter("interrupted") }
  return {
    /** Times are in milliseconds; `took` is undefined if a statement never had a connection. */
    ended: (outcome: keyof typeof counters, waited: number, took: number | undefined) => {
      counters[outcome].add()
      waits.observe(waited / 1000)
      if (took !== undefined) durations.observe(took / 1000)
    }
  }
})

export const make = Effect.fnUntraced(function* (options: StoreOptions) {
  const { connections, isCancellable, name, pool } = options
  const permits = yield* PartitionedSemaphore.make<string>({ permits: connections })
  const share = Math.max(1, connections - 2)
  const shares = yield* Cache.make({ capacity: mostKeys, lookup: (_key: string) => Semaphore.make(share) })
  const busy = MutableRef.make(0)
  const outage = yield* Outage.make(options)
  const gauges = { connections: () => connections, busy: () => busy.current, up: () => Number(!outage.isDown()) }
  const meter = pool && (yield* metered(pool, gauges))
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
    const before = outage.successes()
    const begun = MutableRef.make<number | undefined>(undefined)

    const statement = Effect.suspend((): Effect.Effect<A, E | GivenUp, R> => {
      if (outage.isDown()) return isDown
      begun.current = now(clock)
      return outage.observe(isCancellable ? statements : Effect.uninterruptible(statements))
    })
    const counted = Effect.acquireUseRelease(
      Effect.sync(() => MutableRef.increment(busy)),
      () => statement,
      () => Effect.sync(() => MutableRef.decrement(busy))
    )
    const admitted = Effect.flatMap(Cache.get(shares, key), (own) => own.withPermit(permits.withPermit(key)(counted)))

    const wait = Effect.fnUntraced(function* (result: Effect.Effect<A, E | GivenUp>) {
      const early = yield* Effect.timeoutOption(result, Math.min(limit, longestWait))
      if (Option.isSome(early)) return early.value
      if (limit <= longestWait) return yield* timedOut
      outage.suspect(before)
      if (begun.current === undefined) return yield* noConnection
      const ended = Effect.raceFirst(result, Effect.andThen(outage.begun, isDown))
      return yield* Effect.timeoutOrElse(ended, { duration: limit - longestWait, orElse: () => timedOut })
    })

    // In a fiber of its own, which is cancelled in the background: where a server hangs, that takes seconds.
    const result = Effect.acquireUseRelease(
      Effect.forkDetach(admitted, { startImmediately: true }),
      (fiber) => wait(Fiber.join(fiber)),
      (fiber) => Effect.sync(() => fiber.interruptUnsafe())
    )
    return yield* (outage.isDown() ? isDown : result).pipe(
      Effect.onExit((exit) =>
        Effect.sync(() => {
          const { current: started = now(clock) } = begun
          const [waited, took] = [started - requested, now(clock) - started]
          if (notes !== undefined) noteStatement(notes, waited, took)
          meter?.ended(statementOutcome(exit), waited, begun.current === undefined ? undefined : took)
        })
      ),
      Effect.catchIf(isUnanswered, (error) => {
        const failure = error instanceof GivenUp ? error.failure : toFailure(error)
        if (notes !== undefined) notes.refusal = failure._tag === "Busy" ? "load" : "outage"
        // A caller with a shorter timeout, such as a health check, proves nothing about the database.
        const isSilent = outage.isDown() || (error instanceof GivenUp && limit < longestWait)
        const warn = failure._tag === "Refused" ? warnRefused : warnUnanswered
        return Effect.andThen(isSilent ? Effect.void : warn(failure.reason), Effect.fail(unavailable(failure)))
      })
    )
  })

  return {
    run,
    connections,
    isDown: outage.isDown,
    /** Counts a statement that had its result without `run`, after some milliseconds. */
    answered: (took: number) => {
      outage.succeeded()
      meter?.ended("success", 0, took)
    }
  }
})

// An interface has a name in declarations.
export interface Store extends Effect.Success<ReturnType<typeof make>> {}
