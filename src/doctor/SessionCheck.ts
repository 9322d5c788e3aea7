/** Checks that a session has the settings it asked for: a pooler in between may swallow them. */
import { Effect, Record } from "effect"
import type { PgClient } from "@effect/sql-pg"
import { fail, ok } from "./Finding.ts"

/**
 * The settings of a session of a pool.
 *
 * @param asked what its connections ask for, by name
 */
export const check = Effect.fnUntraced(function* (sql: PgClient.PgClient, asked: Readonly<Record<string, string>>) {
  const rows = yield* sql<{ name: string; setting: string }>`
    select name, setting from pg_settings where ${sql.in("name", Object.keys(asked))}`
  const found = new Map(rows.map(({ name, setting }) => [name, setting]))
  const lost = Record.toEntries(asked).filter(([name, value]) => found.get(name) !== value)
  if (lost.length === 0) return [ok("Its sessions have the settings that they ask for.")]
  const texts = lost.map(([name, value]) => `${name} is ${found.get(name) ?? "unknown"} instead of ${value}`)
  return [
    fail(
      `Its sessions lack settings: ${texts.join(", ")}. A connection pooler swallows them.`,
      "Have the pooler pass startup parameters on, or connect without it. Otherwise give the login these settings with `alter role ... set ...`."
    )
  ]
})
