/** What the OpenAPI document says beyond what the endpoints say of themselves. */
import { type JsonSchema, Predicate, Record } from "effect"
import { OpenApi } from "effect/http-api"
import { signing } from "./Signing.ts"
import { syncDescription } from "./Sync.ts"

const description = `
Read-only access to the records of a veterinary wellness-plan business. Every call is a POST with a JSON body.

- **Authentication**: \`Authorization: Bearer <API_KEY>\`. The key resolves to exactly one organization, and every response holds records of that organization only.
- **Paging**: \`limit\` (1 to 1000, default 100) and \`offset\`. Results are ordered by the time of the last change, then by \`id\`, ascending. Records move while pages are read: to keep a copy, see below.
- **Filters** are exact and case-sensitive, and all of them must hold. A filter that is null counts as absent. A field that an endpoint does not have is refused.
- **Times** in requests are ISO 8601, UTC unless they carry an offset; \`..._since\` is inclusive, \`..._before\` exclusive. Times in responses are always UTC with milliseconds.
- **Fields** of a record are always present, null where there is no value.
- **Requests** have all their fields in the body. A query string is refused with 422, and a \`Content-Encoding\` with 415.
- **Errors** have a \`detail\`: a text, or for 422 a list of the faults of the request, all at once, up to 100. A response that refuses a request has at most 64 KiB. 503 means that a store is down, or that a store or the service is busy: try again after \`Retry-After\` seconds.
- **Connections**: what is not HTTP gets 400, headers over 16 KiB get 431, a request that does not arrive in time gets 408, with such a \`detail\`, and the connection is closed.
- **Compression**: responses come as zstd, br or gzip where \`Accept-Encoding\` asks for it.
- **Invoice deletions** are sent to the intake (\`/api/v1/docs\`). \`/invoice-deletions/search\` and \`/get\` say what became of them.
- Every response carries \`x-request-id\`: the request's own, when it sent one of 1 to 128 visible ASCII characters, otherwise a new one.

\`x-provisional: true\` marks endpoints and statuses whose shape may still change.

${syncDescription}
`.trim()

const descriptions: Readonly<Record<string, string>> = {
  200: "The response.",
  400: "A value that the endpoint cannot work with: a number out of range, a missing or blank id, a cursor that is damaged or of something else, or an organization other than the key's.",
  401: "The API key is missing or invalid.",
  404: "The organization has no such record. The response is the same whether or not another organization has one.",
  413: "The request body is larger than 1 MiB.",
  415: "The request has a Content-Encoding other than identity.",
  422: "The request does not have the shape that the endpoint takes. All faults of the body are listed, up to 100; a query string is refused before the body is looked at.",
  410: "The order of changes that the cursor belongs to has ended: start again without a cursor, with an empty copy.",
  429: "The organization sends more requests than it may. Try again after `Retry-After` seconds.",
  500: "A bug. The response says nothing of its cause.",
  503: "A store that the response depends on cannot be reached, or it or the service is busy: `detail` says which. Never reported as 401. Try again after `Retry-After` seconds."
}

/** Statuses of the data API that the contract does not list. */
const provisionalStatuses = ["404", "410", "413", "415", "429", "500"]

type Document = (status: string, response: Partial<OpenApi.OpenApiSpecResponse>) => object

const body = (name: string) => ({ "application/json": { schema: { $ref: `#/components/schemas/${name}` } } })

const documentedResponse: Document = (status, response) => ({
  ...response,
  description: descriptions[status] ?? "",
  // Several errors of one status have the same body.
  ...(status === "200" ? {} : { content: body(status === "422" ? "HTTPValidationError" : "ErrorDetail") }),
  ...(provisionalStatuses.includes(status) ? { "x-provisional": true } : {})
})

const documentedPath = ({ post, ...item }: OpenApi.OpenAPISpecPathItem, document: Document) => ({
  ...item,
  ...(post === undefined
    ? {}
    : {
        post: {
          ...post,
          responses: Object.fromEntries(
            Object.entries({ ...post.responses, 500: {} }).map(([status, response]) => [
              status,
              document(status, response)
            ])
          )
        }
      })
})

const documentedPaths = (paths: OpenApi.OpenAPISpecPaths, document: Document) =>
  Record.map(paths, (item) => documentedPath(item, document))

