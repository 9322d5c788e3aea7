/** The reads that the lane answers, by the handlers of their endpoints. */
import { Effect } from "effect"
import type { HttpServerResponse } from "effect/http"
import type { CurrentOrganization } from "../api/Authorization.ts"
import type { DetailError } from "../api/Errors.ts"
import { allChanges, searchable } from "../api/records/index.ts"
import { changesHandler } from "../changes/Handlers.ts"
import type * as Lane from "../http/Lane.ts"
import { decoderOf } from "../http/JsonBodyServer.ts"
import * as AuthorizationServer from "../keys/AuthorizationServer.ts"
import { handlersOf } from "../records/Handlers.ts"
import { Repositories } from "../records/Repository.ts"

interface Payload {
  readonly organization?: string | null
  readonly wait?: number | null
}

const isGiven = <A>(value: A | null | undefined) => value !== undefined && value !== null

/** The reads of records by path: those whose payload is valid, and that do not wait for changes. */
export const make = Effect.fnUntraced(function* (prefix: string) {
  const authorize = yield* AuthorizationServer.laneAuthorization
  const repositories = yield* Repositories

  /** @param handler needs nothing of a request but its payload and its organization */
  const readOf = <P extends Payload, E extends DetailError>(
    endpoint: Parameters<typeof decoderOf<P>>[0] & { readonly path: string },
    handler: (payload: P) => Effect.Effect<HttpServerResponse.HttpServerResponse, E, CurrentOrganization>
  ): readonly [path: string, read: Lane.Read] => {
    const decode = decoderOf(endpoint)
    return [
      `${prefix}${endpoint.path}`,
      (given, key) => {
        const payload = decode(given)
        if (payload === undefined || (isGiven(payload.wait) && payload.wait !== 0)) return undefined
        // The handler compares an organization before it reads records.
        return authorize(
          key,
          Effect.suspend(() => handler(payload)),
          isGiven(payload.organization)
        )
      }
    ]
  }

  return new Map([
    readOf(allChanges.endpoints.changes, changesHandler(repositories.changes)),
    ...searchable.flatMap((resource) => {
      const { get, search } = handlersOf(repositories.of(resource))
      const { endpoints } = resource.group
      return [
        readOf(endpoints.search, (payload) => search({ endpoint: endpoints.search, payload })),
        readOf(endpoints.get, (payload) => get({ endpoint: endpoints.get, payload }))
      ]
    })
  ])
})
