/** The organization on whose behalf a request is answered. */
import { Context, Effect, type Exit } from "effect"
import type { CredentialStoreDown, RecordStoreDown, Unauthorized } from "./Errors.ts"

/** What becomes known of a key: its organization, that there is no such key, or that the store cannot tell. */
export type Resolved = Exit.Exit<string, Unauthorized | CredentialStoreDown | RecordStoreDown>

/** An API key that nobody has looked up yet: the statement that reads the records may do it on its way. */
export interface PresentedKey {
  /** SHA-256 of the key. */
  readonly hash: Uint8Array
  /** Says what the statement found. `isFirstUseToday` has the use of the key recorded. */
  readonly settle: (resolved: Resolved, isFirstUseToday?: boolean) => Effect.Effect<void>
}

/**
 * The organization that the request's API key resolves to. Whatever reads records requires it, so a read that is not
 * scoped to an organization does not compile.
 *
 * @effect-leakable-service
 */
export class CurrentOrganization extends Context.Service<
  CurrentOrganization,
  {
    /** Its id. Of a key that nobody has looked up yet, this does. */
    readonly id: Effect.Effect<string, Unauthorized | CredentialStoreDown | RecordStoreDown>
    /** The key, where nobody has looked it up yet. */
    readonly key?: PresentedKey
  }
>()("practice-data/api/CurrentOrganization") {
  /** An organization that is known. */
  static readonly known = (id: string) => CurrentOrganization.of({ id: Effect.succeed(id) })
}