const isProvisional = (operation: object | undefined) => operation !== undefined && "x-provisional" in operation

const responsesOf = (paths: OpenApi.OpenAPISpecPaths, provisional: boolean) =>
  Object.values(paths)
    .filter(({ post }) => isProvisional(post) === provisional)
    .map(({ post }) => JSON.stringify(post?.responses[200]))
    .join()

/** Marks the records that only provisional endpoints return, and says what a client has to send. */
const documentedSchemas = (schemas: JsonSchema.Definitions, paths: OpenApi.OpenAPISpecPaths) => {
  const shown = responsesOf(paths, false)
  const decided = responsesOf(paths, true)
  return Record.map(schemas, (schema, name) => {
    const ref = `"#/components/schemas/${name}"`
    return {
      ...schema,
      ...(decided.includes(ref) && !shown.includes(ref) ? { "x-provisional": true } : {}),
      // A get is refused with 400, and not by its schema, where its id is missing.
      ...(name.endsWith("GetRequest") && Predicate.hasProperty(schema["properties"], "id") ? { required: ["id"] } : {})
    }
  })
}

/** Of the data API. */
export const dataApiDocumentation = OpenApi.annotations({
  title: "Practice data API",
  version: "3.0",
  description,
  license: { name: "MIT" },
  servers: [{ url: "/api/v3", description: "This server." }],
  transform: (spec) => ({
    ...spec,
    paths: documentedPaths(spec["paths"], documentedResponse),
    components: { ...spec["components"], schemas: documentedSchemas(spec["components"].schemas, spec["paths"]) }
  })
})

const intakeDescription = `
Takes notifications that invoices, or lines of invoices, were deleted, and deletes them a little later, once.

- A delivery may be sent any number of times with the same \`Idempotency-Key\`: it is stored once, and every response is that of the first. After a 503, a timeout or a broken connection, send it again with the same key.
- What an item says of a record must match: an item that names another clinic, client or invoice than the record's deletes nothing.
- Items are counted before they are looked at: more than 10,000 are refused with 422, and the count in the response is of those that were counted until then.
- A 422 lists the faults of a delivery all at once, up to 100. A response that refuses a delivery has at most 64 KiB.
- What became of a delivery, and which of its items were not deleted and why, says \`POST /api/v3/invoice-deletions/get\` of the practice data API, with an API key of the organization: \`{"idempotency_key": "..."}\`.
- An organization may require its deliveries to be signed: see below.

${signing}
`.trim()

const intakeStatuses: Readonly<Record<string, string>> = {
  200: "Stored before. The response is that of the first delivery, with status `duplicate`.",
  202: "Stored and committed: status `scheduled`.",
  401: "The organization requires signed deliveries, and this one is not, or not as it should be. The detail names the header that is missing, too old or too new, or does not match.",
  413: "The request body is larger than 4 MiB.",
  415: "The request has a Content-Encoding other than identity.",
  422: "The request does not have the shape that the endpoint takes, or its Idempotency-Key was used with another payload. Nothing is stored.",
  500: "A bug. The response says nothing of its cause.",
  503: "The store is down or busy, or the service is reading too many large deliveries: status `error`; the counts are 0 where the items were not read. Send the delivery again, with the same key, after `Retry-After` seconds."
}

// The contract shows no status of the intake.
const documentedIntakeResponse: Document = (status, response) => ({
  ...response,
  description: intakeStatuses[status] ?? response.description,
  ...(status === "500" ? { content: body("ErrorDetail") } : {}),
  "x-provisional": true
})

/** What senders send may have more fields than are listed. */
const growing = (schemas: JsonSchema.Definitions) =>
  Record.map(schemas, (schema, name) =>
    /^(InvoiceDeletions|DeletedInvoice|DeletedInvoiceLine)$/.test(name)
      ? { ...schema, additionalProperties: true }
      : schema
  )

/** Of the intake. */
export const intakeDocumentation = OpenApi.annotations({
  title: "Invoice deletion intake",
  version: "1.0",
  description: intakeDescription,
  license: { name: "MIT" },
  servers: [{ url: "/api/v1", description: "This server." }],
  transform: (spec) => ({
    ...spec,
    paths: documentedPaths(spec["paths"], documentedIntakeResponse),
    components: { ...spec["components"], schemas: growing(spec["components"].schemas) }
  })
})
