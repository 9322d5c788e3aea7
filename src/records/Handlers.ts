/** Serves the endpoints of the records: check the request, read, send the JSON as it is. */
import { Effect, Layer, type Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentOrganization } from "../api/Authorization.ts"
import { DataApi } from "../api/DataApi.ts"
import { IdRequired } from "../api/Errors.ts"
import { allChanges, searchable } from "../api/records/index.ts"
import { organization } from "../api/records/Organizations.ts"
import type { Resource } from "../api/records/Resource.ts"
import * as Requests from "../api/records/Requests.ts"
import { changesHandler } from "../changes/Feed.ts"
import type { Json } from "../database/Columns.ts"
import { type FilterValues, Repositories, type Repository } from "./Repository.ts"

const json = (bytes: Json) => HttpServerResponse.uint8Array(bytes, { contentType: "application/json" })

interface EndpointRequest<R extends Resource, Verb extends string, Payload> {
  // Ties the handler to the endpoints of its own resource.
  readonly endpoint: { readonly path: `/${R["name"]}/${Verb}` }
  readonly payload: Payload
}

type SearchPayload<R extends Resource> = FilterValues<R> & Schema.Struct.Type<typeof Requests.searchFields>

type GetPayload = Schema.Struct.Type<ReturnType<typeof Requests.getFields>>

/** Answers the payloads of a resource's endpoints, whose organization was checked. */
export const answering = <R extends Resource, E, C>(repository: Repository<R, E, C>) => ({
  search: Effect.fnUntraced(function* (payload: SearchPayload<R>) {
    return json(yield* repository.search(payload, yield* Requests.toPage(payload)))
  }),
  get: Effect.fnUntraced(function* ({ id }: GetPayload) {
    return id.trim() === "" ? yield* new IdRequired() : json(yield* repository.get(id))
  })
})

/** The handlers of a resource. */
export const makeHandlers = <R extends Resource>(repository: Repository<R>) => {
  const answer = answering(repository)
  return {
    search: Effect.fnUntraced(function* ({ payload }: EndpointRequest<R, "search", SearchPayload<R>>) {
      yield* CurrentOrganization.check(payload)
      return yield* answer.search(payload)
    }),
    get: Effect.fnUntraced(function* ({ payload }: EndpointRequest<R, "get", GetPayload>) {
      yield* CurrentOrganization.check(payload)
      return yield* answer.get(payload)
    })
  }
}

const organizationLayer = HttpApiBuilder.group(
  DataApi,
  organization.name,
  Effect.fnUntraced(function* (handlers) {
    const repository = (yield* Repositories).of(organization)
    return handlers.handleAll({
      get: Effect.fnUntraced(function* ({ payload }) {
        yield* CurrentOrganization.check(payload)
        return json(yield* repository.get(yield* CurrentOrganization.id))
      })
    })
  })
)

const changesLayer = HttpApiBuilder.group(
  DataApi,
  allChanges.identifier,
  Effect.fnUntraced(function* (handlers) {
    const answer = changesHandler((yield* Repositories).changes)
    return handlers.handleAll({
      changes: Effect.fnUntraced(function* ({ payload }) {
        yield* CurrentOrganization.check(payload)
        return yield* answer(payload)
      })
    })
  })
)

export const layer = Layer.mergeAll(
  organizationLayer,
  changesLayer,
  ...searchable.map((resource) =>
    HttpApiBuilder.group(DataApi, resource.name, (handlers) =>
      Effect.map(Repositories, (repositories) => handlers.handleAll(makeHandlers(repositories.of(resource))))
    )
  )
)
