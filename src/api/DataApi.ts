/** The contract of the data API: the typed client and the OpenAPI document come only from this folder. */
import { Array, Record } from "effect"
import { HttpApi } from "effect/http-api"
import { Authorization, JsonBody } from "./Authorization.ts"
import { deletionTasks } from "./DeletionTasks.ts"
import * as Errors from "./Errors.ts"
import { faults } from "./Faults.ts"
import { bodyStatuses, documentation, errorStatus, type Status } from "./openapi/Document.ts"
import { pspGroups } from "./Psp.ts"
import { allChanges, resources } from "./records/index.ts"
import { defaultLimit, longestWait, maximumChanges, maximumLimit } from "./records/Requests.ts"

const description = `
Read-only access to the records of a veterinary wellness-plan business. Every call is a POST with a JSON body.

- **Authentication**: \`Authorization: Bearer <API_KEY>\`. The key resolves to one organization, and every response holds records of that organization only.
- **Paging** of searches: \`limit\` (1 to ${maximumLimit}, default ${defaultLimit}) and \`offset\`. Results are ordered by the time of the last change, then by \`id\`, ascending. Records can move between pages while you read: to keep a copy, see below.
- **Filters** are exact and case-sensitive, and combine with AND. A null filter is ignored. An unknown field gets 422.
- **Times** in requests are ISO 8601, UTC without an offset; \`..._since\` is inclusive, \`..._before\` exclusive. Times in responses are UTC with milliseconds.
- **Fields** are always present in a record; a missing value is null.
- **Requests** carry all their fields in the body. A query string gets 422; a \`Content-Encoding\` gets 415.
- **Errors** have a \`detail\`: a string, or for 422 a list of up to 100 faults. An error body is at most 64 KiB. \`x-error\` is the error code, such as \`record_not_found\`: match on it and the status, since messages may change. A 404 or 410 without it comes from a proxy or another server. 503 means that a store is down or busy, or that the service is busy: retry after \`Retry-After\` seconds.
- **Connections**: malformed HTTP gets 400, headers over 16 KiB get 431, and a request that does not arrive in time gets 408, each with a \`detail\`; the server then closes the connection.
- **Compression**: responses are zstd or gzip if \`Accept-Encoding\` names it.
- **Browsers**: pages of other origins cannot call the API. An API key in a web page is public and exposes all your records: call the API from your server instead.
- **Invoice deletions** are sent to the intake (\`/api/v1/docs\`). Read their outcome with \`/invoice-deletions/search\` and \`/get\`.
- Every response carries \`x-request-id\`: the request's own if it is 1 to 128 visible ASCII characters, otherwise a new one.

\`x-provisional: true\` marks endpoints and statuses whose shape may still change.

## Keep a copy in step

### By changes

To keep a copy, use \`POST /changes\`: one feed of all resources, in transaction order. It never skips a change, whatever timestamps and transactions writers use.

1. **Request** changes with \`limit\` ${maximumChanges} and your saved cursor. Omit the cursor the first time: you get every record. \`resources\` limits the feed to the resources you name.
2. **Apply** the items in the \`body\` of a 200 in order: upsert each \`record\` by its \`id\`, delete each \`removed\` id. Save the copy and \`cursor\` in one transaction. After a crash or a restart, resume from the saved cursor.
3. **Repeat** at once while \`has_more\` is true. When it is false, the copy is up to date: poll again later, or long-poll with \`wait\` (up to ${longestWait} seconds): the response arrives within a second of a change.
4. **Retry** with the same cursor: after a 503 or 429, wait \`Retry-After\` seconds; after a timeout or a broken connection, a few seconds.
5. **Restart a resource** after an item with \`reset\`: its table was emptied, or you request it for the first time. Its records follow in this response and the next ones. Once \`has_more\` is false, delete the records that did not arrive.
6. **Start again** after 410: discard the cursor and go to step 1 with an empty copy, or treat every resource as \`reset\`. Either the database was restored or upgraded, or it lost its last commits in a failover, or the cursor was unused for 31 days.

A 400 means that the cursor is damaged, or belongs to another organization.

Guarantees:

- Whenever \`is_consistent\` is true, the copy equals a past state of the database: each invoice with all its lines, each payment with its charge. Apply all responses up to that one in one transaction, and queries of the copy see only such states.
- \`is_consistent\` is true whenever \`has_more\` is false, and an open transaction does not delay other changes.
- A record may arrive more than once, but never an older state after a newer one. A transaction that fits into one response is never split.
- Soft-deleted records arrive as a \`record\`. Rows deleted since your first request arrive as \`removed\`, including rows that the copy never had.
- \`schema\` changes when a field or a resource is added. The records with the new field follow as changes.
- Writes with a table's triggers disabled are not covered.

### By search alone

If you cannot use \`/changes\`: search each resource by \`updated_at_since\` or \`modified_since\`, with \`include_deleted: true\` where the search has it, and upsert what arrives by \`id\`. Begin each round some minutes before the last one began: a time is stamped before its transaction commits, so records appear behind your position. Never rely on \`offset\` while records change. Deleted rows go unnoticed.
`.trim()

const statuses: Readonly<Record<string, Status>> = {
  400: errorStatus(
    "An invalid value: a number out of range, a missing or blank id, a damaged cursor, or an organization other than the key's.",
    new Errors.OrgMismatch()
  ),
  401: errorStatus("The API key is missing or invalid.", new Errors.Unauthorized()),
  404: errorStatus(
    "No such record in this organization. Records of other organizations get the same response.",
    new Errors.RecordNotFound()
  ),
  410: errorStatus(
    "The order of changes restarted: start again without a cursor, with an empty copy.",
    new Errors.CursorExpired()
  ),
  ...bodyStatuses,
  422: {
    description:
      "The request does not match the schema of the endpoint. Lists up to 100 faults of the body; a query string is rejected before the body is read.",
    example: { detail: [{ loc: ["body", "organization"], ...faults.string }] }
  },
  429: errorStatus(
    "The organization exceeds its rate limit. Retry after `Retry-After` seconds.",
    new Errors.TooManyRequests()
  ),
  501: errorStatus(
    "The records are distributed over several servers, so their changes have no common order. Do not retry: search by `updated_at_since` or `modified_since` instead.",
    new Errors.ChangesNotServed()
  ),
  503: errorStatus(
    "A store is unreachable, busy or refuses access, or the service is busy: see `x-error`. Never reported as 401. Retry after `Retry-After` seconds.",
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
