/**
 * The one way in which a statement of a request, or of the worker, goes to a database: in its turn, in time, and not at
 * all while the database is known to be down.
 */
import { type Cause, Clock, Context, Data, Duration, Effect, type Fiber, type Scope } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import * as Admission from "./Admission.ts"
import * as Deadlines from "./Deadlines.ts"
import * as Outage from "./Outage.ts"
import { isBusy, isUnreachable, reasonOf } from "./SqlFailure.ts"
import * as Throttle from "./Throttle.ts"

/** Why a statement has no result. */
export type Failure = Data.TaggedEnum<{
  /** The database is there, and had no time for the statement. */
  Busy: { readonly reason: string }
  /** The database cannot be reached, or cannot work. */
  Unreachable: { readonly reason: string }
}>
export const Failure = Data.taggedEnum<Failure>()

/** How long anyone waits for a connection. */
const patience = Duration.toMillis("1 second")

/** Applicants that may wait: more than a fair client ever has, and little enough to keep in memory. */
const queues = { waitingPerKey: 256, waiting: 2048 } as const

/** What to look at when a statement has not answered for a while. A failure of it is answered in its stead. */
export interface Check<E> {
  readonly after: Duration.Duration
  readonly effect: Effect.Effect<unknown, E>
}

export interface Request<E, E2 = never> {
  /** On whose behalf. Connections are shared fairly between keys. */
  readonly key: string
  /** How many connections the key may hold; by default, as many as it leaves to others. */
  readonly share?: Admission.Share
  /** How long the answer may take in all. */
  readonly within: Duration.Duration
  /** The error of a database that has no answer. */
  readonly unavailable: (failure: Failure) => E
  readonly check?: Check<E2>
}

/** An error of statements that is not the database's. */
type Own<E> = Exclude<E, SqlError>

export interface Store {
  /**
   * Runs statements, one after the other, on behalf of a key. A statement that is out of time, or whose caller leaves,
   * is cancelled where the database can do that; its connection counts as taken until it is through. One `run` inside
   * another may wait for itself.
   */
  readonly run: <A, E, R, E1, E2 = never>(
    request: Request<E1, E2>,
    statements: Effect.Effect<A, E, R>
  ) => Effect.Effect<A, Own<E> | E1 | E2, R>
}

export interface Options {
  /** The name of the database, for the log. */
  readonly name: string
  /** How many connections its pool has. */
  readonly connections: number
  /** Whether a statement can be cancelled. One that cannot is left to run to its end when nobody waits for it. */
  readonly isCancellable: boolean
  /** Asks the database for a sign of life on a connection of its own. */
  readonly probe: Effect.Effect<unknown, SqlError>
}

const tooMany = Failure.Busy({ reason: "Too many are waiting for a connection" })
const waitedInVain = Failure.Busy({ reason: "No connection became free in time" })
const outOfTime = Failure.Busy({ reason: "There was no answer in time" })
const isDown = Failure.Unreachable({ reason: "The database is down" })

const failureOf = (error: SqlError) =>
  isBusy(error) ? Failure.Busy({ reason: reasonOf(error) }) : Failure.Unreachable({ reason: reasonOf(error) })

const isOwn = <E>(error: E): error is Own<E> => !isSqlError(error)

const catchSqlError = <E, E2>(cause: Cause.Cause<E>, failed: (error: SqlError) => Effect.Effect<never, E2>) =>
  Effect.flatMap(Effect.flip(Effect.failCause(cause)), (error): Effect.Effect<never, Own<E> | E2> => {
    if (isOwn(error)) return Effect.fail(error)
    return isSqlError(error) ? failed(error) : Effect.die(error)
  })

/** Guards a pool of connections until the scope closes. */
export const make = Effect.fnUntraced(function* ({
  connections,
  isCancellable,
  name,
  probe
}: Options): Effect.fn.Return<Store, never, Scope.Scope> {
  const admission = Admission.make({ permits: connections, ...queues })
  const deadlines = yield* Deadlines.make
  // Who hears of an outage at once: all that wait for a connection, or for an answer longer than they should.
  const waiting = new Set<() => void>()
  const outage = yield* Outage.make({ name, probe, onDown: () => waiting.forEach((refuse) => refuse()) })
  const warn = Throttle.make(`The ${name} did not answer`)

  const run = <A, E, R, E1, E2 = never>(request: Request<E1, E2>, statements: Effect.Effect<A, E, R>) =>
    Effect.contextWith((context: Context.Context<R>) =>
      Effect.callback<A, Own<E> | E1 | E2>((resume) => {
        const { check, key, share = Admission.fair, unavailable, within } = request
        const down = Effect.suspend(() => Effect.fail(unavailable(isDown)))
        if (outage.isDown()) return resume(down)
        const clock = Context.get(context, Clock.Clock)
        const fork = Effect.runForkWith(context)
        const successes = outage.successes()
        const cancels: Array<Deadlines.Cancel> = []
        let asked: Fiber.Fiber<void> | undefined
        let checked: Fiber.Fiber<void> | undefined
        let isOver = false

        const leave = () => {
          isOver = true
          for (const cancel of cancels) cancel()
          waiting.delete(refuse)
          admission.withdraw(applicant)
          checked?.interruptUnsafe()
          if (isCancellable) asked?.interruptUnsafe()
        }
        const answer = (found: Effect.Effect<A, Own<E> | E1 | E2>) => {
          if (isOver) return
          resume(found)
          leave()
        }
        const refuse = () => answer(down)
        const fail = (failure: Failure) => {
          fork(warn(failure.reason))
          answer(Effect.fail(unavailable(failure)))
        }
        const after = (millis: number, then: () => void) => cancels.push(deadlines.set(clock, millis, then))
        const isQuiet = () => outage.successes() === successes

        const failed = (error: SqlError) => {
          if (isUnreachable(error) && isQuiet()) outage.begin(error)
          if (!outage.isDown()) fork(warn(reasonOf(error)))
          return Effect.fail(unavailable(failureOf(error)))
        }
        const begin = () => {
          waiting.delete(refuse)
          // The fiber ends with nothing: what has waited for it would else keep its rows in memory for a while.
          asked = fork(
            Effect.matchCause(statements, {
              onSuccess: (value) => {
                outage.succeeded()
                answer(Effect.succeed(value))
              },
              onFailure: (cause) => answer(catchSqlError(cause, failed))
            })
          )
          asked.addObserver(() => admission.release(key))
          if (check !== undefined && !isOver) {
            after(Duration.toMillis(check.after), () => {
              checked = fork(
                Effect.matchCause(check.effect, {
                  onSuccess: () => undefined,
                  onFailure: (cause) => answer(Effect.failCause(cause))
                })
              )
            })
          }
        }
        const isImpatient = () => {
          if (isQuiet()) {
            waiting.add(refuse)
            outage.suspect()
          }
          if (asked === undefined) fail(waitedInVain)
        }
        const applicant: Admission.Applicant = {
          key,
          share,
          granted: begin
        }

        const applied = admission.apply(applicant)
        if (applied === "refused") return fail(tooMany)
        after(Duration.toMillis(within), () => fail(outOfTime))
        after(patience, isImpatient)
        if (applied === "granted") begin()
        else waiting.add(refuse)
        return Effect.sync(leave)
      })
    )
  return { run }
})
