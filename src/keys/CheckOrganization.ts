/** What needs the id of the current organization, also where only the hash of its key is known. */
import { Context, Effect } from "effect"
import { type CredentialStoreDown, OrgMismatch, Unauthorized } from "../api/Errors.ts"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"

/** Looks up the key of a request by its hash. Provided with a `CurrentOrganization` that has only that. */
export const ResolveHash = Context.Reference<
  (keyHash: Uint8Array) => Effect.Effect<string, Unauthorized | CredentialStoreDown>
>("practice-data/keys/CheckOrganization/ResolveHash", { defaultValue: () => () => Effect.fail(new Unauthorized()) })

/** Runs an effect that needs the id of the current organization: looks up its key before, unless that was done. */
export const identified = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const organization = yield* CurrentOrganization
    if ("id" in organization) return yield* effect
    const id = yield* (yield* ResolveHash)(organization.keyHash)
    return yield* Effect.provideService(effect, CurrentOrganization, { id })
  })

/** Refuses a request that names another organization than the key's. */
export const checkOrganization = Effect.fnUntraced(function* (request: { readonly organization?: string | null }) {
  if (request.organization === undefined || request.organization === null) return
  const id = yield* identified(CurrentOrganization.id)
  if (request.organization !== id) return yield* new OrgMismatch()
})
