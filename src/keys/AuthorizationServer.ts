/** The authorization of the data API, over `OrgResolver`. */
import { Effect, Layer, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { Unauthorized } from "../api/Errors.ts"
import { mayBeLong } from "../http/RequestBody.ts"
import { Authorization } from "../api/Authorization.ts"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { OrgResolver } from "./OrgResolver.ts"
import { RequestLimit } from "./RequestLimit.ts"

// Made once: its stack trace costs more than the rest of the response.
const keyMissing = new Unauthorized()

export const layer = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const { present, resolve } = yield* OrgResolver
    const limit = yield* RequestLimit
    return Authorization.of({
      bearer: Effect.fnUntraced(function* (answered, { credential }) {
        if (Redacted.value(credential) === "") return yield* keyMissing
        // A long body is read for the holder of a key only.
        if (present === undefined || mayBeLong(yield* HttpServerRequest.HttpServerRequest)) {
          const id = yield* resolve(credential)
          if (limit !== undefined) yield* limit(id)
          return yield* Effect.provideService(answered, CurrentOrganization, CurrentOrganization.known(id))
        }
        const organization = present(credential)
        if (limit !== undefined) yield* limit(yield* organization.id)
        // Whatever the answer, only the holder of a key gets it.
        return yield* Effect.provideService(answered, CurrentOrganization, organization).pipe(
          Effect.tapError(() => organization.id),
          Effect.tap(() => organization.id)
        )
      })
    })
  })
)
