/** The authorization of the data API, over `OrgResolver`. */
import { Context, Effect, Exit, Layer, Option, Predicate, Redacted } from "effect"
import { HttpMiddleware, HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { type CredentialStoreDown, marked, Unauthorized } from "../api/Errors.ts"
import type { Identify } from "../http/Middleware.ts"
import { mayBeLarge } from "../http/RequestBody.ts"
import { Authorization, bearer, ReadsByKey } from "../api/Authorization.ts"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { Note, note, type Refusal } from "../observability/RequestFacts.ts"
import { hashOf, isLikely, likely, prefixOf } from "./KeyLookup.ts"
import { UnresolvedKey } from "./OrganizationReads.ts"
import { OrgResolver } from "./OrgResolver.ts"
import { RequestLimit } from "./RequestLimit.ts"

const unauthorized = new Unauthorized()

/** The response to it, encoded once: it is the one that strangers can ask for. */
const unauthorizedResponse = HttpServerResponse.jsonUnsafe(
  { detail: unauthorized.detail },
  { status: 401, headers: { ...marked, "www-authenticate": "Bearer" } }
)

/** The tag of an error. HttpApi wraps the error of a handler. */
const tagOf = (error: unknown): string => {
  if (Predicate.hasProperty(error, "error")) return tagOf(error.error)
  return Predicate.hasProperty(error, "_tag") && Predicate.isString(error._tag) ? error._tag : ""
}

/** Why a request is refused, by the error of its response. A store that fails says so itself. */
const refusals: Readonly<Record<string, Refusal>> = {
  Unauthorized: "key",
  TooManyRequests: "limit",
  ProcessorBusy: "load",
  ProcessorDown: "processor"
}

const refused = Effect.as(note({ refusal: "key" }), unauthorizedResponse)

/** Responds to a key that is not valid, and notes of any other error why the request is refused. */
const answerRefusals = <E, R>(handled: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
  Effect.catch(handled, (error) => {
    const tag = tagOf(error)
    if (tag === unauthorized._tag) return refused
    const refusal = refusals[tag]
    return refusal === undefined ? Effect.fail(error) : Effect.andThen(note({ refusal }), Effect.fail(error))
  })

const noteOrganization = <E>(resolved: Effect.Effect<string, E>) =>
  Effect.tap(resolved, (organization) => note({ organization }))

/** The outcome of a look-up that is over before the request reaches its endpoint. */
const Resolved = Context.Reference<Exit.Exit<string, Unauthorized | CredentialStoreDown> | undefined>(
  "practice-data/keys/AuthorizationServer/Resolved",
  { defaultValue: () => undefined }
)

// A key is in a header: the query of the request is not looked at.
const credentialOf = Effect.provideService(
  HttpApiBuilder.securityDecode(bearer),
  HttpServerRequest.ParsedSearchParams,
  {}
)

/**
 * Looks the key of a request up before it is handled, for what has to know whether it is valid. Without an `OrgResolver`,
 * none is.
 */
export const identify = Effect.map(
  Effect.serviceOption(OrgResolver),
  (resolver): Identify =>
    (handle) =>
      Effect.flatMap(credentialOf, (credential) =>
        Option.isNone(resolver) || Redacted.value(credential) === ""
          ? handle(false)
          : Effect.flatMap(Effect.exit(resolver.value.resolve(credential)), (resolved) =>
              Effect.provideService(handle(Exit.isSuccess(resolved)), Resolved, resolved)
            )
      )
)

/**
 * Responds to requests without a key, and to those with a key that is not like one of this service and that nobody
 * knows, before anything else is made of them: strangers can send any number. Without an
 * `OrgResolver`, lets all pass.
 */
export const gate = Effect.map(Effect.serviceOption(OrgResolver), (resolver) =>
  HttpMiddleware.make((httpEffect) =>
    Effect.contextWith((context: Context.Context<HttpServerRequest.HttpServerRequest>) => {
      const { headers, method } = Context.get(context, HttpServerRequest.HttpServerRequest)
      if (Option.isNone(resolver) || method !== "POST" || headers["authorization"]?.startsWith(likely) === true) {
        return httpEffect
      }
      return Effect.flatMap(credentialOf, (credential) => {
        if (Redacted.value(credential) === "") return refused
        if (isLikely(credential)) return httpEffect
        const known = Context.get(context, Resolved)
        const found = known === undefined ? Effect.exit(resolver.value.resolve(credential)) : Effect.succeed(known)
        return Effect.flatMap(found, (resolved) =>
          Option.exists(Exit.findErrorOption(resolved), ({ _tag }) => _tag === unauthorized._tag)
            ? refused
            : Effect.provideService(httpEffect, Resolved, resolved)
        )
      })
    })
  )
)

/** Over `OrgResolver`. */
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
          // A long body is read for the holder of a key only, requests are counted for an organization that is known, and
          // the look-up alone costs half of a read that finds out that nobody knows the key.
          const resolved = Context.get(context, Resolved)
          const isLookedUpFirst =
            resolved !== undefined ||
            readsByKey?.() === false ||
            limit !== undefined ||
            !Context.get(endpoint.annotations, ReadsByKey) ||
            mayBeLarge(Context.get(context, HttpServerRequest.HttpServerRequest))
          if (lookUp === undefined || isLookedUpFirst) {
            return answerRefusals(
              Effect.flatMap(noteOrganization(resolved ?? resolve(credential)), (id) => {
                const response = Effect.provideService(handled, CurrentOrganization, { id })
                return limit === undefined ? response : Effect.andThen(limit(id), response)
              })
            )
          }
          const key = new UnresolvedKey(hashOf(credential), lookUp)
          // A success comes from a read that has looked the key up. A stranger hears of no other error.
          const response = Effect.catch(Effect.provideService(handled, CurrentOrganization, key), (error) =>
            key.isUsed ? Effect.fail(error) : Effect.andThen(key.resolve, Effect.fail(error))
          )
          return answerRefusals(response)
        })
    })
  })
)
