/**
 * The one way in which a statement of a request, or of the worker, goes to a database: in its turn, within its time, and
 * not at all while the database is known to be down.
 */
import { Cause, Clock, Context, Data, Duration, Effect, Exit, type Fiber, type Scope, type Tracer } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { Pool } from "../observability/Metrics.ts"
import * as Tracing from "../observability/Tracing.ts"
import * as Admission from "./Admission.ts"
import * as Outage from "./Outage.ts"
import * as Pipeline from "./Pipeline.ts"
import { isBusy, isRefusal, isUnreachable, reasonOf } from "./SqlFailure.ts"
import * as StoreMetrics from "./StoreMetrics.ts"
import * as Throttle from "../observability/Throttle.ts"
import * as Timeouts from "./Timeouts.ts"

/** Why a statement has no result. */
export type Failure = Data.TaggedEnum<{
  /** The database is there, and had no time for the statement. */
  Busy: { readonly reason: string }
  /** The database refuses the statement, as without a privilege or a migration. */
  Refused: { readonly reason: string }
  /** The database cannot be reached, or cannot work. */
  Unreachable: { readonly reason: string }
}>
export const Failure = Data.taggedEnum<Failure>()

/** What a database does that gives no result, to follow its name. */
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

/** Runs statements on nobody's account, as in the background of a request. */
export const unaccounted = Effect.provideService(Accounting, () => {})

/** The monotonic clock, in milliseconds. */
const now = (clock: Clock.Clock) => Number(clock.monotonicTimeNanosUnsafe()) / 1_000_000

/** How long a statement waits for a connection. */
const longestWait = Duration.toMillis("1 second")

/** How many statements may wait: more than a fair client ever has, and few enough to keep in memory. */
const queues = { waitingPerKey: 256, waiting: 2048 } as const

export interface Request<E> {
  /** On whose behalf. Connections are shared fairly between keys. */
  readonly key: string
  /** How many connections the key may hold; by default, as many as it leaves to others. */
  readonly share?: Admission.Share
  /** The timeout, from the call to the result. */
  readonly within: Duration.Duration
  /** The error of a statement that has no result. */
  readonly unavailable: (failure: Failure) => E
}

/** The text of a statement, and its values. */
export type Query = readonly [text: string, values: ReadonlyArray<unknown>]

/** An error of statements that is not the database's. */
type Own<E> = Exclude<E, SqlError>

