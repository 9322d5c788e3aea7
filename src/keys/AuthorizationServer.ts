/** The authorization of the data API, over `OrgResolver`. */
import { Clock, Context, Duration, Effect, Exit, Layer, Option, Redacted } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import * as RateLimiter from "effect/persistence/RateLimiter"
import {
  type CredentialStoreDown,
  type DetailError,
  errorResponse,
  TooManyRequests,
  Unauthorized
} from "../api/Errors.ts"
import { Authorization, bearer, CurrentOrganization } from "../api/Authorization.ts"
import { note } from "../observability/RequestFacts.ts"
import * as Time from "../process/Time.ts"
import { UnresolvedKey, withKey } from "./OrganizationReads.ts"
import { OrgResolver, prefixOf } from "./OrgResolver.ts"

const unauthorized = new Unauthorized()

/** The response to a stranger. */
const refused = Effect.as(note({ refusal: "key" }), errorResponse(unauthorized, { "www-authenticate": "Bearer" }))

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
    Effect.gen(function* () {
      // oxlint-disable-next-line eslint/no-restricted-properties -- below, it runs by a steady clock
      const limiter = yield* RateLimiter.make
      const clock = Time.steady(yield* Clock.Clock)
      const options = { algorithm: "token-bucket", limit: perSecond, window: Duration.seconds(1) } as const
      return (key: string) =>
        limiter.consume({ ...options, key }).pipe(
          Effect.provideService(Clock.Clock, clock),
          Effect.catch(() => Effect.andThen(note({ refusal: "limit" }), Effect.fail(tooManyRequests))),
          Effect.asVoid
        )
    })
  ).pipe(Layer.provide(RateLimiter.layerStoreMemory))

/** The outcome of the look-up of a key. */
export type Outcome = Exit.Exit<string, Unauthorized | CredentialStoreDown>

/** The outcome for a request whose key was looked up before it reached its endpoint. */
const Resolved = Context.Reference<Outcome | undefined>("practice-data/keys/AuthorizationServer/Resolved", {
  defaultValue: () => undefined
})

/** Looks up a credential, for the facts of its request too. */
const lookUp =
  ({ resolve }: OrgResolver["Service"]) =>
  (credential: Redacted.Redacted) =>
    Redacted.value(credential) === ""
      ? Effect.fail(unauthorized)
      : Effect.andThen(
          note({ keyPrefix: prefixOf(Redacted.value(credential)) }),
          Effect.tap(resolve(credential), (organization) => note({ organization }))
        )

// The key is in a header: the query is not needed.
const credentialOf = Effect.provideService(
  HttpApiBuilder.securityDecode(bearer),
  HttpServerRequest.ParsedSearchParams,
  {}
)

/** Looks up the keys of requests before they are handled. Without an `OrgResolver`, no key is looked up. */
export const keys = Effect.map(Effect.serviceOption(OrgResolver), (found) =>
  Option.isNone(found)
    ? undefined
    : {
        /** The outcome for the current request. */
        lookUp: Effect.exit(Effect.flatMap(credentialOf, lookUp(found.value))),

        /** Handles a request with an outcome. A stranger is refused before anything else is done: there may be many. */
        handle: <E, R>(outcome: Outcome, handled: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
          Option.exists(Exit.findErrorOption(outcome), ({ _tag }) => _tag === "Unauthorized")
            ? refused
            : Effect.provideService(handled, Resolved, outcome)
      }
)

export const layer = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const resolve = lookUp(yield* OrgResolver)
    const limit = yield* RequestLimit
    return Authorization.of({
      bearer: Effect.fnUntraced(
        function* (handled, { credential }) {
          const resolved = yield* Resolved
          const id = yield* resolved ?? resolve(credential)
          if (limit !== undefined) yield* limit(id)
          return yield* Effect.provideService(handled, CurrentOrganization, { id })
        },
        Effect.catchTag("Unauthorized", () => refused)
      )
    })
  })
)

/** The most valid keys that are remembered with their organizations. */
const mostKnown = 10_000

/**
 * The authorization of requests whose keys are looked up by their first read, where that can be: for the lane. A key is
 * looked up before where its request has to be counted, and the organization is not known from one before.
 */
export const byFirstRead = Effect.gen(function* () {
  const limit = yield* RequestLimit
  const resolver = yield* OrgResolver
  const organizations = new Map<string, string>()

  const count = (key: UnresolvedKey, counted: NonNullable<typeof limit>) => {
    const known = organizations.get(key.digest)
    if (known !== undefined) {
      // One that was revoked since is no longer the organization's.
      return Effect.catch(counted(known), (error) => Effect.andThen(key.resolve, Effect.fail(error)))
    }
    return Effect.flatMap(key.resolve, (id) => {
      if (organizations.size >= mostKnown) organizations.clear()
      organizations.set(key.digest, id)
      return counted(id)
    })
  }

  /** @param needsId as in `withKey` */
  return <E extends DetailError>(
    given: string,
    handled: Effect.Effect<HttpServerResponse.HttpServerResponse, E, CurrentOrganization>,
    needsId: boolean
  ): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
    const key = new UnresolvedKey(given, resolver)
    const response = withKey(key, handled, needsId)
    return Effect.andThen(
      note({ keyPrefix: prefixOf(given) }),
      Effect.catch(limit === undefined ? response : Effect.andThen(count(key, limit), response), (error) => {
        if (error._tag !== "Unauthorized") return Effect.succeed(errorResponse(error))
        organizations.delete(key.digest)
        return refused
      })
    )
  }
})
