/**
 * The bearer authorization of the data API: the API key decides the organization. A missing or invalid key is 401; an
 * unreachable store of keys is 503, never 401.
 */
import { Context, type Layer, Redacted } from "effect"
import { HttpClientRequest } from "effect/http"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import { CredentialStoreDown, responses, responseWithHeader, TooManyRequests, Unauthorized } from "./Errors.ts"
import type { CurrentOrganization } from "./CurrentOrganization.ts"

// In lower case, as the standard spells it.
export const bearer = HttpApiSecurity.http({ scheme: "bearer" }).pipe(
  HttpApiSecurity.annotateMerge(
    OpenApi.annotations({
      description: "An API key, as `Authorization: Bearer <API_KEY>`. It resolves to one organization."
    })
  )
)

/** Annotation of an endpoint whose statement looks the API key up. For any other, it is looked up before the handler. */
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

/** The layer that a typed client of the data API needs beside its address: sends an API key with every request. */
export const layerKey = (key: Redacted.Redacted): Layer.Layer<HttpApiMiddleware.ForClient<Authorization>> =>
  HttpApiMiddleware.layerClient(Authorization, ({ next, request }) =>
    next(HttpClientRequest.bearerToken(request, Redacted.value(key)))
  )
