/** The organization on whose behalf a request is served. */
import { Context, Effect } from "effect"
import { Unauthorized } from "./Errors.ts"

/**
 * The organization that the request's API key resolves to. Whatever reads records requires it, so a read that is not
 * scoped to an organization does not compile.
 *
 * It is known by its id, or by the SHA-256 of a key that nobody has looked up yet: the statement that reads the records
 * looks the key up on its way.
 *
 * @effect-leakable-service
 */
export class CurrentOrganization extends Context.Service<
  CurrentOrganization,
  { readonly id: string } | { readonly keyHash: Uint8Array }
>()("practice-data/api/CurrentOrganization") {
  /** An organization that is known by its id. */
  static readonly known = (id: string) => CurrentOrganization.of({ id })

  /** The id, for what can look no key up. */
  static readonly id: Effect.Effect<string, Unauthorized, CurrentOrganization> = Effect.flatMap(
    CurrentOrganization,
    (organization) => ("id" in organization ? Effect.succeed(organization.id) : Effect.fail(new Unauthorized()))
  )
}
