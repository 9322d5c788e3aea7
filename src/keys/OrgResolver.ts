/**
 * Which organization an API key belongs to. Every request asks the store of keys: nothing remembers a key past the
 * request that used it, so that a revoked key stops working at once.
 */
import { hash } from "node:crypto"
import { Context, Duration, Effect, Layer, Option, Redacted } from "effect"
import { CredentialDatabase, isSameDatabase, RecordDatabase } from "../database/Database.ts"
import * as Throttle from "../database/Throttle.ts"
import { CredentialStoreDown, Unauthorized } from "../api/Errors.ts"
import type { CurrentOrganization, Resolved } from "../api/CurrentOrganization.ts"

/** SHA-256 of a key: the only form in which one is stored. */
export const hashOf = (key: Redacted.Redacted): Uint8Array => hash("sha256", Redacted.value(key), "buffer")

/** The look-up of the key whose hash is `$1`, as SQL. */
export const keyQuery = `
  select organization_id, last_used_on is distinct from (now() at time zone 'UTC')::date as is_first_use_today
  from api_keys where key_hash = $1 and revoked_at is null`

/** On whose behalf a statement is run that is asked with a key. */
export const shareOf = (keyHash: Uint8Array): string =>
  `key ${Buffer.from(keyHash.buffer, keyHash.byteOffset, keyHash.byteLength).toString("latin1")}`

/** Answers a caller in time: within two seconds with all around it. */
const deadline = Duration.millis(1500)

const unavailable = CredentialStoreDown.from

export class OrgResolver extends Context.Service<
  OrgResolver,
  {
    /** The id of the organization that the key belongs to. A store that cannot tell is `CredentialStoreDown`. */
    readonly resolve: (key: Redacted.Redacted) => Effect.Effect<string, Unauthorized | CredentialStoreDown>
    /**
     * Where the keys are in the database of the records: leaves the look-up to the statement that reads, so that it
     * costs no round trip of its own.
     */
    readonly present?: (key: Redacted.Redacted) => CurrentOrganization["Service"]
  }
>()("practice-data/keys/OrgResolver") {
  /** Looks keys up in the table `api_keys`. Answers within two seconds. */
  static readonly layer = Layer.effect(
    OrgResolver,
    Effect.gen(function* () {
      const sql = yield* CredentialDatabase
      const records = yield* Effect.serviceOption(RecordDatabase)
      const unrecorded = Throttle.make("The use of an API key was not recorded")
      const touch = (keyHash: Uint8Array) =>
        sql
          .run(
            { key: shareOf(keyHash), within: deadline, unavailable: ({ reason }) => reason },
            sql`select touch_api_key(${keyHash})`
          )
          .pipe(Effect.catch(unrecorded), Effect.forkDetach)
      const resolveHash = Effect.fn("OrgResolver.resolve")(function* (keyHash: Uint8Array) {
        const rows = yield* sql.run(
          { key: shareOf(keyHash), within: deadline, unavailable },
          sql.unsafe<{ organization_id: string; is_first_use_today: boolean }>(keyQuery, [keyHash])
        )
        if (rows[0] === undefined) return yield* new Unauthorized()
        if (rows[0].is_first_use_today) yield* touch(keyHash)
        return rows[0].organization_id
      })
      const present = (key: Redacted.Redacted): CurrentOrganization["Service"] => {
        const keyHash = hashOf(key)
        let resolved: Resolved | undefined
        return {
          id: Effect.suspend(
            () => resolved ?? Effect.onExit(resolveHash(keyHash), (exit) => Effect.sync(() => (resolved = exit)))
          ),
          key: {
            hash: keyHash,
            settle: (found, isFirstUseToday = false) => {
              resolved = found
              return isFirstUseToday ? Effect.asVoid(touch(keyHash)) : Effect.void
            }
          }
        }
      }
      return OrgResolver.of({
        resolve: (key) => resolveHash(hashOf(key)),
        ...(Option.exists(records, (client) => isSameDatabase(client, sql)) ? { present } : {})
      })
    })
  )

  /**
   * The fake.
   *
   * @param keys the organization of each valid key
   */
  static readonly layerMemory = (keys: Readonly<Record<string, string>>) =>
    Layer.succeed(
      OrgResolver,
      OrgResolver.of({
        resolve: (key) => {
          const organizations = new Map(Object.entries(keys))
          const organization = organizations.get(Redacted.value(key))
          return organization === undefined ? Effect.fail(new Unauthorized()) : Effect.succeed(organization)
        }
      })
    )

  /** The fake of a store that is down. */
  static readonly layerDown = Layer.succeed(
    OrgResolver,
    OrgResolver.of({ resolve: () => Effect.fail(new CredentialStoreDown()) })
  )
}
