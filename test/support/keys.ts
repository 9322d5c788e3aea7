/** API keys in the table of the test's database. */
import { hash } from "node:crypto"
import { Effect } from "effect"
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
