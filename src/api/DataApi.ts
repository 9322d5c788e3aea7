/** The contract of the data API: the typed client and the OpenAPI document come from this folder alone. */
import { Array, Record } from "effect"
import { HttpApi } from "effect/http-api"
import { Authorization, JsonBody } from "./Authorization.ts"
import { deletionTasks } from "./DeletionTasks.ts"
import * as Errors from "./Errors.ts"
import { faults } from "./Faults.ts"
import { bodyStatuses, documentation, errorStatus, type Status } from "./openapi/Document.ts"
import { pspGroups } from "./Psp.ts"
import { allChanges, resources } from "./records/index.ts"
import {
  completeHeader,
  defaultLimit,
  lagHeader,
  longestWait,
  maximumChanges,
  maximumLimit
} from "./records/Requests.ts"

const description = `
Read-only access to the records of a veterinary wellness-plan business. Every call is a POST with a JSON body.

- **Authentication**: \`Authorization: Bearer <API_KEY>\`. The key resolves to one organization, and every response holds records of that organization only.
- **Paging** of searches: \`limit\` (1 to ${maximumLimit}, default ${defaultLimit}) and \`offset\`. Results are ordered by the time of the last change, then by \`id\`, ascending. Records move while you read pages: to keep a copy, see below.
- **Filters** are exact and case-sensitive, and all of them must hold. A filter that is null counts as absent. A field that the endpoint does not have gets 422.
- **Times** in requests are ISO 8601, UTC without an offset; \`..._since\` is inclusive, \`..._before\` exclusive. Times in responses are UTC with milliseconds.
- **Fields** of a record are always present, null if there is no value.
- **Requests** have all their fields in the body. A query string gets 422, a \`Content-Encoding\` 415.
- **Errors** have a \`detail\`: a text, or for 422 the list of all faults of the request, up to 100. A refusal has at most 64 KiB. \`x-error\` names the error, such as \`record_not_found\`: decide on it and on the status, as texts may change. Every error of an endpoint but a 500 carries \`x-service: practice-data\`: a 404 or 410 without it comes from a proxy or another server. 503 means that a store is down, or that a store or the service is busy: try again after \`Retry-After\` seconds.
- **Connections**: a request that is not HTTP gets 400, headers over 16 KiB get 431, and a request that does not arrive in time gets 408, each with a \`detail\`; then the connection is closed. \`Upgrade\` is ignored, and the request is the last of its connection; with \`Transfer-Encoding\` as well, it gets 411.
- **Compression**: responses are zstd, br or gzip if \`Accept-Encoding\` allows it.
- **Browsers**: a page of another origin may call the API only if the operator allows it. An API key in a page is public, and opens all your records: call the API from your server instead.
- **Invoice deletions** are sent to the intake (\`/api/v1/docs\`). Read their outcome with \`/invoice-deletions/search\` and \`/get\`.
- Every response carries \`x-request-id\`: that of the request if it has 1 to 128 visible ASCII characters, otherwise a new one.

\`x-provisional: true\` marks endpoints and statuses whose shape may still change.

## Keep a copy in step

### By changes

\`POST /changes\` is the way to keep a copy: one feed of all resources, in the order of their transactions. No change is skipped, whatever writers do with times and transactions.

1. **Request** changes with \`limit\` ${maximumChanges} and the cursor that you saved; the first time without one: you get every record. \`resources\` limits the feed to some.
2. **Apply** a 200: take the items of \`body\` in their order. Insert or replace a \`record\` by its \`id\`, delete a \`removed\` id. Save the copy and \`cursor\` together, in one transaction. After a crash or a restart, resume from what was saved.
3. **Repeat** at once while \`has_more\` is true. When it is false, the copy is up to date: poll again later, or at once with \`wait\` (up to ${longestWait} seconds), and the response arrives as soon as there is a change.
4. **Try again**, with the same cursor: after 503 or 429 when \`Retry-After\` says, after a timeout or a broken connection a few seconds later.
5. **Restart a resource** after an item with \`reset\`: its table was emptied, or you request it for the first time. Its records follow in this response and the next ones. When \`has_more\` is false, delete those that did not.
6. **Start again** after 410: forget the cursor and go to step 1, with an empty copy, or as if each resource had a \`reset\`. The database was restored or upgraded, or lost its last commits in a failover, or the cursor was not used for 31 days.

A 400 means that the cursor is damaged, or belongs to another feed or organization.

Guarantees:

- Whenever \`is_consistent\` is true, the copy equals a state that the database had: each invoice with all its lines, each payment with its charge. Apply the responses up to that one in one transaction, and whoever queries the copy sees nothing else.
- On a primary, \`is_consistent\` is true whenever \`has_more\` is false, and no open transaction delays the changes of others. A service that reads from a replica shows changes that its replica has, and waits for older transactions: \`${lagHeader}\` is that delay in seconds.
- A record may arrive again, but never an older state of it after a newer one. A transaction that fits into a response is not cut apart.
- Records that are marked as deleted have an item with their \`record\`. Rows that were deleted since your first request have one with \`removed\`, also those that the copy never had.
- \`schema\` changes when a field or a resource is added. The records with the new field follow as changes.
- Writers that disable the triggers of a table are not covered.

\`POST /X/changes\` is the feed of one resource: records in \`body\`, ids in \`removed\`; step 5 is a 410 there. Once the header \`${completeHeader}\` is \`true\`, you have every record that existed when you began without a cursor, except those changed since, which arrive as changes.

### By search alone

If you cannot use changes, allow for three things: a time is stamped before its transaction commits, so that records appear behind a reader; a record that is changed moves to the end of the order, so that those after it move up and an \`offset\` skips one; and times are shown in milliseconds, of which one may hold more records than a page.

The time of a resource is the field that its search is ordered by, and the filter is \`updated_at_since\` or \`modified_since\`.

A round reads the pages one after the other, never at the same time:

1. **Request** pages with \`limit\` ${maximumLimit}, with the filter set to the start of the round (the first round has none), and with \`include_deleted: true\` where the search has it.
2. **Apply** each page at once: insert or replace its records by their \`id\`. The last read wins, even if its time is earlier: a transaction that began earlier may commit later.
3. **Continue** with pages that overlap by one record. Where the time T of the last record is later than the filter, or there is no filter yet, set the filter to T, and \`offset\` to the number of this page's records that have the time T, less one. Otherwise add the number of records of the page, less one, to \`offset\`.
4. **Step back** where the first record of a page with an \`offset\` is not one that this round has read with the time of the filter, or there is none: records have moved. Apply the page, but do not continue from it: repeat the request with \`offset\` ${maximumLimit / 2} lower, at least 0, until it fits.
5. **End** the round at a page that fits and has less than ${maximumLimit} records. The next round starts some minutes before the last time seen or before the \`Date\` of this round's first response, whichever is earlier. Save that start. An interrupted round is repeated.

Clinics have no filter on a time, so every round reads all of them: leave out the filter, and take all of them to have one time.

Guarantee: when a round ends, the copy has the last committed state of every record that was not changed while the round was read. That holds if the minutes are more than the longest writing transaction takes, added to how far a replica lags and clocks differ, and if writers stamp the time of their transaction. Deleted rows are not noticed. A round ends if pages are read faster than records are changed.
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
    "A store is unreachable, busy, or refuses the service, or the service is busy: `x-error` names it. Never reported as 401. Try again after `Retry-After` seconds.",
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
