/**
 * The form of API keys, and their look-up in the table `api_keys`. Every request looks its key up: nothing is cached, so a
 * revoked key stops working at once.
 */
import { Buffer } from "node:buffer"
import { hash } from "node:crypto"
import { Context, Duration, Effect, Layer, Redacted } from "effect"
import { CredentialStoreDown, Unauthorized } from "../api/Errors.ts"
import { CredentialDatabase, type Database } from "../database/Database.ts"
import { unnoted } from "../observability/RequestFacts.ts"
import * as Logging from "../observability/Logging.ts"
import * as Tracing from "../observability/Tracing.ts"

/** The SHA-256 of a key, as text: each character is a byte. */
// A buffer takes three times as long to make.
export const keyDigest = (key: string): string => hash("sha256", key, "binary")

/** The bytes of a digest: the only form in which a key is stored. */
export const digestBytes = (digest: string): Uint8Array => Buffer.from(digest, "binary")

export const keyHash = (key: Redacted.Redacted): Uint8Array => digestBytes(keyDigest(Redacted.value(key)))

export const livePrefix = "pda_live_"

const demoPrefix = "pda_demo_"

const isGenerated = new RegExp(`^${livePrefix}\\w{38}$`)

/** The first characters of a key, for lists and logs; undefined if it has another form. */
export const visiblePrefix = (key: string): string | undefined => {
  if (isGenerated.test(key)) return key.slice(0, livePrefix.length + 4)
  return key.startsWith(demoPrefix) ? demoPrefix : undefined
}

/**
 * The statement that finds the row of a valid key by its hash, `$1`. Its `key` is the organization, behind `!` if this is
 * the key's first use today, otherwise behind `=`.
 */
export const keyStatement = `
  select organization_id, case when last_used_on is distinct from (now() at time zone 'UTC')::date then '!' else '=' end
    || organization_id as key
  from api_keys where key_hash = $1 and revoked_at is null`

/** The timeout of a look-up: the caller has a response within two seconds. */
const within = Duration.millis(1500)

const notRecorded = Logging.limitedWarning("The use of an API key was not recorded")

/** Records in the background that a key was used today. The request does not wait for it. */
const recordUse = (sql: Database, digest: string) =>
  sql
    .run(
      { key: "use of keys", within, unavailable: ({ reason }) => reason },
      sql`select touch_api_key(${digestBytes(digest)})`
    )
    .pipe(Effect.catch(notRecorded), unnoted, Effect.forkDetach)

// Made once: a stack trace costs more than the rest of the response.
const unauthorized = new Unauthorized()

/** A row of `keyStatement`. */
export interface KeyRow {
  readonly key: string
}

/** The organization of the row of a key, whose first use of a day is recorded. Without a row, the key is not valid. */
export const resolveRow = (sql: Database, digest: string, row: KeyRow | undefined) => {
  if (row === undefined) return Effect.fail(unauthorized)
  const organization = Effect.succeed(row.key.slice(1))
  return row.key.startsWith("!") ? Effect.andThen(recordUse(sql, digest), organization) : organization
}

/** Resolves an API key to its organization. */
export class OrgResolver extends Context.Service<
  OrgResolver,
  {
    /** The id of the key's organization. An unavailable store is `CredentialStoreDown`. */
    readonly resolve: (key: Redacted.Redacted) => Effect.Effect<string, Unauthorized | CredentialStoreDown>
  }
>()("practice-data/keys/OrgResolver") {
  /** Looks keys up in the table `api_keys`, within two seconds. */
  static readonly layer = Layer.effect(
    OrgResolver,
    Effect.gen(function* () {
      const sql = yield* CredentialDatabase
      return OrgResolver.of({
        resolve: Effect.fnUntraced(
          function* (key) {
            const digest = keyDigest(Redacted.value(key))
            const request = { key: `key ${digest}`, within, unavailable: CredentialStoreDown.from }
            const [row] = yield* sql.run(request, sql.unsafe<KeyRow>(keyStatement, [digestBytes(digest)]))
            return yield* resolveRow(sql, digest, row)
          },
          Tracing.spanned("OrgResolver.resolve", {})
        )
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
