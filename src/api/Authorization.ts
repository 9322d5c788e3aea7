/**
 * The bearer authorization of the data API: the API key decides the organization.
 *
 * Contract: section 5. A missing or invalid key is 401; a store of keys that cannot be reached is 503, never 401.
 */
import { Context } from "effect"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import { CredentialStoreDown, responses, responseWithHeader, TooManyRequests, Unauthorized } from "./Errors.ts"
import type { CurrentOrganization } from "./CurrentOrganization.ts"

/** The header that has the key. */
export const bearer = HttpApiSecurity.bearer.pipe(
  HttpApiSecurity.annotateMerge(
    OpenApi.annotations({
      description: "An API key, as `Authorization: Bearer <API_KEY>`. It resolves to one organization."
    })
  )
)

/**
 * Annotation of an endpoint that responds with nothing but errors unless a statement that reads records has looked the
 * API key up. Of any other endpoint the key is looked up before it is handled.
 */
export const ReadsByKey = Context.Reference<boolean>("practice-data/api/Authorization/ReadsByKey", {
  defaultValue: () => false
})

/** Resolves the request's API key and provides the organization to what runs behind it. */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: CurrentOrganization }>()(
  "practice-data/api/Authorization",
  {
    requiredForClient: true,
    security: { bearer },
    error: [
      responseWithHeader(Unauthorized, "www-authenticate", "Bearer"),
      ...responses(TooManyRequests, CredentialStoreDown)
    ]
  }
) {}
