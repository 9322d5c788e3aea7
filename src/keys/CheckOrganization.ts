/** The organization that a request names is the one of its key. */
import { Context, Effect } from "effect"
import { type CredentialStoreDown, OrgMismatch, Unauthorized } from "../api/Errors.ts"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"

/** Looks up the key of a request by its hash. Provided with a `CurrentOrganization` that has only that. */
export const ResolveHash = Context.Reference<
  (keyHash: Uint8Array) => Effect.Effect<string, Unauthorized | CredentialStoreDown>
>("practice-data/keys/CheckOrganization/ResolveHash", { defaultValue: () => () => Effect.fail(new Unauthorized()) })

/** Refuses a request that names another organization than the key's. */
export const checkOrganization = Effect.fnUntraced(function* (request: { readonly organization?: string | null }) {
  if (request.organization === undefined || request.organization === null) return
  const organization = yield* CurrentOrganization
  const id = "id" in organization ? organization.id : yield* (yield* ResolveHash)(organization.keyHash)
  if (request.organization !== id) return yield* new OrgMismatch()
})
