/**
 * Makes, lists and revokes API keys: for operators.
 *
 * A key is `pda_live_`, 32 random base62 characters, and a checksum of 6. The checksum lets secret scanners tell a key
 * from noise; the look-up ignores it. Only the SHA-256 of a key is stored.
 */
import { randomInt } from "node:crypto"
import { crc32 } from "node:zlib"
import { Effect, Option, Redacted, Schema } from "effect"
import { CredentialDatabase } from "../database/Database.ts"
import { credential, decodeTexts, listCredentials } from "../database/Columns.ts"
import { keyHash, livePrefix, visiblePrefix } from "./OrgResolver.ts"

/** Base62. */
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

const randomText = (length: number) => Array.from({ length }, () => alphabet.charAt(randomInt(62))).join("")

/** The last 6 characters of a key: the CRC-32 of all before them, in base62. */
export const keyChecksum = (text: string): string =>
  Array.from({ length: 6 }, (_, at) => alphabet.charAt(Math.floor(crc32(text) / 62 ** (5 - at)) % 62)).join("")

/** A new random key, `pda_live_...`, that nothing stores yet. */
export const generate: Effect.Effect<Redacted.Redacted> = Effect.sync(() => {
  const text = livePrefix + randomText(32)
  return Redacted.make(text + keyChecksum(text))
})

/** Makes a key for an organization and stores its hash. Only the caller gets the key. */
export const create = Effect.fn("ApiKeys.create")(function* ({
  name,
  organization
}: Readonly<Record<"name" | "organization", string>>) {
  const sql = yield* CredentialDatabase
  const key = yield* generate
  const id = `key_${randomText(12)}`
  const row = {
    organization_id: organization,
    id,
    name,
    prefix: visiblePrefix(Redacted.value(key)) ?? livePrefix,
    key_hash: keyHash(key)
  }
  yield* sql`insert into api_keys ${sql.insert(row)}`
  return { id, key }
})

/** Lists the keys of an organization, or of all, oldest first. */
export const list = listCredentials(
  CredentialDatabase,
  "api_keys",
  Schema.Struct({
    ...credential,
    name: Schema.String,
    prefix: Schema.String,
    last_used_on: Schema.NullOr(Schema.String)
  }),
  "left(name, 400) as name, prefix, to_char(last_used_on, 'YYYY-MM-DD') as last_used_on, "
)

/** Revokes a key at once, and returns its organization; none if there is no such key or it was revoked before. */
export const revoke = Effect.fn("ApiKeys.revoke")(function* (id: string) {
  const sql = yield* CredentialDatabase
  const revoked = yield* decodeTexts(sql`
    update api_keys set revoked_at = now() where id = ${id} and revoked_at is null returning organization_id as text`)
  return Option.fromNullishOr(revoked[0])
})
