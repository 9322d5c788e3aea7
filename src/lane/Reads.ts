/** The reads of records that the lane answers, and how it authorizes them. */
import { Effect, Option, Schema } from "effect"
import type { HttpServerResponse } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import type { CurrentOrganization } from "../api/Authorization.ts"
import { type DetailError, errorResponse } from "../api/Errors.ts"
import { allChanges, searchable } from "../api/records/index.ts"
import { changesHandler } from "../changes/Feed.ts"
import { refused, RequestLimit } from "../keys/AuthorizationServer.ts"
import { OrganizationOfKey, resolveByRead } from "../keys/OrganizationReads.ts"
import { OrgResolver, visiblePrefix } from "../keys/OrgResolver.ts"
import { note } from "../observability/RequestFacts.ts"
import * as RecordHandlers from "../records/Handlers.ts"
import { Repositories } from "../records/Repository.ts"

type Answer = Effect.Effect<HttpServerResponse.HttpServerResponse>

/** The response to a payload for the holder of an API key; undefined for one that is left to the router. */
export type Read = (payload: unknown, key: string) => Answer | undefined

/** The most valid keys that are remembered with their organizations. */
const mostKnown = 10_000

/**
 * Authorizes requests whose keys are looked up by their first read, where that can be. A key is looked up before where its
 * request has to be counted, and the organization is not known from one before.
 */
const authorization = Effect.gen(function* () {
  const limit = yield* RequestLimit
  const resolver = yield* OrgResolver
  const known = new Map<string, string>()

  const count = ({ digest, resolve }: OrganizationOfKey, counted: NonNullable<typeof limit>) => {
    const id = known.get(digest)
    // One whose key was revoked since is no longer its organization.
    if (id !== undefined) return Effect.catch(counted(id), (error) => Effect.andThen(resolve, Effect.fail(error)))
    return Effect.flatMap(resolve, (resolved) => {
      if (known.size >= mostKnown) known.clear()
      known.set(digest, resolved)
      return counted(resolved)
    })
  }

  /** @param needsId as in `resolveByRead` */
  return <E extends DetailError>(
    key: string,
    handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, CurrentOrganization>,
    needsId: boolean
  ): Answer => {
    const organization = new OrganizationOfKey(key, resolver)
    const response = resolveByRead(organization, handler, needsId)
    return Effect.andThen(
      note({ keyPrefix: visiblePrefix(key) }),
      Effect.catch(limit === undefined ? response : Effect.andThen(count(organization, limit), response), (error) => {
        if (error._tag !== "Unauthorized") return Effect.succeed(errorResponse(error))
        known.delete(organization.digest)
        return refused
      })
    )
  }
})

/** An endpoint whose payloads have a type. */
interface Endpoint<Payload> {
  readonly path: string
  readonly payload: HttpApiEndpoint.PayloadMap
  readonly "~Payload": { readonly Type: Payload }
}

/** Decodes the payloads of an endpoint as its API does. An invalid one is none. */
const makeDecoder = <Payload>({ payload }: Endpoint<Payload>) => {
  const schema: Schema.Top = Array.from(payload.values()).flatMap(({ schemas }) => schemas)[0] ?? Schema.Unknown
  const codec = Schema.toCodecJson(Schema.make<Schema.Codec<Payload>>(schema.ast))
  return Schema.decodeUnknownOption(codec, { onExcessProperty: "error" })
}

interface Fields {
  readonly organization?: string | null
  readonly wait?: number | null
}

const isGiven = <A>(value: A | null | undefined) => value !== undefined && value !== null

/** The reads by their paths: those whose payload is valid, and that do not wait for changes. */
export const make = Effect.gen(function* () {
  const authorize = yield* authorization
  const repositories = yield* Repositories

  /** @param handler needs nothing of a request but its payload and its organization */
  const read = <P extends Fields, E extends DetailError>(
    endpoint: Endpoint<P>,
    handler: (payload: P) => Effect.Effect<HttpServerResponse.HttpServerResponse, E, CurrentOrganization>
  ): readonly [path: string, read: Read] => {
    const decode = makeDecoder(endpoint)
    return [
      `/api/v3${endpoint.path}`,
      (given, key) => {
        const payload = Option.getOrUndefined(decode(given))
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
    read(allChanges.endpoints.changes, changesHandler(repositories.changes)),
    ...searchable.flatMap((resource) => {
      const { get, search } = RecordHandlers.handlersOf(repositories.of(resource))
      const { endpoints } = resource.group
      return [
        read(endpoints.search, (payload) => search({ endpoint: endpoints.search, payload })),
        read(endpoints.get, (payload) => get({ endpoint: endpoints.get, payload }))
      ]
    })
  ])
})
