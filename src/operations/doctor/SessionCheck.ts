/** Checks that a session has the settings it asked for: a pooler in between may swallow them. */
import { Effect } from "effect"
import type { PgClient } from "@effect/sql-pg"
import * as SessionSettings from "../../database/SessionSettings.ts"
import { invocation } from "../../process/Package.ts"
import { fail, ok } from "./Finding.ts"

/**
 * The settings of a session of a pool.
 *
 * @param asked what its connections ask for, by name
 */
export const check = Effect.fnUntraced(function* (sql: PgClient.PgClient, asked: SessionSettings.Settings) {
  const lost = yield* SessionSettings.lost(sql, asked)
  if (lost.length === 0) return [ok("Its sessions have the settings that they ask for.")]
  const statements = yield* SessionSettings.statementsFor(sql, lost)
  return [
    fail(
      `Its sessions lack settings: ${SessionSettings.describe(lost)}. A connection pooler swallows them.`,
      `Run ${invocation("migrate")} if this login is a member of the roles practice_data_..., or: ${statements.join("; ")}`
    )
  ]
})
