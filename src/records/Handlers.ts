/** Serves the endpoints of the records: check the request, read, send the JSON as it is. */
import { Array, Duration, Effect, Layer, type Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { CurrentOrganization } from "../api/Authorization.ts"
import { DataApi } from "../api/DataApi.ts"
import { type DetailError, IdRequired } from "../api/Errors.ts"
import { allChanges, searchable } from "../api/records/index.ts"
import { organization } from "../api/records/Organizations.ts"
import type { Resource } from "../api/records/Resource.ts"
import * as Requests from "../api/records/Requests.ts"
import { decoderOf } from "../http/JsonBodyServer.ts"
import { note } from "../observability/RequestFacts.ts"
import type { Changes, ChangesRequest, Feed } from "./Feed.ts"
import type { Json } from "./Pages.ts"
import { type Criteria, Repositories, type Repository } from "./Repository.ts"

const json = (bytes: Json) => HttpServerResponse.uint8Array(bytes, { contentType: "application/json" })

type ChangesPayload = Schema.Struct.Type<typeof Requests.changesFields> & Pick<ChangesRequest, "resources">

const changesRequest = ({ cursor, limit, resources, wait }: ChangesPayload) =>
  Effect.flatMap(Requests.between("limit", limit ?? Requests.maximumChanges, 1, Requests.maximumChanges), (most) =>
    Effect.map(Requests.between("wait", wait ?? 0, 0, Requests.longestWait), (seconds) => ({
      cursor: cursor ?? undefined,
      limit: most,
      resources,
      wait: Duration.seconds(seconds)
    }))
  )

const readChanges = (
  payload: ChangesPayload,
  changes: Feed,
  headersOf: (page: Changes) => Readonly<Record<string, string>>
) =>
  Effect.flatMap(CurrentOrganization.check(payload), () =>
    Effect.flatMap(changesRequest(payload), (request) =>
      Effect.flatMap(changes(request), (page) =>
        Effect.as(
          note({ rows: page.rows }),
          HttpServerResponse.setHeaders(json(page.json), {
            [Requests.lagHeader]: String(page.lag),
            ...(page.hasMore && page.cursor.length <= Requests.longestNext && { [Requests.nextHeader]: page.cursor }),
            ...headersOf(page)
          })
        )
      )
    )
  )

const idOf = ({ id }: { readonly id: string }) =>
  id.trim() === "" ? Effect.fail(new IdRequired()) : Effect.succeed(id)

interface Request<R extends Resource, Verb extends string, Payload> {
  // Ties the handler to the endpoints of its own resource.
  readonly endpoint: { readonly path: `/${R["name"]}/${Verb}` }
  readonly payload: Payload
}

/** The handlers of a resource. Without generators: they run for every read. */
export const handlersOf = <R extends Resource>(repository: Repository<R>) => ({
  search: ({ payload }: Request<R, "search", Criteria<R> & Schema.Struct.Type<typeof Requests.searchFields>>) =>
    Effect.flatMap(CurrentOrganization.check(payload), () =>
      Effect.flatMap(Requests.pageOf(payload), (page) => Effect.map(repository.search(payload, page), json))
    ),
  get: ({ payload }: Request<R, "get", Schema.Struct.Type<ReturnType<typeof Requests.getFields>>>) =>
    Effect.flatMap(CurrentOrganization.check(payload), () =>
      Effect.flatMap(idOf(payload), (id) => Effect.map(repository.get(id), json))
    ),
  changes: ({ payload }: Request<R, "changes", ChangesPayload>) =>
    readChanges(payload, repository.changes, ({ isComplete }) => ({ [Requests.completeHeader]: String(isComplete) }))
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

const allChangesOf = (changes: Feed) => (payload: (typeof allChanges.endpoints.changes)["~Payload"]["Type"]) => {
  const resources = payload.resources ? Array.dedupe(payload.resources) : undefined
  return readChanges({ ...payload, resources }, changes, () => ({}))
}

const changesLayer = HttpApiBuilder.group(DataApi, allChanges.identifier, (handlers) =>
  Effect.map(Repositories, ({ changes }) => {
    const handle = allChangesOf(changes)
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

/** A read whose handler needs nothing of a request but its payload and its organization: for the lane. */
export interface Read {
  /** Relative to the API. */
  readonly path: string
  /** Undefined for a payload that is invalid, or that waits for changes. */
  readonly handle: (payload: unknown) => Handled | undefined
}

interface Handled {
  readonly response: Effect.Effect<HttpServerResponse.HttpServerResponse, DetailError, CurrentOrganization>
  /** True if the handler needs the organization before it reads records. */
  readonly needsOrganization: boolean
}

const isWaiting = ({ wait }: { readonly wait?: number | null }) => wait !== undefined && wait !== null && wait !== 0

const readOf = <
  P extends { readonly organization?: string | null; readonly wait?: number | null },
  E extends DetailError
>(
  endpoint: Parameters<typeof decoderOf<P>>[0] & { readonly path: string },
  handler: (payload: P) => Effect.Effect<HttpServerResponse.HttpServerResponse, E, CurrentOrganization>
): Read => {
  const decode = decoderOf(endpoint)
  return {
    path: endpoint.path,
    handle: (given) => {
      const payload = decode(given)
      if (payload === undefined || isWaiting(payload)) return undefined
      return {
        response: Effect.suspend(() => handler(payload)),
        needsOrganization: payload.organization !== undefined && payload.organization !== null
      }
    }
  }
}

/** The reads of all resources. */
export const reads = Effect.map(Repositories, (repositories): ReadonlyArray<Read> => [
  readOf(allChanges.endpoints.changes, allChangesOf(repositories.changes)),
  ...searchable.flatMap((resource) => {
    const { changes, get, search } = handlersOf(repositories.of(resource))
    const { endpoints } = resource.group
    return [
      readOf(endpoints.search, (payload) => search({ endpoint: endpoints.search, payload })),
      readOf(endpoints.get, (payload) => get({ endpoint: endpoints.get, payload })),
      readOf(endpoints.changes, (payload) => changes({ endpoint: endpoints.changes, payload }))
    ]
  })
])
