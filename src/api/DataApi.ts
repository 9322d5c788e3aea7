/** The contract of the data API: the typed client and the OpenAPI document come from this folder alone. */
import { Array, Record } from "effect"
import { HttpApi } from "effect/http-api"
import { Authorization } from "./Authorization.ts"
import { deletionTasks } from "./DeletionTasks.ts"
import * as Errors from "./Errors.ts"
import { faults } from "./Faults.ts"
import { JsonBody } from "./JsonBody.ts"
import { bodyStatuses, documentation, errorStatus } from "./openapi/Document.ts"
import type { Status } from "./openapi/Endpoint.ts"
import { pspGroups } from "./Psp.ts"
import { allChanges } from "./records/Changes.ts"
import { resources } from "./records/index.ts"
import { syncDescription } from "./Sync.ts"

const description = `
Read-only access to the records of a veterinary wellness-plan business. Every call is a POST with a JSON body.

- **Authentication**: \`Authorization: Bearer <API_KEY>\`. The key resolves to one organization, and every response holds records of that organization only.
- **Paging**: \`limit\` (1 to 1000, default 100) and \`offset\`. Results are ordered by the time of the last change, then by \`id\`, ascending. Records move while you read pages: to keep a copy, see below.
- **Filters** are exact and case-sensitive, and all of them must hold. A filter that is null counts as absent. A field that the endpoint does not have gets 422.
- **Times** in requests are ISO 8601, UTC without an offset; \`..._since\` is inclusive, \`..._before\` exclusive. Times in responses are UTC with milliseconds.
- **Fields** of a record are always present, null if there is no value.
- **Requests** have all their fields in the body. A query string gets 422, a \`Content-Encoding\` 415.
- **Errors** have a \`detail\`: a text, or for 422 the list of all faults of the request, up to 100. A refusal has at most 64 KiB. Every error of an endpoint carries \`x-service: practice-data\`: a 404 or 410 without it comes from a proxy or another server. 503 means that a store is down, or that a store or the service is busy: try again after \`Retry-After\` seconds.
- **Connections**: a request that is not HTTP gets 400, headers over 16 KiB get 431, and a request that does not arrive in time gets 408, each with a \`detail\`; then the connection is closed. \`Upgrade\` is ignored, and the request is the last of its connection; with \`Transfer-Encoding\` as well, it gets 411.
- **Compression**: responses are zstd, br or gzip if \`Accept-Encoding\` allows it.
- **Browsers**: a page of another origin may call the API only if the operator allows it. Whoever opens a page can read its API key, and with the key all your records: call the API from your server instead.
- **Invoice deletions** are sent to the intake (\`/api/v1/docs\`). Read their outcome with \`/invoice-deletions/search\` and \`/get\`.
- Every response carries \`x-request-id\`: that of the request if it has 1 to 128 visible ASCII characters, otherwise a new one.

\`x-provisional: true\` marks endpoints and statuses whose shape may still change.

${syncDescription}
`.trim()

const statuses: Readonly<Record<string, Status>> = {
  400: errorStatus(
    "An invalid value: a number out of range, a missing or blank id, a cursor that is damaged or of another resource, or an organization other than the key's.",
    new Errors.OrgMismatch()
  ),
  401: errorStatus("The API key is missing or invalid.", new Errors.Unauthorized()),
  404: errorStatus(
    "The organization has no such record. The response is the same if another organization has one.",
    new Errors.RecordNotFound()
  ),
  410: errorStatus(
    "The order of changes restarted: start again without a cursor, with an empty copy.",
    new Errors.CursorExpired()
  ),
  ...bodyStatuses(1),
  422: {
    description:
      "The request does not match the schema of the endpoint. All faults of the body are listed, up to 100; a query string is refused before the body is read.",
    example: { detail: [{ loc: ["body", "organization"], ...faults.string }] }
  },
  429: errorStatus(
    "The organization exceeds its limit of requests. Try again after `Retry-After` seconds.",
    new Errors.TooManyRequests()
  ),
  501: errorStatus(
    "The records are distributed over several servers, and their changes have no common order. Do not retry: search by `updated_at_since` or `modified_since` instead.",
    new Errors.ChangesNotServed()
  ),
  503: errorStatus(
    "A store is unreachable, busy, or refuses the service, or the service is busy: `detail` names it. Never reported as 401. Try again after `Retry-After` seconds.",
    new Errors.CredentialStoreDown()
  )
}

/** The practice data API, version 3: read-only, every call a POST with a JSON body, relative to `/api/v3`. */
export class DataApi extends HttpApi.make("practice-data")
  .add(allChanges, ...Array.map(resources, ({ group }) => group), ...Record.values(pspGroups), deletionTasks)
  .middleware(JsonBody)
  .middleware(Authorization)
  .annotate(HttpApi.PayloadParseOptions, { errors: "all", onExcessProperty: "error" })
  .annotateMerge(
    documentation({
      title: "Practice data API",
      version: "3.0",
      description,
      url: "/api/v3",
      statuses,
      contract: ["200", "400", "401", "422", "503"],
      // Their schemas read a missing id as a blank one, and a clinic that is null as a missing one.
      required: (request) => (request.startsWith("Psp") ? "clinic" : request.endsWith("GetRequest") ? "id" : "")
    })
  ) {}
