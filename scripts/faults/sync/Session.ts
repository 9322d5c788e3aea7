/** Sessions of a database, each with its own transaction. */
import { PgConnection } from "@effect/sql-pg"
import { Effect, Redacted, type Scope, ScopedRef } from "effect"
import type { SqlError } from "effect/sql/SqlError"

export interface Session {
  readonly run: (text: string, params?: ReadonlyArray<unknown>) => Effect.Effect<ReadonlyArray<object>, SqlError>
  /** The id of its server process, by which others see whether it waits for a lock; undefined where there are no others. */
  readonly pid: number | undefined
}

/** Opens a session, which is gone when the scope closes. */
export const open = (url: string): Effect.Effect<Session, SqlError, Scope.Scope> =>
  Effect.map(
    PgConnection.make({
      url: Redacted.make(url),
      applicationName: "practice-data-sync",
      connectTimeout: "20 seconds",
      preparedStatementCacheSize: 400,
      // Writers may meet in a deadlock, which is theirs to lose and not the worker's.
      startupParameters: { TimeZone: "UTC", statement_timeout: "20s", deadlock_timeout: "30ms" }
    }),
    (connection) => ({
      run: (text, params = []) => Effect.map(connection.query(text, params), ({ rows }) => rows),
      pid: connection.processId
    })
  )

/** Opens a session that can be opened again, on another server. */
export const openAgain = Effect.fnUntraced(function* (url: () => string) {
  const current = yield* ScopedRef.fromAcquire(open(url()))
  const session: Session = {
    run: (text, params) => Effect.flatMap(ScopedRef.get(current), ({ run }) => run(text, params)),
    get pid() {
      return ScopedRef.getUnsafe(current).pid
    }
  }
  return { session, again: Effect.suspend(() => ScopedRef.set(current, open(url()))) }
})
