/** The reads of records that the lane answers, and how it authorizes them. */
import { Effect, identity, Option, Schema } from "effect"
import type { HttpServerResponse } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { CurrentOrganization } from "../api/Authorization.ts"
import { type DetailError, errorResponse } from "../api/Errors.ts"
import { allChanges, searchable } from "../api/records/index.ts"
import { changesHandler, LongPolls } from "../changes/Feed.ts"
import { databaseFeed } from "../changes/FeedStores.ts"
import { ChangeDatabase, RecordDatabase } from "../database/Database.ts"
import { refused, RequestLimit } from "../keys/AuthorizationServer.ts"
import { keyDigest } from "../keys/OrgResolver.ts"
import { note } from "../observability/RequestFacts.ts"
import { answering } from "../records/Handlers.ts"
import * as Repository from "../records/Repository.ts"
import * as KeyedReads from "./KeyedReads.ts"

type Response = HttpServerResponse.HttpServerResponse

/** The response to a payload for the holder of an API key; undefined for one that is left to the router. */
export type Read = (payload: unknown, key: string) => Effect.Effect<Response> | undefined

/** The most valid keys that are remembered with their organizations, where requests are counted. */
const mostKnown = 10_000

/**
 * Authorizes requests, whose keys are looked up by their reads. The key is looked up before for a request that names an
 * organization, and for one that is counted unless a request before it had this key.
 */
const authorization = Effect.fnUntraced(function* (lookUp: KeyedReads.LookUp) {
  const limit = yield* RequestLimit
  const known = new Map<string, string>()

  const resolve = Effect.fnUntraced(function* (key: string, digest: string) {
    const organization = yield* lookUp(key, digest)
    yield* note({ organization })
    if (known.size >= mostKnown) known.clear()
    if (limit !== undefined) known.set(digest, organization)
    return organization
  })

  // No generator, as in KeyedReads.
  const counted = (key: string, digest: string) => {
    if (limit === undefined) return Effect.void
    const id = known.get(digest)
    return id === undefined ? Effect.flatMap(resolve(key, digest), limit) : limit(id)
  }

  const checked = Effect.fnUntraced(function* (key: string, digest: string, organization: string) {
    const id = yield* resolve(key, digest)
    yield* Effect.provideService(CurrentOrganization.check({ organization }), CurrentOrganization, { id })
  })

  /** The response to an error. An invalid key gets no other than its own, also where a request fails before its look-up. */
  const respondTo = Effect.fnUntraced(function* (failed: DetailError, key: string, digest: string) {
    const isLookedUp = ["Unauthorized", "CredentialStoreDown", "RecordNotFound"].includes(failed._tag)
    const error = isLookedUp
      ? failed
      : yield* Effect.match(resolve(key, digest), { onFailure: identity, onSuccess: () => failed })
    if (error._tag !== "Unauthorized") return errorResponse(error)
    known.delete(digest)
    return yield* refused
  })

  return <E extends DetailError>(
    key: string,
    organization: string | null,
    answer: Effect.Effect<Response, E, KeyedReads.PresentedKey>
  ): Effect.Effect<Response> => {
    const digest = keyDigest(key)
    const read = Effect.provideService(answer, KeyedReads.PresentedKey, { key, digest })
    const authorized = organization === null ? read : Effect.andThen(checked(key, digest, organization), read)
    return Effect.catch(Effect.andThen(counted(key, digest), authorized), (error) => respondTo(error, key, digest))
  }
})

/** An endpoint whose payloads have a type. */
interface Endpoint<Payload> {
  readonly path: string
  readonly payload: HttpApiEndpoint.PayloadMap
  readonly "~Payload": { readonly Type: Payload }
}

/** Decodes the payloads of an endpoint as its API does: none for an invalid one. */
const makeDecoder = <Payload>({ payload }: Endpoint<Payload>) => {
  const schema: Schema.Top = Array.from(payload.values()).flatMap(({ schemas }) => schemas)[0] ?? Schema.Unknown
  const codec = Schema.toCodecJson(Schema.make<Schema.Codec<Payload>>(schema.ast))
  return Schema.decodeUnknownOption(codec, { onExcessProperty: "error" })
}

interface Fields {
  readonly organization?: string | null
  readonly wait?: number | null
}

/** The reads by their paths: those whose payload is valid, and that do not wait for changes. */
export const make = Effect.gen(function* () {
  const [records, primary] = [yield* RecordDatabase, yield* ChangeDatabase]
  const { read: reader, resolve } = yield* KeyedReads.make(records)
  const changesReader = primary === records ? reader : (yield* KeyedReads.make(primary)).read
  const authorize = yield* authorization(resolve)

  /** @param answer needs nothing of a request but its payload and its key */
  const read = <P extends Fields, E extends DetailError>(
    endpoint: Endpoint<P>,
    answer: (payload: P) => Effect.Effect<Response, E, KeyedReads.PresentedKey>
  ): readonly [path: string, read: Read] => {
    const decode = makeDecoder(endpoint)
    return [
      `/api/v3${endpoint.path}`,
      (given, key) => {
        const payload = Option.getOrUndefined(decode(given))
        if (payload === undefined || (payload.wait ?? 0) !== 0) return undefined
        return authorize(
          key,
          payload.organization ?? null,
          Effect.suspend(() => answer(payload))
        )
      }
    ]
  }

  return new Map([
    read(
      allChanges.endpoints.changes,
      changesHandler(databaseFeed(primary, changesReader, searchable, yield* LongPolls))
    ),
    ...searchable.flatMap((resource) => {
      const { get, search } = answering(Repository.make(reader, resource))
      const { endpoints } = resource.group
      return [read(endpoints.search, search), read(endpoints.get, get)]
    })
  ])
})
