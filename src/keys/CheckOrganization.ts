/** The organization that a request names is the one of its key. */
import { Context, Effect } from "effect"
import { type CredentialStoreDown, OrgMismatch, Unauthorized } from "../api/Errors.ts"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"

/** Looks up the key of a request by its hash. Provided with a `CurrentOrganization` that has only that. */
export const ResolveHash = Context.Reference<
  (keyHash: Uint8Array) => Effect.Effect<string, Unauthorized | CredentialStoreDown>
>("practice-data/keys/CheckOrganization/ResolveHash", { defaultValue: () => () => Effect.fail(new Unauthorized()) })

const orgMismatch = new OrgMismatch()

const resolve = (keyHash: Uint8Array) => Effect.flatMap(ResolveHash, (resolveHash) => resolveHash(keyHash))

/** Refuses a request that names another organization than the key's. */
export const checkOrganization = ({ organization: named }: { readonly organization?: string | null }) =>
  named === undefined || named === null
    ? Effect.void
    : Effect.flatMap(CurrentOrganization, (organization) =>
        Effect.flatMap("id" in organization ? Effect.succeed(organization.id) : resolve(organization.keyHash), (id) =>
          id === named ? Effect.void : Effect.fail(orgMismatch)
        )
      )
