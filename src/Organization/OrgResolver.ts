/**
 * Which organization an API key belongs to. Every request asks the store of keys: nothing remembers a key past the
 * request that used it, so that a revoked key stops working at once.
 */
import { hash } from "node:crypto"
import { Context, Effect, Layer, Redacted } from "effect"
import { CredentialDatabase, reasonOf, within } from "../Database/Database.ts"
import { Unavailable, Unauthorized } from "../Errors.ts"

/** SHA-256 of a key: the only form in which one is stored. */
export const hashOf = (key: Redacted.Redacted): Uint8Array => hash("sha256", Redacted.value(key), "buffer")

export class OrgResolver extends Context.Service<
  OrgResolver,
  {
    /** The id of the organization that the key belongs to. A store that cannot tell is `Unavailable`. */
    readonly resolve: (key: Redacted.Redacted) => Effect.Effect<string, Unauthorized | Unavailable>
  }
>()("practice-data/Organization/OrgResolver") {
  /** Looks keys up in the table `api_keys`. Answers within two seconds. */
  static readonly layer = Layer.effect(
    OrgResolver,
    Effect.gen(function* () {
      const sql = yield* CredentialDatabase
      const find = (keyHash: Uint8Array) =>
        sql<{ organization_id: string; is_first_use_today: boolean }>`
          select organization_id, last_used_on is distinct from (now() at time zone 'UTC')::date as is_first_use_today
          from api_keys where key_hash = ${keyHash} and revoked_at is null`
      const touch = (keyHash: Uint8Array) =>
        sql`select touch_api_key(${keyHash})`.pipe(
          Effect.catchTag("SqlError", (error) =>
            Effect.logWarning("The use of an API key was not recorded", reasonOf(error))
          ),
          Effect.forkDetach
        )
      return OrgResolver.of({
        resolve: Effect.fn("OrgResolver.resolve")(function* (key) {
          const keyHash = hashOf(key)
          const rows = yield* find(keyHash).pipe(
            within("1800 millis", () => Unavailable.credentials),
            Effect.catchTag("SqlError", (error) =>
              Effect.andThen(
                Effect.logWarning("The credential store did not answer", reasonOf(error)),
                Effect.fail(Unavailable.credentials)
              )
            )
          )
          if (rows[0] === undefined) return yield* Unauthorized.error
          if (rows[0].is_first_use_today) yield* touch(keyHash)
          return rows[0].organization_id
        })
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
          return organization === undefined ? Effect.fail(Unauthorized.error) : Effect.succeed(organization)
        }
      })
    )

  /** The fake of a store that is down. */
  static readonly layerDown = Layer.succeed(
    OrgResolver,
    OrgResolver.of({ resolve: () => Effect.fail(Unavailable.credentials) })
  )
}
