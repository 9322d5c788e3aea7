/**
 * The form of API keys, and their look-up in the table `api_keys`. Every request looks its key up: nothing is cached, so a
 * revoked key stops working at once.
 */
import { Buffer } from "node:buffer"
import { hash } from "node:crypto"
import { Context, Duration, Effect, Layer, Redacted } from "effect"
import { CredentialStoreDown, Unauthorized } from "../api/Errors.ts"
import { CredentialDatabase, type Database } from "../database/Database.ts"
import { unaccounted } from "../database/Store.ts"
import * as Throttle from "../observability/Throttle.ts"
import * as Tracing from "../observability/Tracing.ts"

/** SHA-256 of a key, as text: each character is a byte. */
// A buffer takes three times as long to make.
export const digestOf = (key: string): string => hash("sha256", key, "binary")

/** SHA-256 of a key: the only form in which one is stored. */
export const hashOf = (key: Redacted.Redacted): Uint8Array => Buffer.from(digestOf(Redacted.value(key)), "binary")

export const kind = "pda_live_"

const demoKind = "pda_demo_"

const isMade = new RegExp(`^${kind}\\w{38}$`)

/** The first characters of a key, for lists and logs; undefined if it has another form. */
export const prefixOf = (text: string): string | undefined => {
  if (isMade.test(text)) return text.slice(0, kind.length + 4)
  return text.startsWith(demoKind) ? demoKind : undefined
}

/** The form of this service's keys. Any other is likely unknown. */
export const isOurs = /^pda_/

/**
 * The statement that finds the row of a valid key by its hash, `$1`. Its `key` is the organization, behind `!` if this is
 * the key's first use today, otherwise behind `=`.
 */
export const keyRow = `
  select organization_id, case when last_used_on is distinct from (now() at time zone 'UTC')::date then '!' else '=' end
    || organization_id as key
  from api_keys where key_hash = $1 and revoked_at is null`

export const shareOf = (keyHash: Uint8Array): string =>
  `key ${Buffer.from(keyHash.buffer, keyHash.byteOffset, keyHash.byteLength).toString("latin1")}`

/** The timeout of a look-up: the caller has a response within two seconds. */
const within = Duration.millis(1500)

const notRecorded = Throttle.make("The use of an API key was not recorded")

/** Records in the background that a key was used today. The request does not wait for it. */
const recordUse = (sql: Database, keyHash: Uint8Array) =>
  sql
    .run({ key: shareOf(keyHash), within, unavailable: ({ reason }) => reason }, sql`select touch_api_key(${keyHash})`)
    .pipe(Effect.catch(notRecorded), unaccounted, Effect.forkDetach)

// Made once: a stack trace costs more than the rest of the response.
const unauthorized = new Unauthorized()

/** A row of `keyRow`. */
export interface KeyRow {
  readonly key: string
}

/** The organization of the row of a key. Without a row, the key is not valid. */
export const organizationOf = (
  sql: Database,
  keyHash: Uint8Array,
  row: KeyRow | undefined
): Effect.Effect<string, Unauthorized> => {
  if (row === undefined) return Effect.fail(unauthorized)
  const organization = Effect.succeed(row.key.slice(1))
  return row.key.startsWith("!") ? Effect.andThen(recordUse(sql, keyHash), organization) : organization
}

/** Resolves an API key to its organization. */
export class OrgResolver extends Context.Service<
  OrgResolver,
  {
    /** The id of the key's organization. An unavailable store is `CredentialStoreDown`. */
    readonly resolve: (key: Redacted.Redacted) => Effect.Effect<string, Unauthorized | CredentialStoreDown>
    /** The database of the keys. A statement that reads records there can look a key up. */
    readonly database?: Database
  }
>()("practice-data/keys/OrgResolver") {
  /** Looks keys up in the table `api_keys`, within two seconds. */
  static readonly layer = Layer.effect(
    OrgResolver,
    Effect.gen(function* () {
      const sql = yield* CredentialDatabase
      const traced = Tracing.spanned("OrgResolver.resolve", {})
      return OrgResolver.of({
        database: sql,
        resolve: (key) => {
          const keyHash = hashOf(key)
          const request = { key: shareOf(keyHash), within, unavailable: CredentialStoreDown.from }
          const rows = sql.runShort(request, [keyRow, [keyHash]], () => sql.unsafe<KeyRow>(keyRow, [keyHash]))
          return traced(Effect.flatMap(rows, ([row]) => organizationOf(sql, keyHash, row)))
        }
      })
    })
  )

  /**
   * The fake.
   *
   * @param keys the organization of each valid key
   */
  static readonly layerMemory = (keys: Readonly<Record<string, string>>) => {
    const organizations = new Map(Object.entries(keys))
    const resolve = (key: Redacted.Redacted) =>
      Effect.mapError(Effect.fromNullishOr(organizations.get(Redacted.value(key))), () => unauthorized)
    return Layer.succeed(OrgResolver, OrgResolver.of({ resolve }))
  }

  /** The fake of a store that is down. */
  static readonly layerDown = Layer.succeed(
    OrgResolver,
    OrgResolver.of({ resolve: () => Effect.fail(new CredentialStoreDown()) })
  )
}
