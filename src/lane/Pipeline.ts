/**
 * The connection that short reads share: each is sent without waiting for the answers to those before it, and those of one
 * turn of the event loop in one write. A single record costs a fifth less CPU time than over a connection of a pool.
 *
 * Answers come in the order of the statements, so a slow one delays those behind it. It ends the connection: all that wait
 * there are run elsewhere by their callers, as are those that fail, and those of requests that are traced.
 */
import type { PgConnection } from "@effect/sql-pg"
import { Clock, Context, Effect, Exit, Latch, MutableRef, References } from "effect"
import type { Database } from "../database/Database.ts"
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

/** The time without a connection after one has ended, or could not be opened. */
const pause = "1 second"

/** The shared connection while it is open. */
interface Shared {
  readonly connection: Pick<PgConnection.PgConnection, "query">
  readonly end: () => void
  unanswered: number
  /** The most rows of the statements since none was unanswered. */
  taken: number
}

// As unchecked as `unsafe` of the client: a text of SQL tells no types.
function typedRows<A extends object>(result: PgConnection.Result): ReadonlyArray<A>
function typedRows({ rows }: PgConnection.Result): ReadonlyArray<object> {
  return rows
}

/** Runs a short read of at most `limit` rows, or `otherwise` where that has no answer, or a late one. */
export type Short = <A extends object, E, R>(
  text: string,
  values: ReadonlyArray<unknown>,
  limit: number,
  otherwise: Effect.Effect<ReadonlyArray<A>, E, R>
) => Effect.Effect<ReadonlyArray<A>, E, R>

/** Reads over the shared connection of a database; the embedded database has none. */
export const make = Effect.fnUntraced(function* ({
  answered,
  openPipelined
}: Pick<Database, "answered" | "openPipelined">) {
  const clock = yield* Clock.Clock
  const now = () => Time.monotonicMillis(clock)
  const shared = MutableRef.make<Shared | undefined>(undefined)

  const keep = Effect.gen(function* () {
    if (openPipelined === undefined) return yield* Effect.never
    const ended = Latch.makeUnsafe()
    const end = () => ended.openUnsafe()
    shared.current = { connection: yield* openPipelined(end), end, unanswered: 0, taken: 0 }
    yield* Effect.addFinalizer(() => Effect.sync(() => MutableRef.set(shared, undefined)))
    yield* ended.await
  }).pipe(Effect.scoped, Effect.ignore)
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(keep, Effect.sleep(pause))))

  const short: Short = <A extends object, E, R>(
    text: string,
    values: ReadonlyArray<unknown>,
    limit: number,
    otherwise: Effect.Effect<ReadonlyArray<A>, E, R>
  ) =>
    Effect.contextWith((context: Context.Context<never>) =>
      Effect.callback<ReadonlyArray<A>, E, R>((resume) => {
        const used = shared.current
        const isTraced = Context.get(context, References.TracerEnabled)
        if (used === undefined || isTraced || used.unanswered >= depth || used.taken >= batch) return resume(otherwise)
        const started = now()
        used.unanswered += 1
        used.taken += limit
        // oxlint-disable-next-line effecttsgo/global-timers-in-effect -- a fiber that sleeps costs 4 µs, and this 0.5 µs
        const deadline = setTimeout(() => {
          used.end()
          resume(otherwise)
        }, longestWait)
        // Not interrupted with the caller: the answers after this one would be given up with it.
        Effect.runForkWith(context)(used.connection.query(text, values)).addObserver((exit) => {
          clearTimeout(deadline)
          used.unanswered -= 1
          if (used.unanswered === 0) used.taken = 0
          if (Exit.isFailure(exit)) return resume(otherwise)
          const took = now() - started
          answered(took)
          const notes = Context.get(context, CurrentNotes)
          if (notes !== undefined) noteStatement(notes, 0, took)
          resume(Effect.succeed(typedRows<A>(exit.value)))
        })
      })
    )
  return short
})
