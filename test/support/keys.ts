/** API keys in the table of the test's database. */
import { hash } from "node:crypto"
import { Effect } from "effect"
import { eventually } from "./eventually.ts"
import { TestDatabase } from "./TestDatabase.ts"

export const keyHashOf = (key: string) => hash("sha256", key, "buffer")

/** Stores a key that may be stored already. Returns its id. */
export const insertKey = Effect.fnUntraced(function* (key: string, organization_id: string) {
  const { sql } = yield* TestDatabase
  const id = `id of ${key}`
  const row = { organization_id, id, name: "Test", prefix: "test", key_hash: keyHashOf(key) }
  yield* sql`insert into api_keys ${sql.insert(row)} on conflict do nothing`
  return id
})

/** The day of the last use of a key. */
export const lastUsed = Effect.fnUntraced(function* (key: string) {
  const { sql } = yield* TestDatabase
  const [row] = yield* sql<{ used: string | null; today: boolean | null; version: string }>`
    select last_used_on::text as used, last_used_on = (now() at time zone 'UTC')::date as today, xmin::text as version
    from api_keys where key_hash = ${keyHashOf(key)}`
  return row
})

/** Waits until a use of a key today is recorded. */
export const usedToday = (key: string) => eventually("a use today", lastUsed(key), (row) => row?.today === true)
