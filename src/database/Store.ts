/**
 * The one way in which a statement of a request, or of the worker, goes to a database: in its turn, within its time, and
 * not at all while the database is known to be down.
 */
import { Cause, Clock, Context, Data, Duration, Effect, Exit, type Fiber } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { type Pool, statementOutcomes } from "../observability/Metrics.ts"
import { monotonicOf as now } from "../process/Time.ts"
import * as Series from "../observability/Series.ts"
import * as Admission from "./Admission.ts"
import * as Outage from "./Outage.ts"
import * as Pipeline from "./Pipeline.ts"
import { isReadOnly, isUnreachable, kindOf, reasonOf } from "./SqlFailure.ts"

/** The reason why a statement has no result. */
export type Failure = Data.TaggedEnum<{
  /** The database is up, and had no time for the statement. */
  Busy: { readonly reason: string }
  /** The database refuses the statement, for lack of a privilege or a migration. */
  Refused: { readonly reason: string }
  /** The database cannot be reached, or does not work. */
  Unreachable: { readonly reason: string }
}>
export const Failure = Data.taggedEnum<Failure>()

/** The predicate of a sentence about a database without a result. */
export const describe = Failure.$match({
  Busy: () => "does not answer in time",
  Refused: () => "refuses the service",
  Unreachable: () => "cannot be reached"
})

/** A statement that ended, with its times in milliseconds; or one that was refused. */
export type Accounted = { readonly waited: number; readonly took: number } | { readonly refused: Failure["_tag"] }

/** Receives the statements of the current fiber; by default, a no-op. */
export const Accounting = Context.Reference<(accounted: Accounted) => void>("practice-data/database/Store/Accounting", {
  defaultValue: () => () => {}
})

/** For statements in the background of a request. */
export const unaccounted = Effect.provideService(Accounting, () => {})

/** The milliseconds that a statement waits for a connection. */
const longestWait = Duration.toMillis("1 second")

/** A short read without an answer on a shared connection: none had room, or it failed, or took too long. */
export class NoAnswer extends Data.TaggedError("NoAnswer") {}

// Made once: a stack trace costs more than the rest.
const noAnswer = Effect.fail(new NoAnswer())

/** The numbers of statements that may wait: more than a fair client ever has, and few enough to keep in memory. */
const queues = { waitingPerKey: 256, waiting: 2048 } as const

export interface StatementRequest<E> {
  /** The fairness key. */
  readonly key: string
  /** By default, a key holds as many connections as it leaves to others. */
  readonly share?: Admission.Share
  /** The timeout, from the call to the result. */
  readonly within: Duration.Duration
  /** The error of a statement that has no result. */
  readonly unavailable: (failure: Failure) => E
}

export type Query = readonly [text: string, values: ReadonlyArray<unknown>]

/** An error of statements that is not the database's. */
type Own<E> = Exclude<E, SqlError>

export interface StoreOptions {
  readonly name: string
  /** The name of its pool in the metrics. Without one, it is not measured. */
  readonly pool?: Pool | undefined
  /** Dedicated ones. */
  readonly connections: number
  readonly pipeline?: Pipeline.Pipeline | undefined
  /** True if statements can be cancelled. Others run to their end after their caller has left. */
  readonly isCancellable: boolean
  /** Probes the database on a connection of its own. */
  readonly probe: Effect.Effect<unknown, SqlError>
  /** Closes all connections, to a server that takes no writes any more. */
  readonly disconnect?: () => void
}

const tooMany = Failure.Busy({ reason: "Too many statements are waiting for a connection" })
const noConnection = Failure.Busy({ reason: "No connection became free in time" })
const timedOut = Failure.Busy({ reason: "No response in time" })
const isDown = Failure.Unreachable({ reason: "The database is down" })

const failureOf = (error: SqlError): Failure => Failure[kindOf(error)]({ reason: reasonOf(error) })

const isOwn = <E>(error: E): error is Own<E> => !isSqlError(error)

type Outcome = (typeof statementOutcomes)[number]

