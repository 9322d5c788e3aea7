/** Sessions of a database, each with its own transaction. */
import { PgConnection } from "@effect/sql-pg"
import { Effect, Redacted, ScopedRef } from "effect"
import type { SqlError } from "effect/sql/SqlError"

export interface Session {
  readonly run: (text: string, params?: ReadonlyArray<unknown>) => Effect.Effect<ReadonlyArray<object>, SqlError>
  /** The id of its server process, by which others see whether it waits for a lock; undefined where there are no others. */
  readonly pid: number | undefined
  /** Opens it again, where its URL leads now. */
  readonly again: Effect.Effect<void, SqlError>
}

/** Opens a session, which is gone when the scope closes. */
export const open = Effect.fnUntraced(function* (url: () => string) {
  const connect = Effect.suspend(() =>
    PgConnection.make({
      url: Redacted.make(url()),
      applicationName: "practice-data-sync",
      connectTimeout: "20 seconds",
      preparedStatementCacheSize: 400,
      // Writers may meet in a deadlock, which is theirs to lose and not the worker's.
      startupParameters: { TimeZone: "UTC", statement_timeout: "20s", deadlock_timeout: "30ms" }
    })
  )
  const current = yield* ScopedRef.fromAcquire(connect)
  const session: Session = {
    run: (text, params = []) =>
      Effect.flatMap(ScopedRef.get(current), (connection) =>
        Effect.map(connection.query(text, params), ({ rows }) => rows)
      ),
    get pid() {
      return ScopedRef.getUnsafe(current).processId
    },
    again: ScopedRef.set(current, connect)
  }
  return session
})
