/** The authorization of the data API, over `OrgResolver`. */
import { Effect, Layer, Redacted } from "effect"
import { Unauthorized } from "../Errors.ts"
import { Authorization } from "./Authorization.ts"
import { CurrentOrganization } from "./CurrentOrganization.ts"
import { OrgResolver } from "./OrgResolver.ts"

export const layer = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const resolver = yield* OrgResolver
    return Authorization.of({
      bearer: Effect.fnUntraced(function* (answered, { credential }) {
        if (Redacted.value(credential) === "") return yield* Unauthorized.error
        const id = yield* resolver.resolve(credential)
        return yield* Effect.provideService(answered, CurrentOrganization, { id })
      })
    })
  })
)