/** Measures a pool, its database and its statements until the scope closes. */
const metered = Effect.fnUntraced(function* (
  pool: Pool,
  gauges: Readonly<Record<"connections" | "busy" | "waiting" | "up", () => number>>
) {
  const series = yield* Series.current
  yield* series.read("practice_data_pool_connections", gauges.connections, { pool })
  yield* series.read("practice_data_pool_connections_busy", gauges.busy, { pool })
  yield* series.read("practice_data_pool_waiting", gauges.waiting, { pool })
  yield* series.read("practice_data_dependency_up", gauges.up, { dependency: pool })
  const outages = series.counter("practice_data_dependency_outages_total", { dependency: pool })
  const waits = series.histogram("practice_data_pool_wait_seconds", { pool })
  const durations = series.histogram("practice_data_statement_duration_seconds", { pool })
  const counters = new Map(
    statementOutcomes.map((outcome) => [outcome, series.counter("practice_data_statements_total", { pool, outcome })])
  )
  return {
    /** Times are in milliseconds; `took` is undefined if a statement never had a connection. */
    ended: (outcome: Outcome, waited: number, took: number | undefined) => {
      counters.get(outcome)?.add()
      waits.observe(waited / 1000)
      if (took !== undefined) durations.observe(took / 1000)
    },
    outageBegan: () => outages.add()
  }
})

type Meter = Effect.Success<ReturnType<typeof metered>>

const outcomeOf = (cause: Cause.Cause<unknown>): Outcome => {
  if (Cause.hasInterruptsOnly(cause)) return "interrupted"
  const error = Cause.squash(cause)
  if (!isSqlError(error)) return "failed"
  if (error.reason._tag === "StatementTimeoutError") return "timeout"
  if (kindOf(error) === "Busy") return "busy"
  return error.reason._tag === "ConnectionError" ? "unreachable" : "failed"
}

/** Calls a function after some milliseconds, unless the result is called before. */
const after = (context: Context.Context<never>, millis: number, expired: () => void) => {
  const fiber = Effect.runForkWith(context)(Effect.delay(Effect.sync(expired), millis))
  return () => fiber.interruptUnsafe()
}

