/** The authorization of the data API, over `OrgResolver`. */
import { Context, Effect, Layer, Predicate, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { Unauthorized } from "../api/Errors.ts"
import { mayBeLong } from "../http/RequestBody.ts"
import { Authorization, ReadsByKey } from "../api/Authorization.ts"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { ResolveHash } from "./CheckOrganization.ts"
import { hashOf } from "./KeyLookup.ts"
import { OrgResolver } from "./OrgResolver.ts"
import { RequestLimit } from "./RequestLimit.ts"

// Made once: a stack trace costs more than the rest of the response.
const unauthorized = new Unauthorized()

const errorsOfReads = ["Unauthorized", "CredentialStoreDown", "RecordStoreDown", "RecordNotFound", "CursorExpired"]

/** Whether a statement that reads records failed, which looked the key up itself. HttpApi wraps the error of a handler. */
const isOfRead = (error: unknown): boolean =>
  Predicate.hasProperty(error, "error")
    ? isOfRead(error.error)
    : errorsOfReads.some((tag) => Predicate.isTagged(error, tag))

export const layer = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const { resolve, resolveHash } = yield* OrgResolver
    const limit = yield* RequestLimit
    return Authorization.of({
      bearer: Effect.fnUntraced(function* (handled, { credential, endpoint }) {
        if (Redacted.value(credential) === "") return yield* unauthorized
        // A long body is read for the holder of a key only, and requests are counted for an organization that is known.
        const isLookedUpFirst =
          resolveHash === undefined ||
          limit !== undefined ||
          !Context.get(endpoint.annotations, ReadsByKey) ||
          mayBeLong(yield* HttpServerRequest.HttpServerRequest)
        if (isLookedUpFirst) {
          const id = yield* resolve(credential)
          if (limit !== undefined) yield* limit(id)
          return yield* Effect.provideService(handled, CurrentOrganization, { id })
        }
        const keyHash = hashOf(credential)
        // A success comes from a read that has looked the key up; of other errors nobody else is to hear.
        return yield* handled.pipe(
          Effect.provideService(CurrentOrganization, { keyHash }),
          Effect.provideService(ResolveHash, resolveHash),
          Effect.tapError((error) => (isOfRead(error) ? Effect.void : resolveHash(keyHash)))
        )
      })
    })
  })
)
