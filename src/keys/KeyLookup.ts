/** The form of API keys, and their look-up in the table `api_keys`. */
import { Buffer } from "node:buffer"
import { hash } from "node:crypto"
import { Duration, Effect, Predicate, Redacted } from "effect"
import type { Constructor } from "effect/sql/Statement"
import { Unauthorized } from "../api/Errors.ts"
import type { Database } from "../database/Database.ts"
import { unaccounted } from "../database/Store.ts"
import * as Throttle from "../observability/Throttle.ts"

/** SHA-256 of a key: the only form in which one is stored. */
// As text first: a buffer of its own takes three times as long.
export const hashOf = (key: Redacted.Redacted): Uint8Array =>
  Buffer.from(hash("sha256", Redacted.value(key), "binary"), "binary")

const ours = "pda_"

export const kind = `${ours}live_`

const demoKind = `${ours}demo_`

const isMade = new RegExp(`^${kind}\\w{38}$`)

/** The first characters of a key, for lists and logs; undefined if it has another form. */
export const prefixOf = (key: Redacted.Redacted): string | undefined => {
  const text = Redacted.value(key)
  if (isMade.test(text)) return text.slice(0, kind.length + 4)
  return text.startsWith(demoKind) ? demoKind : undefined
}

/** The usual beginning of `Authorization` with such a key. */
export const likely = `Bearer ${ours}`

/** True if a key may be one of this service. Any other is likely unknown. */
export const isLikely = (key: Redacted.Redacted): boolean => Redacted.value(key).startsWith(ours)

/**
 * The statement that finds the row of a valid key, by its hash or by a placeholder of it. Its `key` is the organization,
 * behind `!` if this is the key's first use today, otherwise behind `=`.
 */
export const keyRow = (sql: Constructor, keyHash: Uint8Array | string) => sql`
  select organization_id, case when last_used_on is distinct from (now() at time zone 'UTC')::date then '!' else '=' end
    || organization_id as key
  from api_keys where key_hash = ${keyHash} and revoked_at is null`

export const shareOf = (keyHash: Uint8Array): string =>
  `key ${Buffer.from(keyHash.buffer, keyHash.byteOffset, keyHash.byteLength).toString("latin1")}`

/** The timeout of a look-up: the caller has a response within two seconds. */
export const within = Duration.millis(1500)

const notRecorded = Throttle.make("The use of an API key was not recorded")

/** Records in the background that a key was used today. The request does not wait for it. */
const recordUse = (sql: Database, keyHash: Uint8Array) =>
  sql
    .run({ key: shareOf(keyHash), within, unavailable: ({ reason }) => reason }, sql`select touch_api_key(${keyHash})`)
    .pipe(Effect.catch(notRecorded), unaccounted, Effect.forkDetach)

// Made once: a stack trace costs more than the rest of the response.
export const unauthorized = new Unauthorized()

/**
 * The organization of the row of a key. Without a row, the key is not valid. A schema of the row costs 8 % of a single
 * record's CPU time.
 */
export const organizationOf = (
  sql: Database,
  keyHash: Uint8Array,
  row: unknown
): Effect.Effect<string, Unauthorized> => {
  if (row === undefined) return Effect.fail(unauthorized)
  if (!Predicate.hasProperty(row, "key") || !Predicate.isString(row.key)) return Effect.die("The row of a key has none")
  const organization = Effect.succeed(row.key.slice(1))
  return row.key.startsWith("!") ? Effect.andThen(recordUse(sql, keyHash), organization) : organization
}