export const make = Effect.fnUntraced(function* ({
  connections,
  disconnect = () => {},
  isCancellable,
  name,
  pipeline = Pipeline.make([]),
  pool,
  probe
}: StoreOptions) {
  const admission = Admission.make({ permits: connections, ...queues })
  // Statements that fail at once in an outage: all that wait for a connection, or have run for long.
  const listeners = new Set<() => void>()
  const meter: Meter =
    pool === undefined
      ? { ended: () => {}, outageBegan: () => {} }
      : yield* metered(pool, {
          connections: () => connections + pipeline.size,
          busy: () => connections - admission.stats().free + pipeline.busy(),
          waiting: () => admission.stats().waiting,
          up: () => (outage.isDown() ? 0 : 1)
        })
  const outage: Outage.Outage = yield* Outage.make({
    name,
    probe,
    onDown: () => listeners.forEach((fail) => fail()),
    onOutage: meter.outageBegan
  })
  const warn = ({ _tag, reason }: Failure) => outage[_tag === "Refused" ? "warnRefused" : "warnUnanswered"](reason)

  /**
   * Runs statements, one after the other, for a key. Statements that time out, or whose caller is interrupted, are
   * cancelled where the database can do that; their connection counts as taken until they end. A `run` inside another may
   * wait for itself.
   */
  // A callback, since a fiber and a race for each limit would cost more than many a statement.
  const run = <A, E, R, E1>(request: StatementRequest<E1>, statements: Effect.Effect<A, E, R>) =>
    Effect.contextWith((context: Context.Context<R>) =>
      Effect.callback<A, Own<E> | E1>((resume) => {
        const { key, share = Admission.fair, unavailable, within } = request
        const clock = Context.get(context, Clock.Clock)
        const accounting = Context.get(context, Accounting)
        const refused = (failure: Failure) =>
          Effect.suspend(() => {
            accounting({ refused: failure._tag })
            return Effect.fail(unavailable(failure))
          })
        if (outage.isDown()) {
          meter.ended("unreachable", 0, undefined)
          return resume(refused(isDown))
        }
        const requestedAt = now(clock)
        const millis = Duration.toMillis(within)
        let started: number | undefined
        const fork = Effect.runForkWith(context)
        const successes = outage.successes()
        let running: Fiber.Fiber<void> | undefined
        let cancelTimeout: (() => void) | undefined
        let isDone = false

        /** Ends the statement once. Without a result, its caller has left. */
        const end = (outcome: Outcome, result?: Effect.Effect<A, Own<E> | E1>) => {
          if (isDone) return
          isDone = true
          const ended = now(clock)
          const waited = (started ?? ended) - requestedAt
          const took = started === undefined ? undefined : ended - started
          meter.ended(outcome, waited, took)
          // The response may be sent before `resume` returns.
          accounting({ waited, took: took ?? 0 })
          if (result !== undefined) resume(result)
          cancelTimeout?.()
          listeners.delete(failDown)
          admission.withdraw(waiter)
          if (isCancellable) running?.interruptUnsafe()
        }
        const failDown = () => end("unreachable", refused(isDown))
        const fail = (failure: Failure, outcome: Outcome) => {
          // A caller with a shorter timeout, such as a health check, proves nothing about the database.
          if (millis >= longestWait) fork(warn(failure))
          end(outcome, refused(failure))
        }
        const isQuiet = () => outage.successes() === successes

        const failed = (error: E): Effect.Effect<never, Own<E> | E1> => {
          if (isOwn(error)) return Effect.fail(error)
          if (!isSqlError(error)) return Effect.die(error)
          if (isUnreachable(error) && isQuiet()) outage.begin(error)
          if (isReadOnly(error)) disconnect()
          const failure = failureOf(error)
          if (!outage.isDown()) fork(warn(failure))
          return refused(failure)
        }
        const start = () => {
          started = now(clock)
          listeners.delete(failDown)
          // The fiber ends without a value: otherwise its observers would keep the rows in memory for a while.
          running = fork(
            Effect.matchCause(statements, {
              onSuccess: (value) => {
                outage.succeeded()
                end("success", Effect.succeed(value))
              },
              onFailure: (cause) => end(outcomeOf(cause), Effect.catch(Effect.failCause(cause), failed))
            })
          )
          running.addObserver(() => admission.release(key))
        }
        const waiter: Admission.Waiter = { key, share, start }

        const timeOut = () => fail(timedOut, "timeout")
        const waitedLong = () => {
          if (isQuiet()) {
            if (outage.isDown()) return failDown()
            listeners.add(failDown)
            outage.suspect()
          }
          if (running === undefined) fail(noConnection, "refused")
          else cancelTimeout = after(context, millis - longestWait, timeOut)
        }

        const admitted = admission.request(waiter)
        if (admitted === "refused") return fail(tooMany, "refused")
        // One timer after the other: most statements end before either.
        cancelTimeout = millis > longestWait ? after(context, longestWait, waitedLong) : after(context, millis, timeOut)
        if (admitted === "queued") listeners.add(failDown)
        else start()
        return Effect.sync(() => end("interrupted"))
      })
    )

  const clock = yield* Clock.Clock

  /** Runs a short read on a shared connection. Its caller retries one that has no answer, or a late one. */
  const short = <A extends object>([text, values]: Query): Effect.Effect<ReadonlyArray<A>, NoAnswer> =>
    Effect.contextWith((context: Context.Context<never>) =>
      Effect.callback<ReadonlyArray<A>, NoAnswer>((resume) => {
        const started = now(clock)
        // Nothing may come between taking a place and sending the statement: a place without an answer is lost.
        const connection = outage.isDown() ? undefined : pipeline.take(started)
        if (connection === undefined) return resume(noAnswer)
        let isDone = false
        const end = (outcome?: Outcome) => {
          isDone = true
          clearTimeout(deadline)
          if (outcome === undefined) return
          const took = now(clock) - started
          meter.ended(outcome, 0, took)
          Context.get(context, Accounting)({ waited: 0, took })
        }
        const giveUp = () => {
          if (isDone) return
          end()
          resume(noAnswer)
        }
        // oxlint-disable-next-line effecttsgo/global-timers-in-effect -- a fiber that sleeps costs 4 µs, and this 0.5 µs
        const deadline = setTimeout(() => {
          pipeline.rest(now(clock))
          giveUp()
        }, Pipeline.longestWait)
        connection.send(() => {
          if (isDone) return connection.answered()
          // Not interrupted with the caller: the answers after this one would be given up with it.
          Effect.runForkWith(context)(connection.run<A>(text, values)).addObserver((exit) => {
            connection.answered()
            if (Exit.isFailure(exit)) return giveUp()
            outage.succeeded()
            if (isDone) return
            end("success")
            resume(Effect.succeed(exit.value))
          })
        })
        return Effect.sync(() => end("interrupted"))
      })
    )

  /**
   * Runs a short read that may run twice: first on a shared connection, where one has room. A slow or failed statement is
   * retried on a dedicated connection.
   *
   * @param dedicated runs the statement on a dedicated connection
   */
  const runShort = <A extends object, E, R, E1>(
    request: StatementRequest<E1>,
    query: Query,
    dedicated: () => Effect.Effect<ReadonlyArray<A>, E, R>
  ) => Effect.catch(short<A>(query), () => run(request, dedicated()))

  return {
    run,
    short,
    runShort,
    /** The number of dedicated ones. */
    connections
  }
})

export type Store = Effect.Success<ReturnType<typeof make>>
