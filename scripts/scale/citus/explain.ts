/** Plans of statements, by a database. */
import { Effect } from "effect"
import type { Database } from "../../../src/database/Database.ts"
import type { Explain } from "./judge.ts"

/** Asks a database for plans. It runs no statement. */
export const explainBy =
  (sql: Database): Explain =>
  ({ params, sql: text }) =>
    Effect.map(sql.unsafe<{ "QUERY PLAN": string }>(`explain (costs off) ${text}`, params).unprepared, (rows) =>
      rows.map((row) => row["QUERY PLAN"])
    )
