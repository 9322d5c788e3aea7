/**
 * The requirements of a request: an API key, which decides the organization, and a JSON body. A missing or invalid key is
 * 401; an unreachable store of keys is 503, never 401.
 */
import { Context, Effect, type Layer, type Redacted } from "effect"
import { HttpClientRequest } from "effect/http"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import * as Errors from "./Errors.ts"

// In lower case, as the standard spells it.
export const bearer = HttpApiSecurity.http({ scheme: "bearer" }).pipe(
  HttpApiSecurity.annotateMerge(
    OpenApi.annotations({
      description: "An API key, as `Authorization: Bearer <API_KEY>`. It resolves to one organization."
    })
  )
)

const orgMismatch = new Errors.OrgMismatch()

/**
 * The organization that the request's API key resolves to. Reads of records require it: one without an organization does
 * not compile.
 *
 * @effect-leakable-service
 */
export class CurrentOrganization extends Context.Service<CurrentOrganization, { readonly id: string }>()(
  "practice-data/api/Authorization/CurrentOrganization"
) {
  static readonly id = Effect.map(this, ({ id }) => id)

  /** Refuses a request that names another organization than the key's. */
  static readonly check = ({ organization: named }: { readonly organization?: string | null }) =>
    named === undefined || named === null
      ? Effect.void
      : Effect.flatMap(CurrentOrganization.id, (id) => (id === named ? Effect.void : Effect.fail(orgMismatch)))
}

/** Resolves the request's API key and provides the organization to what runs behind it. */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: CurrentOrganization }>()(
  "practice-data/api/Authorization",
  {
    requiredForClient: true,
    security: { bearer },
    error: [
      Errors.responseWithHeader(Errors.Unauthorized, "www-authenticate", "Bearer"),
      ...Errors.responses(Errors.TooManyRequests, Errors.CredentialStoreDown)
    ]
  }
) {}

/** The layer that a typed client of the data API needs beside its address: sends an API key with every request. */
export const layerKey = (key: Redacted.Redacted): Layer.Layer<HttpApiMiddleware.ForClient<Authorization>> =>
  HttpApiMiddleware.layerClient(Authorization, ({ next, request }) => next(HttpClientRequest.bearerToken(request, key)))

/**
 * Refuses a body that does not meet the requirements, in the order of the checks: no content encoding, the content type, no
 * query string, then, after the API key, the size and the syntax, and last the endpoint's schema.
 */
export class JsonBody extends HttpApiMiddleware.Service<JsonBody>()("practice-data/api/Authorization/JsonBody", {
  error: [
    Errors.responseWithHeader(Errors.EncodingUnsupported, "accept-encoding", "identity"),
    ...Errors.responses(Errors.PayloadTooLarge),
    Errors.responseInvalid
  ]
}) {}
