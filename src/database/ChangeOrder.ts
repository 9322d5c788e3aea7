/** The order of changes, which starts again after a restore, in a copy, or where triggers were disabled. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"

const unsettled = (sql: PgClient.PgClient) =>
  Effect.map(
    sql<{ name: string }>`select table_name as name from change_feed_states() where not is_settled order by table_name`,
    (rows) => rows.map(({ name }) => name)
  )

/**
 * Starts the order of changes again where that is due, as the service does by itself within a second. Returns the tables
 * whose order started, and those that wait for a writer, or for the end of a restore.
 */
export const beginAnew = Effect.fn("ChangeOrder.beginAnew")(function* (sql: PgClient.PgClient) {
  const due = yield* unsettled(sql)
  if (due.length === 0) return { begun: [], waiting: [] }
  yield* Effect.catchIf(
    sql`select change_begin()`,
    (error) => error.reason._tag === "LockTimeoutError",
    () => Effect.succeed([])
  )
  const waiting = yield* unsettled(sql)
  return { begun: due.filter((name) => !waiting.includes(name)), waiting }
})
