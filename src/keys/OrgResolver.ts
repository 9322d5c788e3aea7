/**
 * Resolves an API key to its organization. Every request looks its key up: nothing is cached, so a revoked key stops
 * working at once.
 */
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { CredentialDatabase, isSameDatabase, RecordDatabase } from "../database/Database.ts"
import { CredentialStoreDown, type Unauthorized } from "../api/Errors.ts"
import * as Tracing from "../observability/Tracing.ts"
import { hashOf, keyRow, organizationOf, shareOf, unauthorized, within } from "./KeyLookup.ts"

export class OrgResolver extends Context.Service<
  OrgResolver,
  {
    /** The id of the key's organization. An unavailable store is `CredentialStoreDown`. */
    readonly resolve: (key: Redacted.Redacted) => Effect.Effect<string, Unauthorized | CredentialStoreDown>
    /**
     * The same by the hash of a key. Present if the keys are in the database of the records: then the statement that reads
     * can look the key up.
     */
    readonly resolveHash?: (keyHash: Uint8Array) => Effect.Effect<string, Unauthorized | CredentialStoreDown>
    /**
     * True while the statement that reads can look the key up: not if the records are distributed by organization, since
     * only a statement with the organization's id goes to one server. Absent: always.
     */
    readonly readsByKey?: () => boolean
  }
>()("practice-data/keys/OrgResolver") {
  /** Looks keys up in the table `api_keys`, within two seconds. */
  static readonly layer = Layer.effect(
    OrgResolver,
    Effect.gen(function* () {
      const sql = yield* CredentialDatabase
      const records = Option.getOrUndefined(yield* Effect.serviceOption(RecordDatabase))
      const beside = records !== undefined && isSameDatabase(records, sql) ? records.distribution : undefined
      // In the background: until it is known, keys are looked up first.
      const learn = beside === undefined ? Effect.void : Effect.forkDetach(beside.refresh)
      yield* learn
      const [text] = keyRow(sql, new Uint8Array()).compile()
      const traced = Tracing.spanned("OrgResolver.resolve", {})
      const resolveHash = (keyHash: Uint8Array) => {
        const request = { key: shareOf(keyHash), within, unavailable: CredentialStoreDown.from }
        const values = [keyHash]
        const rows = sql.runShort(request, [text, values], () => sql.unsafe(text, values))
        const organization = Effect.flatMap(rows, ([row]) => organizationOf(sql, keyHash, row))
        const isUnknown = beside !== undefined && beside.isDistributed() === undefined
        return traced(isUnknown ? Effect.andThen(learn, organization) : organization)
      }
      return OrgResolver.of({
        resolve: (key) => resolveHash(hashOf(key)),
        ...(beside !== undefined && { resolveHash, readsByKey: () => beside.isDistributed() === false })
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
