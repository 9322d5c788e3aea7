/**
 * Connections that short reads share: each is sent without waiting for the answers to those before it, and those of one
 * turn of the event loop in one write. That costs less than a connection for each, here and in the database.
 *
 * Answers come in the order of the statements, so a slow one delays those behind it. The caller retries slow or failed
 * statements on a dedicated connection; after a slow one, nothing is sent this way for a while.
 */
import { PgConnection } from "@effect/sql-pg"
import { Clock, Context, Duration, Effect, Exit, References, Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { spanName } from "effect/sql/Statement"
import * as Time from "../process/Time.ts"

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
