/** The reads of records that the lane answers, and how it authorizes them. */
import { Effect, Option, Redacted, Schema } from "effect"
import type { HttpServerResponse } from "effect/http"
import type { HttpApiEndpoint } from "effect/http-api"
import { type DetailError, errorResponse } from "../api/Errors.ts"
import { allChanges, searchable } from "../api/records/index.ts"
import { changesHandler, LongPolls } from "../changes/Feed.ts"
import { databaseFeed } from "../changes/FeedStores.ts"
import { ChangeDatabase, RecordDatabase } from "../database/Database.ts"
import type { Query, Reader } from "../database/OrganizationReads.ts"
import { refused, RequestLimit } from "../keys/AuthorizationServer.ts"
import { keyDigest, OrgResolver } from "../keys/OrgResolver.ts"
import { note } from "../observability/RequestFacts.ts"
import { answering } from "../records/Handlers.ts"
import * as Repository from "../records/Repository.ts"
import * as KeyedReads from "./KeyedReads.ts"

type Response = HttpServerResponse.HttpServerResponse

/** The response to a payload for the holder of an API key; undefined for one that is left to the router. */
export type Read = (payload: unknown, key: string) => Effect.Effect<Response> | undefined

/** The errors of a look-up, and of a read that looked the key up. */
const lookedUp = ["Unauthorized", "CredentialStoreDown", "OrgMismatch", "RecordNotFound"]

/** The most keys whose organizations are remembered, to count requests. */
const mostKnown = 10_000

/** Reads the organization of a key. */
const ownerQuery: Query<{ readonly id: string }> = {
  text: "select $1::text as id",
  values: [],
  columns: ["id"],
  limit: 1,
  isPlannedOnce: true
}

/**
 * Authorizes requests, whose keys are looked up by their reads. To be counted, a request takes the organization that its key
 * had before; the first one reads it.
 */
const authorization = Effect.fnUntraced(function* (reader: Reader<DetailError, KeyedReads.PresentedKey>) {
  const { resolve } = yield* OrgResolver
  const limit = yield* RequestLimit
  const known = new Map<string, string>()

  const readOwner = Effect.fnUntraced(function* (digest: string) {
    const [{ id } = { id: "" }] = yield* reader(ownerQuery)
    if (known.size === mostKnown) known.clear()
    known.set(digest, id)
    return id
  })

  // No generator, as in KeyedReads.
  return <E extends DetailError>(
    key: string,
    named: string | null,
    answer: Effect.Effect<Response, E, KeyedReads.PresentedKey>
  ): Effect.Effect<Response> => {
    const digest = keyDigest(key)
    const resolved = Effect.suspend(() => resolve(Redacted.make(key)))
    const lookUp = Effect.tap(resolved, (id) => KeyedReads.admit(id, named))
    const before = known.get(digest)
    const owner = before === undefined ? readOwner(digest) : Effect.as(note({ organization: before }), before)
    const counted = limit === undefined ? answer : Effect.andThen(Effect.flatMap(owner, limit), answer)
    const read = Effect.provideService(counted, KeyedReads.PresentedKey, { digest, named, lookUp })
    // An invalid key gets no other error than its own, also where a request fails before its look-up.
    const response = Effect.catch(read, (failed) =>
      Effect.andThen(lookedUp.includes(failed._tag) ? Effect.void : lookUp, Effect.fail(failed))
    )
    return Effect.catch(response, (error) => {
      if (error._tag !== "Unauthorized") return Effect.succeed(errorResponse(error))
      known.delete(digest)
      return refused
    })
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
  const reader = yield* KeyedReads.make(records)
  const changesReader = primary === records ? reader : yield* KeyedReads.make(primary)
  const authorize = yield* authorization(reader)

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
        return authorize(key, payload.organization ?? null, answer(payload))
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