export interface Store {
  /**
   * Runs statements, one after the other, on behalf of a key. Statements that time out, or whose caller is interrupted,
   * are cancelled where the database can do that; their connection counts as taken until they end. A `run` inside
   * another may wait for itself.
   */
  readonly run: <A, E, R, E1>(
    request: Request<E1>,
    statements: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, Own<E> | E1, R>
  /**
   * Runs a read that is short and may be run twice: first on a connection that it shares with others, where there is
   * one. What has no answer soon there, or fails, is run like any other.
   *
   * @param query the text and the values of the statement
   * @param alone what runs the statement like any other
   */
  readonly runShort: <A, E, R, E1>(
    request: Request<E1>,
    query: Query,
    alone: () => Effect.Effect<ReadonlyArray<A>, E, R>
  ) => Effect.Effect<ReadonlyArray<A>, Own<E> | E1, R>
}

export interface Options {
  /** The name of the database, for the log. */
  readonly name: string
  /** The name of its pool in the metrics. Without one, it is not measured. */
  readonly pool?: Pool | undefined
  /** How many connections its pool has. */
  readonly connections: number
  /** Connections beside those of the pool, for short reads. */
  readonly pipeline?: Pipeline.Pipeline | undefined
  /** Whether a statement can be cancelled. One that cannot runs to its end when nobody waits for it. */
  readonly isCancellable: boolean
  /** Asks the database for a sign of life on a connection of its own. */
  readonly probe: Effect.Effect<unknown, SqlError>
}

const tooMany = Failure.Busy({ reason: "Too many are waiting for a connection" })
const noConnection = Failure.Busy({ reason: "No connection became free in time" })
const timedOut = Failure.Busy({ reason: "There was no answer in time" })
const isDown = Failure.Unreachable({ reason: "The database is down" })

const failureOf = (error: SqlError): Failure => {
  const reason = reasonOf(error)
  if (isBusy(error)) return Failure.Busy({ reason })
  return isRefusal(error) ? Failure.Refused({ reason }) : Failure.Unreachable({ reason })
}

const isOwn = <E>(error: E): error is Own<E> => !isSqlError(error)

const catchSqlError = <E, E2>(cause: Cause.Cause<E>, failed: (error: SqlError) => Effect.Effect<never, E2>) =>
  Effect.flatMap(Effect.flip(Effect.failCause(cause)), (error): Effect.Effect<never, Own<E> | E2> => {
    if (isOwn(error)) return Effect.fail(error)
    return isSqlError(error) ? failed(error) : Effect.die(error)
  })

const outcomeOf = (cause: Cause.Cause<unknown>): StoreMetrics.Outcome => {
  if (Cause.hasInterruptsOnly(cause)) return "interrupted"
  const error = Cause.squash(cause)
  if (!isSqlError(error)) return "failed"
  if (error.reason._tag === "StatementTimeoutError") return "timeout"
  if (isBusy(error)) return "busy"
  return error.reason._tag === "ConnectionError" ? "unreachable" : "failed"
}

/** Guards a pool of connections until the scope closes. */
export const make = Effect.fnUntraced(function* ({
  connections,
  isCancellable,
  name,
  pipeline = Pipeline.make([]),
  pool,
  probe
}: Options): Effect.fn.Return<Store, never, Scope.Scope> {
  const admission = Admission.make({ permits: connections, ...queues })
  const startTimeout = yield* Timeouts.make
  // Who is told of an outage at once: all that wait for a connection, or have run for long.
  const listeners = new Set<() => void>()
  const metrics =
    pool === undefined ? StoreMetrics.none : yield* StoreMetrics.make({ pool, connections, admission, pipeline })
  const outage = yield* Outage.make({
    name,
    probe,
    onDown: () => listeners.forEach((fail) => fail()),
    onOutage: metrics.outageBegan
  })
  yield* metrics.watch(outage.isDown)
  const warnUnanswered = Throttle.make(`The ${name} did not answer`)
  const warnRefused = Throttle.make(`The ${name} refuses the service`)
  const warn = ({ _tag, reason }: Failure) => (_tag === "Refused" ? warnRefused : warnUnanswered)(reason)

  // A callback, since a fiber and a race for each limit would cost more than many a statement.
  const run = <A, E, R, E1>(request: Request<E1>, statements: Effect.Effect<A, E, R>) =>
    Effect.contextWith((context: Context.Context<R>) =>
      Effect.callback<A, Own<E> | E1>((resume) => {
        const { key, share = Admission.fair, unavailable, within } = request
        const clock = Context.get(context, Clock.Clock)
        const accounting = Context.get(context, Accounting)
        const refused = (failure: Failure) =>
          Effect.suspend(() => {
            if (failure._tag === "Unreachable") outage.refused()
            accounting({ refused: failure._tag })
            return Effect.fail(unavailable(failure))
          })
        if (outage.isDown()) {
          metrics.ended("unreachable", 0, undefined)
          return resume(refused(isDown))
        }
        const asked = now(clock)
        const millis = Duration.toMillis(within)
        let started: number | undefined
        const fork = Effect.runForkWith(context)
        const successes = outage.successes()
        let running: Fiber.Fiber<void> | undefined
        let cancelTimeout: (() => void) | undefined
        let isDone = false
        let wait: Tracer.Span | undefined

        const endWait = () => wait?.end(Tracing.now(context), Exit.void)
        const account = (outcome: StoreMetrics.Outcome) => {
          const ended = now(clock)
          const waited = (started ?? ended) - asked
          const took = started === undefined ? undefined : ended - started
          metrics.ended(outcome, waited, took)
          accounting({ waited, took: took ?? 0 })
        }
        const end = () => {
          isDone = true
          endWait()
          cancelTimeout?.()
          listeners.delete(failDown)
          admission.withdraw(waiter)
          if (isCancellable) running?.interruptUnsafe()
        }
        const complete = (result: Effect.Effect<A, Own<E> | E1>, what: StoreMetrics.Outcome) => {
          if (isDone) return
          // The response may be sent before this returns.
          account(what)
          resume(result)
          end()
        }
        const failDown = () => complete(refused(isDown), "unreachable")
        const fail = (failure: Failure, what: StoreMetrics.Outcome) => {
          if (running === undefined) wait?.attribute(Tracing.errorType, "NoConnection")
          // A caller with less patience, such as a health check, says so itself: it proves nothing of the database.
          if (millis >= longestWait) fork(warn(failure))
          complete(refused(failure), what)
        }
        const isQuiet = () => outage.successes() === successes

        const failed = (error: SqlError) => {
          if (isUnreachable(error) && isQuiet()) outage.begin(error)
          const failure = failureOf(error)
          if (!outage.isDown()) fork(warn(failure))
          return refused(failure)
        }
        const start = () => {
          started = now(clock)
          listeners.delete(failDown)
          endWait()
          // The fiber ends with nothing: otherwise what has waited for it would keep its rows in memory for a while.
          running = fork(
            Effect.matchCause(statements, {
              onSuccess: (value) => {
                outage.succeeded()
                complete(Effect.succeed(value), "success")
              },
              onFailure: (cause) => complete(catchSqlError(cause, failed), outcomeOf(cause))
            })
          )
          running.addObserver(() => admission.release(key))
        }
        const waiter: Admission.Waiter = { key, share, start }

        const timeOut = () => fail(timedOut, "timeout")
        const waitedLong = () => {
          if (isQuiet()) {
            listeners.add(failDown)
            outage.suspect()
          }
          if (running === undefined) fail(noConnection, "refused")
          else cancelTimeout = startTimeout(clock, millis - longestWait, timeOut)
        }

        const admitted = admission.request(waiter)
        if (admitted === "refused") return fail(tooMany, "refused")
        // One after the other: most statements end before either.
        cancelTimeout =
          millis > longestWait ? startTimeout(clock, longestWait, waitedLong) : startTimeout(clock, millis, timeOut)
        if (admitted === "queued") {
          wait = Tracing.child(context, "Store.wait")
          listeners.add(failDown)
        } else start()
        return Effect.sync(() => {
          account("interrupted")
          end()
        })
      })
    )

  const runShort = <A, E, R, E1>(
    request: Request<E1>,
    [text, values]: Query,
    alone: () => Effect.Effect<ReadonlyArray<A>, E, R>
  ) =>
    Effect.contextWith((context: Context.Context<R>) => {
      const clock = Context.get(context, Clock.Clock)
      return Effect.callback<ReadonlyArray<A>, Own<E> | E1, R>((resume) => {
        const started = now(clock)
        // Taken where nothing can come between it and the statement: a place that is never answered is lost.
        const connection = outage.isDown() ? undefined : pipeline.take(started)
        if (connection === undefined) return resume(run(request, alone()))
        let isDone = false
        const end = (outcome: StoreMetrics.Outcome | undefined) => {
          isDone = true
          cancelTimeout()
          if (outcome === undefined) return
          const took = now(clock) - started
          metrics.ended(outcome, 0, took)
          Context.get(context, Accounting)({ waited: 0, took })
        }
        const runAlone = () => {
          if (isDone) return
          end(undefined)
          resume(run(request, alone()))
        }
        const cancelTimeout = startTimeout(clock, Pipeline.longestWait, () => {
          pipeline.rest(now(clock))
          runAlone()
        })
        connection.send(() => {
          if (isDone) return connection.answered()
          // Not interrupted with the caller: the answers after this one would be given up with it.
          Effect.runForkWith(context)(
            Effect.matchCause(connection.run<A & object>(text, values), {
              onSuccess: (rows) => {
                connection.answered()
                outage.succeeded()
                if (isDone) return
                end("success")
                resume(Effect.succeed(rows))
              },
              onFailure: () => {
                connection.answered()
                runAlone()
              }
            })
          )
        })
        return Effect.sync(() => end("interrupted"))
      })
    })

  return { run, runShort }
})
