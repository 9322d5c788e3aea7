/** Handles requests for changes. */
import { Array, Duration, Effect, type Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { CurrentOrganization } from "../api/Authorization.ts"
import type { allChanges } from "../api/records/index.ts"
import * as Requests from "../api/records/Requests.ts"
import { note } from "../observability/RequestFacts.ts"
import type { Changes, ChangesRequest, Feed } from "./Feed.ts"

export type ChangesPayload = Schema.Struct.Type<typeof Requests.changesFields> & Pick<ChangesRequest, "resources">

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
          HttpServerResponse.uint8Array(page.json, {
            contentType: "application/json",
            headers: {
              [Requests.lagHeader]: String(page.lag),
              ...(page.hasMore && page.cursor.length <= Requests.longestNext && { [Requests.nextHeader]: page.cursor }),
              ...headersOf(page)
            }
          })
        )
      )
    )
  )

/** The handler of the changes of one resource. */
export const resourceChanges = (feed: Feed) => (payload: ChangesPayload) =>
  readChanges(payload, feed, ({ isComplete }) => ({ [Requests.completeHeader]: String(isComplete) }))

/** The handler of the changes of all resources. */
export const combinedChanges = (feed: Feed) => (payload: (typeof allChanges.endpoints.changes)["~Payload"]["Type"]) => {
  const resources = payload.resources ? Array.dedupe(payload.resources) : undefined
  return readChanges({ ...payload, resources }, feed, () => ({}))
}
