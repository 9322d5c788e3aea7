/** The authorization of the data API, over `OrgResolver`. */
import { Context, Effect, Exit, Layer, Option, Predicate, Redacted, Schema } from "effect"
import { HttpMiddleware, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import * as RateLimiter from "effect/persistence/RateLimiter"
import { type CredentialStoreDown, errorResponse, TooManyRequests, Unauthorized } from "../api/Errors.ts"
import { Authorization, bearer, CurrentOrganization, ReadsByKey } from "../api/Authorization.ts"
import { mayBeLarge } from "../http/LargeBodies.ts"
import { Note, note } from "../observability/RequestFacts.ts"
import * as Time from "../process/Time.ts"
import { UnresolvedKey } from "./OrganizationReads.ts"
import { hashOf, isOurs, OrgResolver, prefixOf, unauthorized } from "./OrgResolver.ts"

const unauthorizedResponse = errorResponse(unauthorized, { "www-authenticate": "Bearer" })

const refused = Effect.as(note({ refusal: "key" }), unauthorizedResponse)

const is401 = Schema.is(Unauthorized)

/** HttpApi wraps the error of a handler. */
const isUnauthorized = (error: unknown) => is401(error) || (Predicate.hasProperty(error, "error") && is401(error.error))

const answerRefusal = <E, R>(handled: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
  Effect.catchIf(handled, isUnauthorized, () => refused)

const noteOrganization = <E>(resolved: Effect.Effect<string, E>) =>
  Effect.tap(resolved, (organization) => note({ organization }))

// Made once: a stack trace costs more than the rest of the response.
const tooManyRequests = new TooManyRequests()

/** Counts a request of an organization. Without a limit, nothing. */
const RequestLimit = Context.Reference<((organization: string) => Effect.Effect<void, TooManyRequests>) | undefined>(
  "practice-data/keys/AuthorizationServer/RequestLimit",
  { defaultValue: () => undefined }
)

/** The limit of the requests that an organization may send each second, and at once. Each process holds it by itself. */
export const layerLimit = (perSecond: number) =>
  Layer.effect(
    RequestLimit,
    Effect.map(
      // oxlint-disable-next-line eslint/no-restricted-properties -- below, it runs by Time.steadily
      RateLimiter.make,
      (limiter) => (organization: string) =>
        Effect.catch(
          Time.steadily(
            limiter.consume({ algorithm: "token-bucket", key: organization, limit: perSecond, window: "1 second" })
          ),
          () => Effect.andThen(note({ refusal: "limit" }), Effect.fail(tooManyRequests))
        )
    )
  ).pipe(Layer.provide(RateLimiter.layerStoreMemory))

type Outcome = Exit.Exit<string, Unauthorized | CredentialStoreDown>

/** The outcome of a look-up before the request reaches its endpoint. */
const Resolved = Context.Reference<Outcome | undefined>("practice-data/keys/AuthorizationServer/Resolved", {
  defaultValue: () => undefined
})

// The key is in a header: the query is not needed.
const credentialOf = Effect.provideService(
  HttpApiBuilder.securityDecode(bearer),
  HttpServerRequest.ParsedSearchParams,
  {}
)

/** Looks up the keys of requests before they are handled. Without an `OrgResolver`, no key is looked up. */
export const keys = Effect.map(Effect.serviceOption(OrgResolver), (found) => {
  if (Option.isNone(found)) return undefined
  const { resolve } = found.value

  /** Looks up a key unless it was before. The outcome is for the handler, and for all that it runs. */
  const withOutcome = <A, E, R>(key: Redacted.Redacted, handle: (outcome: Outcome) => Effect.Effect<A, E, R>) =>
    Effect.flatMap(Resolved, (known) =>
      known === undefined
        ? Effect.flatMap(Effect.exit(resolve(key)), (outcome) =>
            Effect.provideService(handle(outcome), Resolved, outcome)
          )
        : handle(known)
    )

  return {
    /** Looks up the key of a request, and tells if it is valid. */
    identify: <A, E, R>(handle: (isValid: boolean) => Effect.Effect<A, E, R>) =>
      Effect.flatMap(credentialOf, (credential) =>
        Redacted.value(credential) === ""
          ? handle(false)
          : withOutcome(credential, (outcome) => handle(Exit.isSuccess(outcome)))
      ),

    /**
     * Rejects requests without a key, and with an unknown key of another form than ours, before anything else is done:
     * strangers can send any number.
     */
    gate: HttpMiddleware.make((httpEffect) =>
      Effect.contextWith((context: Context.Context<HttpServerRequest.HttpServerRequest>) => {
        const { headers, method } = Context.get(context, HttpServerRequest.HttpServerRequest)
        if (method !== "POST" || isOurs.test(headers["authorization"] ?? "")) return httpEffect
        return Effect.flatMap(credentialOf, (credential) =>
          Redacted.value(credential) === ""
            ? refused
            : withOutcome(credential, (outcome) =>
                Option.exists(Exit.findErrorOption(outcome), isUnauthorized) ? refused : httpEffect
              )
        )
      })
    )
  }
})

export const layer = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const { readsByKey, resolve, resolveHash } = yield* OrgResolver
    const limit = yield* RequestLimit
    const lookUp = resolveHash === undefined ? undefined : (hash: Uint8Array) => noteOrganization(resolveHash(hash))
    return Authorization.of({
      bearer: (handled, { credential, endpoint }) =>
        Effect.contextWith((context: Context.Context<HttpServerRequest.HttpServerRequest>) => {
          if (Redacted.value(credential) === "") return refused
          Context.get(context, Note)({ keyPrefix: prefixOf(credential) })
          // A large body is read for the holder of a key only, and requests are counted for a known organization.
          const resolved = Context.get(context, Resolved)
          const isLookedUpFirst =
            resolved !== undefined ||
            readsByKey?.() === false ||
            limit !== undefined ||
            !Context.get(endpoint.annotations, ReadsByKey) ||
            mayBeLarge(Context.get(context, HttpServerRequest.HttpServerRequest))
          if (lookUp === undefined || isLookedUpFirst) {
            return answerRefusal(
              Effect.flatMap(noteOrganization(resolved ?? resolve(credential)), (id) => {
                const response = Effect.provideService(handled, CurrentOrganization, { id })
                return limit === undefined ? response : Effect.andThen(limit(id), response)
              })
            )
          }
          const key = new UnresolvedKey(hashOf(credential), lookUp)
          // A success comes from a read that has looked the key up. A stranger gets no other error than 401.
          const response = Effect.catch(Effect.provideService(handled, CurrentOrganization, key), (error) =>
            key.isUsed ? Effect.fail(error) : Effect.andThen(key.resolve, Effect.fail(error))
          )
          return answerRefusal(response)
        })
    })
  })
)
