/** The organization on whose behalf a request is answered. */
import { Context } from "effect"

/**
 * The organization that the request's API key resolves to. Whatever reads records requires it, so a read that is not
 * scoped to an organization does not compile.
 *
 * @effect-leakable-service
 */
export class CurrentOrganization extends Context.Service<CurrentOrganization, { readonly id: string }>()(
  "practice-data/Organization/CurrentOrganization"
) {}
