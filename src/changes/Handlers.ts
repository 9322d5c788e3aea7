/** Handles requests for changes. */
import { Array, Duration, Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { CurrentOrganization } from "../api/Authorization.ts"
import type { allChanges } from "../api/records/index.ts"
import * as Requests from "../api/records/Requests.ts"
import { note } from "../observability/RequestFacts.ts"
import type { Feed } from "./Feed.ts"

/** The handler of the changes of all resources. */
export const changesHandler = (feed: Feed) =>
  Effect.fnUntraced(function* (payload: (typeof allChanges.endpoints.changes)["~Payload"]["Type"]) {
    yield* CurrentOrganization.check(payload)
    const limit = payload.limit ?? Requests.maximumChanges
    const page = yield* feed({
      cursor: payload.cursor ?? undefined,
      limit: yield* Requests.between("limit", limit, 1, Requests.maximumChanges),
      resources: payload.resources ? Array.dedupe(payload.resources) : undefined,
      wait: Duration.seconds(yield* Requests.between("wait", payload.wait ?? 0, 0, Requests.longestWait))
    })
    yield* note({ rows: page.rows })
    return HttpServerResponse.uint8Array(page.json, { contentType: "application/json" })
  })
