/**
 * Connections that short reads share: each is sent without waiting for the answers to those before it, and those of one
 * turn of the event loop in one write. A single record costs a fifth less CPU time than over a connection of a pool.
 *
 * Answers come in the order of the statements, so a slow one delays those behind it. The caller retries slow or failed
 * statements elsewhere; after a slow one, nothing is sent this way for a while.
 */
import type { PgConnection } from "@effect/sql-pg"
import { Clock, Context, Effect, Exit, Latch, MutableRef, References } from "effect"
import { spanName } from "effect/sql/Statement"
import type { Database, Pipelined } from "../database/Database.ts"
import { CurrentNotes, noteStatement } from "../observability/RequestFacts.ts"
import * as Time from "../observability/Time.ts"

/**
 * The most unanswered statements of a connection. The database answers pages faster than this process sends them on, so
 * one of its processes is enough for so many, and another would take the core that this one needs: with 8, pages of 100
 * for 16 clients are a fifteenth fewer, measured on two cores.
 */
const depth = 16

/** Statements that a connection takes before all are answered: until then, the client keeps the rows of each. */
const batch = 64

/** The time to wait for an answer, in milliseconds. */
const longestWait = 100

/** The time without pipelining after a statement that took longer, in milliseconds. */
const pause = 1000

/** A connection that is idle for longer is closed: a network may forget it, and tell nobody. */
const longestIdle = "30 seconds"

type Connection = Pick<PgConnection.PgConnection, "query">

/** A connection that opens when it is wanted, and again after it was closed. */
interface Place {
  readonly wanted: Latch.Latch
  connection: Connection | undefined
  unanswered: number
  /** Statements since none was unanswered. */
  taken: number
  /** All statements. */
  used: number
}

const makePlace = (): Place => ({
  wanted: Latch.makeUnsafe(),
  connection: undefined,
  unanswered: 0,
  taken: 0,
  used: 0
})

/** Opens the connection of a place once it is wanted, until it is closed or idle. */
const keep = (place: Place, { open }: Pipelined) =>
  Effect.gen(function* () {
    yield* place.wanted.await
    const closed = Latch.makeUnsafe()
    place.connection = yield* open(() => closed.openUnsafe())
    const idle = Effect.gen(function* () {
      for (let before = -1; before !== place.used; yield* Effect.sleep(longestIdle)) before = place.used
    })
    yield* Effect.raceFirst(closed.await, idle)
  }).pipe(
    Effect.ensuring(
      Effect.sync(() => {
        place.connection = undefined
        place.wanted.closeUnsafe()
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

/** Runs a short read. Its result is undefined without an answer, or with a late one. The type of its rows is unchecked. */
export type Short = <A extends object>(
  text: string,
  values: ReadonlyArray<unknown>
) => Effect.Effect<ReadonlyArray<A> | undefined>

/** Reads over the shared connections of a database; the embedded database has none. */
export const make = Effect.fnUntraced(function* (sql: Pick<Database, "answered" | "isDown" | "pipelined">) {
  const { pipelined } = sql
  const clock = yield* Clock.Clock
  const now = () => Time.monotonicMillis(clock)
  const places = Array.from({ length: pipelined?.connections ?? 0 }, makePlace)
  const attributes = { ...pipelined?.attributes, "effect.sql.method": "execute" }
  const restsUntil = MutableRef.make(-Infinity)
  const sending: Array<() => void> = []
  if (pipelined !== undefined)
    for (const place of places) yield* Effect.forkScoped(Effect.forever(keep(place, pipelined)))

  const find = () => {
    if (sql.isDown() || now() < restsUntil.current) return undefined
    const hasRoom = ({ taken, unanswered }: Place) => unanswered < depth && taken < batch
    const found = places.find((place) => place.connection !== undefined && hasRoom(place))
    if (found === undefined) places.find(({ connection }) => connection === undefined)?.wanted.openUnsafe()
    return found
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

  const short: Short = <A extends object>(text: string, values: ReadonlyArray<unknown>) =>
    Effect.contextWith((context: Context.Context<never>) =>
      Effect.callback<ReadonlyArray<A> | undefined>((resume) => {
        // Nothing may come between taking a place and sending the statement: a place without an answer is lost.
        const place = find()
        if (place?.connection === undefined) return resume(Effect.undefined)
        const { connection } = place
        const statement = { started: now(), isOver: false }
        place.unanswered += 1
        place.taken += 1
        place.used += 1
        const answered = () => {
          place.unanswered -= 1
          if (place.unanswered === 0) place.taken = 0
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
          restsUntil.current = now() + pause
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
