/** The authorization of the data API, over `OrgResolver`. */
import { Context, Effect, Layer, Predicate, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { Unauthorized } from "../api/Errors.ts"
import { mayBeLong } from "../http/RequestBody.ts"
import { Authorization, ReadsByKey } from "../api/Authorization.ts"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { ResolveHash } from "./CheckOrganization.ts"
import { CurrentRequest, type Refusal } from "../observability/RequestFacts.ts"
import { hashOf, prefixOf } from "./KeyLookup.ts"
import { OrgResolver } from "./OrgResolver.ts"
import { RequestLimit } from "./RequestLimit.ts"

// Made once: a stack trace costs more than the rest of the response.
const unauthorized = new Unauthorized()

const errorsOfReads = ["Unauthorized", "CredentialStoreDown", "RecordStoreDown", "RecordNotFound", "CursorExpired"]

/** The tag of an error. HttpApi wraps the error of a handler. */
const tagOf = (error: unknown): string => {
  if (Predicate.hasProperty(error, "error")) return tagOf(error.error)
  return Predicate.hasProperty(error, "_tag") && Predicate.isString(error._tag) ? error._tag : ""
}

/** Whether a statement that reads records failed, which looked the key up itself. */
const isOfRead = (error: unknown): boolean => errorsOfReads.includes(tagOf(error))

/** Why a request is refused, by the error of its response. A store that fails says so itself. */
const refusals: Readonly<Record<string, Refusal>> = {
  Unauthorized: "key",
  TooManyRequests: "limit",
  ProcessorBusy: "load",
  ProcessorDown: "processor"
}

export const layer = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const { readsByKey, resolve, resolveHash } = yield* OrgResolver
    const limit = yield* RequestLimit
    return Authorization.of({
      bearer: (handled, { credential, endpoint }) =>
        Effect.flatMap(CurrentRequest, (facts) => {
          const known = <E>(resolved: Effect.Effect<string, E>) =>
            Effect.tap(resolved, (id) =>
              Effect.sync(() => {
                if (facts !== undefined) facts.organization = id
              })
            )
          const response = Effect.gen(function* () {
            if (Redacted.value(credential) === "") return yield* unauthorized
            if (facts !== undefined) facts.keyPrefix = prefixOf(credential)
            // A long body is read for the holder of a key only, and requests are counted for an organization that is known.
            const isLookedUpFirst =
              resolveHash === undefined ||
              readsByKey?.() === false ||
              limit !== undefined ||
              !Context.get(endpoint.annotations, ReadsByKey) ||
              mayBeLong(yield* HttpServerRequest.HttpServerRequest)
            if (isLookedUpFirst) {
              const id = yield* known(resolve(credential))
              if (limit !== undefined) yield* limit(id)
              return yield* Effect.provideService(handled, CurrentOrganization, { id })
            }
            const keyHash = hashOf(credential)
            const lookUp = (hash: Uint8Array) => known(resolveHash(hash))
            // A success comes from a read that has looked the key up; of other errors nobody else is to hear.
            return yield* handled.pipe(
              Effect.provideService(CurrentOrganization, { keyHash }),
              Effect.provideService(ResolveHash, lookUp),
              Effect.tapError((error) => (isOfRead(error) ? Effect.void : lookUp(keyHash)))
            )
          })
          if (facts === undefined) return response
          return Effect.tapError(response, (error) =>
            Effect.sync(() => {
              facts.refusal = refusals[tagOf(error)] ?? facts.refusal
            })
          )
        })
    })
  })
)
