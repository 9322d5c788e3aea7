/** The organization of a request. */
import { Context, Effect } from "effect"
import { type CredentialStoreDown, OrgMismatch, Unauthorized } from "./Errors.ts"

const orgMismatch = new OrgMismatch()

/**
 * The organization that the request's API key resolves to. Reads of records require it: one without an organization does
 * not compile. If it is not looked up yet, `keys/OrganizationReads` leaves that to the statement.
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
