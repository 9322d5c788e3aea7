/**
 * Connections that short reads share: each is sent without waiting for the answers to those before it, and those of one
 * turn of the event loop in one write. That costs less than a connection for each, here and in the database.
 *
 * Answers come in the order of the statements, so a slow one delays those behind it. The caller retries slow or failed
 * statements on a dedicated connection; after a slow one, nothing is sent this way for a while.
 */
import { PgConnection } from "@effect/sql-pg"
import { Clock, Context, Data, Duration, Effect, Exit, References, Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { spanName } from "effect/sql/Statement"
import * as Time from "../process/Time.ts"
import { Accounting, type StatementRequest, type Store } from "./Store.ts"

export interface SharedConnection {
  /** Runs a statement. The type of its rows is unchecked, as for `unsafe` of a client. */
  readonly run: <A extends object>(
    text: string,
    values: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<A>, SqlError>
}

/** A network may forget a connection that is idle for longer, and tell nobody. In milliseconds. */
const longestIdle = Duration.toMillis("30 seconds")

// As unchecked as `unsafe` of the client: a text of SQL tells no types.
function rowsOf<A extends object>(result: PgConnection.Result): ReadonlyArray<A>
function rowsOf({ rows }: PgConnection.Result): ReadonlyArray<object> {
  return rows
}

/**
 * A connection that opens when it is needed, and again after it was closed, or idle for long: then it closes, as it does
 * with the scope. A pool of one would do the same: its lease of each statement costs a tenth of a single record's CPU time.
 *
 * @param attributes of the span of each statement
 */
export const connect = Effect.fnUntraced(function* (
  config: PgConnection.Config,
  attributes: Readonly<Record<string, unknown>>
): Effect.fn.Return<SharedConnection, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const clock = yield* Clock.Clock
  const fork = Effect.runForkWith(yield* Effect.context())
  let opening: Effect.Effect<PgConnection.PgConnection, SqlError> | undefined
  let current: PgConnection.PgConnection | undefined
  /** The scope of the connection that is open, or opening. */
  let own: Scope.Closeable | undefined
  let lastUsed = 0

  const close = (closed: Scope.Closeable | undefined) => {
    if (closed === undefined || closed !== own) return
    own = opening = current = undefined
    fork(Scope.close(closed, Exit.void))
  }

  const open = Effect.suspend(() => {
    const opened = Scope.forkUnsafe(scope)
    own = opened
    const { stream } = config
    const isIdle = () => Time.monotonicOf(clock) - lastUsed > longestIdle
    const leave = Effect.delay(
      Effect.sync(() => isIdle() && close(opened)),
      longestIdle
    )
    const watched = stream && { stream: () => stream().once("close", () => close(opened)) }
    return PgConnection.make({ ...config, ...watched }).pipe(
      Scope.provide(opened),
      Effect.tap((connection) => Effect.sync(() => own === opened && (current = connection))),
      // By the context of the pool: that of a request would stay in memory.
      Effect.tap(() => Effect.sync(() => void fork(Effect.forkIn(Effect.forever(leave), opened)))),
      Effect.tapError(() => Effect.sync(() => close(opened)))
    )
  })

  const openOnce = Effect.suspend(() => opening ?? Effect.flatMap(Effect.cached(open), (cached) => (opening = cached)))

  return {
    run: <A extends object>(text: string, values: ReadonlyArray<unknown>) =>
      Effect.contextWith((context) => {
        const now = Time.monotonicOf(clock)
        if (now - lastUsed > longestIdle) close(own)
        lastUsed = now
        const query = (connection: PgConnection.PgConnection) => connection.query(text, values)
        const rows = Effect.map(current === undefined ? Effect.flatMap(openOnce, query) : query(current), rowsOf<A>)
        if (!Context.get(context, References.TracerEnabled)) return rows
        const all = { ...attributes, "effect.sql.method": "execute", "db.query.text": text }
        return Effect.withSpan(rows, spanName(Object.entries(all)), { kind: "client", attributes: all })
      })
  }
})

/**
 * The most unanswered statements of a connection. The database answers pages faster than this process sends them on, so
 * one of its processes is enough for so many, and another would take the core that this one needs: with 8, pages of 100
 * for 16 clients are a fifteenth fewer, measured on two cores.
 */
const depth = 16

/** Statements that a connection takes before all are answered: until then, the client keeps the rows of each. */
const batch = 64

/** The time to wait for an answer, in milliseconds. */
export const longestWait = 100

/** The time without pipelining after a statement that took longer, in milliseconds. */
const pause = 1000

export const make = (shared: ReadonlyArray<SharedConnection>) => {
  let sending: Array<() => void> = []
  const sendAll = () => {
    const all = sending
    sending = []
    for (const send of all) send()
  }
  /** Sends a statement at the end of this turn of the event loop. */
  const send = (one: () => void) => {
    // The client writes before the next microtask, and each request arrives in a task of its own.
    if (sending.push(one) === 1) setImmediate(sendAll)
  }
  const connections = shared.map(({ run }) => {
    const state = {
      run,
      send,
      unanswered: 0,
      /** Since none was unanswered. */
      taken: 0,
      /** Must be called when the statement has ended in any way, or is not to be sent. */
      answered: () => {
        state.unanswered -= 1
        if (state.unanswered === 0) state.taken = 0
      }
    }
    return state
  })
  let restsUntil = -Infinity
  return {
    size: connections.length,
    busy: () => connections.filter(({ unanswered }) => unanswered > 0).length,
    /** A connection for a statement; undefined where none has room. `now` is the monotonic clock, in milliseconds. */
    take: (now: number) => {
      if (now < restsUntil) return undefined
      const connection = connections.find(({ taken, unanswered }) => unanswered < depth && taken < batch)
      if (connection === undefined) return undefined
      connection.unanswered += 1
      connection.taken += 1
      return connection
    },
    rest: (now: number) => {
      restsUntil = now + pause
    }
  }
}

export type Pipeline = ReturnType<typeof make>

/** A short read without an answer on a shared connection: none had room, or it failed, or took too long. */
export class NoAnswer extends Data.TaggedError("NoAnswer") {}

// Made once: a stack trace costs more than the rest.
const noAnswer = Effect.fail(new NoAnswer())

export type Query = readonly [text: string, values: ReadonlyArray<unknown>]

/** Reads over shared connections, beside the dedicated ones of a store. */
export const reads = Effect.fnUntraced(function* (store: Store, pipeline: Pipeline) {
  const clock = yield* Clock.Clock
  const now = () => Time.monotonicOf(clock)

  /** Runs a short read on a shared connection. Its caller retries one that has no answer, or a late one. */
  const short = <A extends object>([text, values]: Query): Effect.Effect<ReadonlyArray<A>, NoAnswer> =>
    Effect.contextWith((context: Context.Context<never>) =>
      Effect.callback<ReadonlyArray<A>, NoAnswer>((resume) => {
        const started = now()
        // Nothing may come between taking a place and sending the statement: a place without an answer is lost.
        const connection = store.isDown() ? undefined : pipeline.take(started)
        if (connection === undefined) return resume(noAnswer)
        let isDone = false
        const end = () => {
          isDone = true
          clearTimeout(deadline)
        }
        const giveUp = () => {
          if (isDone) return
          end()
          resume(noAnswer)
        }
        // oxlint-disable-next-line effecttsgo/global-timers-in-effect -- a fiber that sleeps costs 4 µs, and this 0.5 µs
        const deadline = setTimeout(() => {
          pipeline.rest(now())
          giveUp()
        }, longestWait)
        connection.send(() => {
          if (isDone) return connection.answered()
          // Not interrupted with the caller: the answers after this one would be given up with it.
          Effect.runForkWith(context)(connection.run<A>(text, values)).addObserver((exit) => {
            connection.answered()
            if (Exit.isFailure(exit)) return giveUp()
            if (isDone) return
            end()
            const took = now() - started
            store.answered(took)
            Context.get(context, Accounting)({ waited: 0, took })
            resume(Effect.succeed(exit.value))
          })
        })
        return Effect.sync(end)
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
  ) => Effect.catch(short<A>(query), () => store.run(request, dedicated()))

  return { short, runShort }
})
