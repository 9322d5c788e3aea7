/**
 * The authorization of the data API: from the API key of a request to its `CurrentOrganization`. `earlyLookUp` has
 * `OrgResolver` look the key up before the body is read, and `layer` provides its organization to the handler. In a server
 * without our middleware, `layer` looks it up.
 */
import { Clock, Context, Duration, Effect, Exit, Layer, Option, Redacted } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import * as RateLimiter from "effect/persistence/RateLimiter"
import { type CredentialStoreDown, errorResponse, TooManyRequests, Unauthorized } from "../api/Errors.ts"
import { Authorization, bearer, CurrentOrganization } from "../api/Authorization.ts"
import { note } from "../observability/RequestFacts.ts"
import * as Time from "../observability/Time.ts"
import { OrgResolver, visiblePrefix } from "./OrgResolver.ts"

const unauthorized = new Unauthorized()

/** The response to an invalid key. */
export const refused = Effect.as(
  note({ refusal: "key" }),
  errorResponse(unauthorized, { "www-authenticate": "Bearer" })
)

// Made once: a stack trace costs more than the rest of the response.
const tooManyRequests = new TooManyRequests()

/** Counts a request of an organization; undefined without a limit. */
export const RequestLimit = Context.Reference<
  ((organization: string) => Effect.Effect<void, TooManyRequests>) | undefined
>("practice-data/keys/AuthorizationServer/RequestLimit", { defaultValue: () => undefined })

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
type LookUp = Exit.Exit<string, Unauthorized | CredentialStoreDown>

/** The look-up for a request before it reached its endpoint. */
const EarlyLookUp = Context.Reference<LookUp | undefined>("practice-data/keys/AuthorizationServer/EarlyLookUp", {
  defaultValue: () => undefined
})

/** Looks up a credential, for the facts of its request too. */
const lookUp =
  ({ resolve }: OrgResolver["Service"]) =>
  (credential: Redacted.Redacted) =>
    Redacted.value(credential) === ""
      ? Effect.fail(unauthorized)
      : Effect.andThen(
          note({ keyPrefix: visiblePrefix(Redacted.value(credential)) }),
          Effect.tap(resolve(credential), (organization) => note({ organization }))
        )

// The key is in a header: the query is not needed.
const presentedKey = Effect.provideService(
  HttpApiBuilder.securityDecode(bearer),
  HttpServerRequest.ParsedSearchParams,
  {}
)

/**
 * Looks up the key of a request before it is handled. An invalid one is refused before anything else is done: there may be
 * many. Undefined without an `OrgResolver`.
 */
export const earlyLookUp = Effect.map(Effect.serviceOption(OrgResolver), (resolver) => {
  if (Option.isNone(resolver)) return undefined
  const outcomes = Effect.exit(Effect.flatMap(presentedKey, lookUp(resolver.value)))
  return <E, R>(handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
    Effect.flatMap(outcomes, (outcome) =>
      Option.exists(Exit.findErrorOption(outcome), ({ _tag }) => _tag === "Unauthorized")
        ? refused
        : Effect.provideService(handler, EarlyLookUp, outcome)
    )
})

export const layer = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const resolve = lookUp(yield* OrgResolver)
    const limit = yield* RequestLimit
    return Authorization.of({
      bearer: Effect.fnUntraced(
        function* (handler, { credential }) {
          const id = yield* (yield* EarlyLookUp) ?? resolve(credential)
          if (limit !== undefined) yield* limit(id)
          return yield* Effect.provideService(handler, CurrentOrganization, { id })
        },
        Effect.catchTag("Unauthorized", () => refused)
      )
    })
  })
)
