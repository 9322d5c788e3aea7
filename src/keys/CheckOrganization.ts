/** Refuses a request that names another organization than the key's. Contract: section 8. */
import { Effect } from "effect"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { OrgMismatch } from "../api/Errors.ts"

export const checkOrganization = Effect.fnUntraced(function* (request: { readonly organization?: string | null }) {
  if (request.organization === undefined || request.organization === null) return
  const id = yield* (yield* CurrentOrganization).id
  if (request.organization !== id) return yield* new OrgMismatch()
})
