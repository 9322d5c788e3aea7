/**
 * The connection that short reads share: each is sent without waiting for the answers to those before it, and those of one
 * turn of the event loop in one write. A single record costs a fifth less CPU time than over a connection of a pool.
 *
 * Answers come in the order of the statements, so a slow one delays those behind it. The caller retries slow or failed
 * statements elsewhere; after a slow one, nothing is sent this way for a while.
 */
import type { PgConnection } from "@effect/sql-pg"
import { Clock, Context, Effect, Exit, Latch, References } from "effect"
import { spanName } from "effect/sql/Statement"
import type { Database, Pipelined } from "../database/Database.ts"
import { CurrentNotes, noteStatement } from "../observability/RequestFacts.ts"
import * as Time from "../observability/Time.ts"

/**
 * The most unanswered statements. One backend answers so many faster than this process sends the pages on, and another
 * would take the core that this process needs. With 8 instead, 16 clients got 7 % fewer pages of 100, measured on two
 * cores.
 */
const depth = 16

/** Rows that the connection may return before all statements are answered: until then, the client keeps all of them. */
const batch = 16_000

/** The time to wait for an answer, in milliseconds. */
const longestWait = 100

/** The time without pipelining after a statement that took longer, in milliseconds. */
const pause = 1000

/** A connection that is idle for longer is closed: networks drop idle connections silently. */
const longestIdle = "30 seconds"

type Connection = Pick<PgConnection.PgConnection, "query">

/** The shared connection, which opens when it is wanted, and again after it was closed. */
interface Shared {
  readonly wanted: Latch.Latch
  connection: Connection | undefined
  unanswered: number
  /** The most rows of the statements since none was unanswered. */
  taken: number
  /** All statements. */
  used: number
  /** Until then nothing is sent: milliseconds of the monotonic clock. */
  restsUntil: number
}

/** Opens the connection once it is wanted, until it is closed or idle. */
const keep = (shared: Shared, { open }: Pipelined) =>
  Effect.gen(function* () {
    yield* shared.wanted.await
    const closed = Latch.makeUnsafe()
    shared.connection = yield* open(() => closed.openUnsafe())
    const idle = Effect.gen(function* () {
      for (let before = -1; before !== shared.used; yield* Effect.sleep(longestIdle)) before = shared.used
    })
    yield* Effect.raceFirst(closed.await, idle)
  }).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        shared.connection = undefined
        shared.wanted.closeUnsafe()
      })
    ),
    Effect.scoped,
    Effect.catch(() => Effect.sleep("200 millis"))
  )

// As unchecked as `unsafe` of the client: a text of SQL tells no types.
function typedRows<A extends object>(result: PgConnection.Result): ReadonlyArray<A>
function typedRows({ rows }: PgConnection.Result): ReadonlyArray<object> {
  return rows
}

/**
 * Runs a short read of at most `limit` rows. Its result is undefined without an answer, or with a late one. The type of its
 * rows is unchecked.
 */
export type Short = <A extends object>(
  text: string,
  values: ReadonlyArray<unknown>,
  limit: number
) => Effect.Effect<ReadonlyArray<A> | undefined>

/** Reads over the shared connection of a database; the embedded database has none. */
export const make = Effect.fnUntraced(function* (sql: Pick<Database, "answered" | "isDown" | "pipelined">) {
  const { pipelined } = sql
  const clock = yield* Clock.Clock
  const now = () => Time.monotonicMillis(clock)
  const wanted = Latch.makeUnsafe()
  const shared: Shared = { wanted, connection: undefined, unanswered: 0, taken: 0, used: 0, restsUntil: -Infinity }
  const attributes = { ...pipelined?.attributes, "effect.sql.method": "execute" }
  const sending: Array<() => void> = []
  if (pipelined !== undefined) yield* Effect.forkScoped(Effect.forever(keep(shared, pipelined)))

  /** The connection, if it has room for a statement. */
  const take = () => {
    if (sql.isDown() || now() < shared.restsUntil) return undefined
    wanted.openUnsafe()
    return shared.unanswered < depth && shared.taken < batch ? shared.connection : undefined
  }

  /** Sends a statement at the end of this turn of the event loop. */
  const send = (one: () => void) => {
    // The client writes before the next microtask, and each request arrives in a task of its own.
    if (sending.push(one) === 1) setImmediate(() => sending.splice(0).forEach((each) => each()))
  }

  const query = <A extends object>(
    connection: Connection,
    text: string,
    values: ReadonlyArray<unknown>,
    isTraced: boolean
  ) => {
    const rows = Effect.map(connection.query(text, values), typedRows<A>)
    if (!isTraced) return rows
    const all = { ...attributes, "db.query.text": text }
    return Effect.withSpan(rows, spanName(Object.entries(all)), { kind: "client", attributes: all })
  }

  const short: Short = <A extends object>(text: string, values: ReadonlyArray<unknown>, limit: number) =>
    Effect.contextWith((context: Context.Context<never>) =>
      Effect.callback<ReadonlyArray<A> | undefined>((resume) => {
        const connection = take()
        if (connection === undefined) return resume(Effect.undefined)
        const statement = { started: now(), isOver: false }
        // Nothing may come between this and sending the statement: a place without an answer is lost.
        shared.unanswered += 1
        shared.taken += limit
        shared.used += 1
        const answered = () => {
          shared.unanswered -= 1
          if (shared.unanswered === 0) shared.taken = 0
        }
        const end = (rows: ReadonlyArray<A> | undefined) => {
          if (statement.isOver) return
          statement.isOver = true
          clearTimeout(deadline)
          if (rows !== undefined) {
            const took = now() - statement.started
            sql.answered(took)
            const notes = Context.get(context, CurrentNotes)
            if (notes !== undefined) noteStatement(notes, 0, took)
          }
          resume(Effect.succeed(rows))
        }
        // oxlint-disable-next-line effecttsgo/global-timers-in-effect -- a fiber that sleeps costs 4 µs, and this 0.5 µs
        const deadline = setTimeout(() => {
          shared.restsUntil = now() + pause
          end(undefined)
        }, longestWait)
        send(() => {
          if (statement.isOver) return answered()
          const rows = query<A>(connection, text, values, Context.get(context, References.TracerEnabled))
          // Not interrupted with the caller: the answers after this one would be given up with it.
          Effect.runForkWith(context)(rows).addObserver((exit) => {
            answered()
            end(Exit.isSuccess(exit) ? exit.value : undefined)
          })
        })
        return Effect.sync(() => end(undefined))
      })
    )
  return short
})
