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

const idOf = ({ id }: { readonly id: string }) =>
  id.trim() === "" ? Effect.fail(new IdRequired()) : Effect.succeed(id)

interface EndpointRequest<R extends Resource, Verb extends string, Payload> {
  // Ties the handler to the endpoints of its own resource.
  readonly endpoint: { readonly path: `/${R["name"]}/${Verb}` }
  readonly payload: Payload
}

/** The handlers of a resource. Without generators: they run for every read. */
export const handlersOf = <R extends Resource>(repository: Repository<R>) => ({
  search: ({
    payload
  }: EndpointRequest<R, "search", FilterValues<R> & Schema.Struct.Type<typeof Requests.searchFields>>) =>
    Effect.flatMap(CurrentOrganization.check(payload), () =>
      Effect.flatMap(Requests.pageOf(payload), (page) => Effect.map(repository.search(payload, page), json))
    ),
  get: ({ payload }: EndpointRequest<R, "get", Schema.Struct.Type<ReturnType<typeof Requests.getFields>>>) =>
    Effect.flatMap(CurrentOrganization.check(payload), () =>
      Effect.flatMap(idOf(payload), (id) => Effect.map(repository.get(id), json))
    )
})

const organizationLayer = HttpApiBuilder.group(DataApi, organization.name, (handlers) =>
  Effect.map(Repositories, (repositories) => {
    const repository = repositories.of(organization)
    return handlers.handleAll({
      get: Effect.fnUntraced(function* ({ payload }) {
        yield* CurrentOrganization.check(payload)
        return json(yield* repository.get(yield* CurrentOrganization.id))
      })
    })
  })
)

const changesLayer = HttpApiBuilder.group(DataApi, allChanges.identifier, (handlers) =>
  Effect.map(Repositories, ({ changes }) => {
    const handle = changesHandler(changes)
    return handlers.handleAll({ changes: ({ payload }) => handle(payload) })
  })
)

export const layer = Layer.mergeAll(
  organizationLayer,
  changesLayer,
  ...searchable.map((resource) =>
    HttpApiBuilder.group(DataApi, resource.name, (handlers) =>
      Effect.map(Repositories, (repositories) => handlers.handleAll(handlersOf(repositories.of(resource))))
    )
  )
)
