/** The organization on whose behalf a request is served. */
import { Context, Effect } from "effect"
import { type CredentialStoreDown, OrgMismatch, Unauthorized } from "./Errors.ts"

const orgMismatch = new OrgMismatch()

/**
 * The organization that the request's API key resolves to. Everything that reads records requires it, so a read that is
 * not scoped to an organization does not compile.
 *
 * It is known by its id, or not looked up yet: `keys/OrganizationReads` then leaves the look-up to the statement.
 *
 * @effect-leakable-service
 */
export class CurrentOrganization extends Context.Service<
  CurrentOrganization,
  { readonly id: string } | { readonly resolve: Effect.Effect<string, Unauthorized | CredentialStoreDown> }
>()("practice-data/api/CurrentOrganization") {
  /** An organization that is known by its id. */
  static readonly known = (id: string) => CurrentOrganization.of({ id })

  /** The id, for readers that need it before they begin. */
  static readonly id: Effect.Effect<string, Unauthorized, CurrentOrganization> = Effect.flatMap(
    CurrentOrganization,
    (organization) => ("id" in organization ? Effect.succeed(organization.id) : Effect.fail(new Unauthorized()))
  )

  /** Refuses a request that names another organization than the key's. */
  static readonly check = ({ organization: named }: { readonly organization?: string | null }) =>
    named === undefined || named === null
      ? Effect.void
      : Effect.flatMap(CurrentOrganization, (organization) =>
          Effect.flatMap("id" in organization ? Effect.succeed(organization.id) : organization.resolve, (id) =>
            id === named ? Effect.void : Effect.fail(orgMismatch)
          )
        )
}
