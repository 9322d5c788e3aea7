/** Plans of statements, by a database that also runs them. */
import { Data, Effect } from "effect"
import type { Database } from "../../../src/database/Database.ts"
import type { Explain } from "./judge.ts"

/** Ends a transaction that is not to commit. */
class RolledBack extends Data.TaggedError("RolledBack")<{ readonly plan: ReadonlyArray<string> }> {}

/** Asks a database for plans. Each statement is run as well, in a transaction that is rolled back. */
export const explainBy =
  (sql: Database): Explain =>
  ({ params, sql: text }) =>
    Effect.gen(function* () {
      const rows = yield* sql.unsafe<{ "QUERY PLAN": string }>(`explain (costs off) ${text}`, params).unprepared
      yield* sql.unsafe(text, params)
      return yield* new RolledBack({ plan: rows.map((row) => row["QUERY PLAN"]) })
    }).pipe(
      sql.withTransaction,
      Effect.catchTag("RolledBack", ({ plan }) => Effect.succeed(plan))
    )
