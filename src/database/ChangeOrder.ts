/** The order of changes after a restore, in a copy, or where triggers were disabled: it begins anew. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"

const unsettled = (sql: PgClient.PgClient) =>
  Effect.map(
    sql<{ name: string }>`select table_name as name from change_feed_states() where not is_settled order by table_name`,
    (rows) => rows.map(({ name }) => name)
  )

/**
 * Begins the order of changes anew where that is due, as the service does by itself within a second. Returns the tables
 * of which it began, and those that have to wait: for a writer that keeps a table busy, or for the end of a restore.
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
