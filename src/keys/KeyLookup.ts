/** The look-up of an API key in the table `api_keys`, for the resolver and for the statements that read records. */
import { Buffer } from "node:buffer"
import { hash } from "node:crypto"
import { Duration, Effect, Redacted } from "effect"
import type { Constructor } from "effect/sql/Statement"
import type { Database } from "../database/Database.ts"
import { unaccounted } from "../database/Store.ts"
import * as Throttle from "../observability/Throttle.ts"

/** SHA-256 of a key: the only form in which one is stored. */
// As text first: to make a buffer of its own for each takes three times as long.
export const hashOf = (key: Redacted.Redacted): Uint8Array =>
  Buffer.from(hash("sha256", Redacted.value(key), "binary"), "binary")

const ours = "pda_"

/** What the keys begin with that `ApiKeys` makes. */
export const kind = `${ours}live_`

const demoKind = `${ours}demo_`

const isMade = new RegExp(`^${kind}\\w{38}$`)

/** By what a key is recognised in lists and logs: its first characters. Nothing for what does not look like a key. */
export const prefixOf = (key: Redacted.Redacted): string | undefined => {
  const text = Redacted.value(key)
  if (isMade.test(text)) return text.slice(0, kind.length + 4)
  return text.startsWith(demoKind) ? demoKind : undefined
}

/** What `Authorization` nearly always begins with that has such a key. */
export const likely = `Bearer ${ours}`

/** Whether a key looks at first sight like one of this service. Of any other it is likely that nobody knows it. */
export const isLikely = (key: Redacted.Redacted): boolean => Redacted.value(key).startsWith(ours)

/** A key that is valid. */
export interface KeyRow {
  readonly organization_id: string
  readonly is_first_use_today: boolean
}

/** The statement that finds the row of a valid key, by its hash or by a placeholder of it. */
export const keyRow = (sql: Constructor, keyHash: Uint8Array | string) => sql<KeyRow>`
  select organization_id, last_used_on is distinct from (now() at time zone 'UTC')::date as is_first_use_today
  from api_keys where key_hash = ${keyHash} and revoked_at is null`

/** On whose behalf a statement is run that looks up a key. */
export const shareOf = (keyHash: Uint8Array): string =>
  `key ${Buffer.from(keyHash.buffer, keyHash.byteOffset, keyHash.byteLength).toString("latin1")}`

/** How long a look-up may take: with all around it, the caller has an answer within two seconds. */
export const within = Duration.millis(1500)

const notRecorded = Throttle.make("The use of an API key was not recorded")

/** Records in the background that a key was used today. */
export const recordUse = (sql: Database, keyHash: Uint8Array) =>
  sql
    .run({ key: shareOf(keyHash), within, unavailable: ({ reason }) => reason }, sql`select touch_api_key(${keyHash})`)
    .pipe(
      Effect.catch(notRecorded),
      // The request does not wait for it.
      unaccounted,
      Effect.forkDetach
    )
