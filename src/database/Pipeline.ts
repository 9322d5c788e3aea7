/**
 * Connections that short reads share: each is sent without waiting for the answers to those before it, and those of one
 * turn of the event loop in one write. That costs less than a connection for each, here and in the database.
 *
 * Answers come in the order of the statements, so a slow one delays those behind it. The caller retries slow or failed
 * statements on a dedicated connection; after a slow one, nothing is sent this way for a while.
 */
import { PgPool, type PgConnection } from "@effect/sql-pg"
import { Context, Effect, References } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { spanName } from "effect/sql/Statement"
import * as Time from "../process/Time.ts"

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

export interface SharedConnection {
  /** Runs a statement. The type of its rows is unchecked, as for `unsafe` of a client. */
  readonly run: <A extends object>(
    text: string,
    values: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<A>, SqlError>
}

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

// As unchecked as `unsafe` of the client: a text of SQL tells no types.
function rowsOf<A extends object>(result: PgConnection.Result): ReadonlyArray<A>
function rowsOf({ rows }: PgConnection.Result): ReadonlyArray<object> {
  return rows
}

/**
 * A shared connection that opens when it is needed, and again after it was lost, until the scope closes. A multiplexed
 * client would do the same, but makes a span for each statement, even untraced, and remembers the text of each: measured,
 * about 5 % of the CPU time of a single record.
 *
 * @param attributes of the span of each statement
 */
export const connect = (config: PgPool.Config, attributes: () => Readonly<Record<string, unknown>>) =>
  Effect.map(Time.steadily(PgPool.make(config)), (pool): SharedConnection => ({
    run: <A extends object>(text: string, values: ReadonlyArray<unknown>) =>
      Effect.contextWith((context) => {
        const rows = Effect.map(
          pool.use((connection) => connection.query(text, values)),
          rowsOf<A>
        )
        if (!Context.get(context, References.TracerEnabled)) return rows
        const all = { ...attributes(), "effect.sql.method": "execute", "db.query.text": text }
        return Effect.withSpan(rows, spanName(Object.entries(all)), { kind: "client", attributes: all })
      })
  }))
