/**
 * A connection whose statements are pipelined. It opens when it is needed, and again after it was closed, or idle for long.
 * A pool of one would do the same: its lease of each statement costs a tenth of a single record's CPU time.
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
 * Makes one that is closed with the scope.
 *
 * @param config is read whenever it opens
 * @param attributes of the span of each statement
 */
export const make = Effect.fnUntraced(function* (
  config: PgConnection.Config,
  attributes: () => Readonly<Record<string, unknown>>
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
    const watched = stream && { stream: () => stream().once("close", () => close(opened)) }
    return PgConnection.make({ ...config, ...watched }).pipe(
      Scope.provide(opened),
      Effect.tap((connection) => Effect.sync(() => own === opened && (current = connection))),
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
        const all = { ...attributes(), "effect.sql.method": "execute", "db.query.text": text }
        return Effect.withSpan(rows, spanName(Object.entries(all)), { kind: "client", attributes: all })
      })
  }
})
