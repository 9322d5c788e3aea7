/** Waits for transactions of other tests: those of the whole server hold the changes back, in whatever database. */
import { Effect } from "effect"
import { eventually } from "./eventually.ts"
import type { Database } from "../../src/database/Database.ts"

/** Waits until all that was committed before is below the horizon. */
export const settled = Effect.fnUntraced(function* (sql: Database) {
  const [begun] = yield* sql<{ ceiling: number }>`select change_ceiling()::float8 as ceiling`
  const isBelow = sql`select 1 where change_horizon() >= ${begun?.ceiling ?? 0}`
  yield* eventually("the horizon", isBelow, (rows) => rows.length > 0)
})
