/** The OpenAPI document of the data API. */
import { type JsonSchema, Record, SchemaAST } from "effect"
import { OpenApi } from "effect/http-api"
import * as Errors from "../Errors.ts"
import { faults } from "../Faults.ts"
import { searchable } from "../records/index.ts"
import type { Resource } from "../records/Resource.ts"
import { syncDescription } from "../Sync.ts"
import { contact, documentedPaths, license, requestSchemas, type Status } from "./Document.ts"
import { typeName } from "./Endpoint.ts"
import * as Headers from "./Headers.ts"
import * as RequestBodies from "./RequestBodies.ts"
import { propertiesOf, reachableFrom, requiring, simplify } from "./JsonSchemas.ts"

const description = `
Read-only access to the records of a veterinary wellness-plan business. Every call is a POST with a JSON body.

- **Authentication**: \`Authorization: Bearer <API_KEY>\`. The key resolves to exactly one organization, and every response holds records of that organization only.
- **Paging**: \`limit\` (1 to 1000, default 100) and \`offset\`. Results are ordered by the time of the last change, then by \`id\`, ascending. Records move while pages are read: to keep a copy, see below.
- **Filters** are exact and case-sensitive, and all of them must hold. A filter that is null counts as absent. A field that an endpoint does not have is refused.
- **Times** in requests are ISO 8601, UTC unless they carry an offset; \`..._since\` is inclusive, \`..._before\` exclusive. Times in responses are always UTC with milliseconds.
- **Fields** of a record are always present, null where there is no value.
- **Requests** have all their fields in the body. A query string is refused with 422, and a \`Content-Encoding\` with 415.
- **Errors** have a \`detail\`: a text, or for 422 a list of the faults of the request, all at once, up to 100. A response that refuses a request has at most 64 KiB. Every error of an endpoint carries \`x-service: practice-data\`: a 404 or 410 without it comes from a proxy or another server. 503 means that a store is down, or that a store or the service is busy: try again after \`Retry-After\` seconds.
- **Connections**: what is not HTTP gets 400, headers over 16 KiB get 431, a request that does not arrive in time gets 408, with such a \`detail\`, and the connection is closed. A request with \`Upgrade\` is served without it, as the last of its connection; with \`Transfer-Encoding\` beside it, it gets 411.
- **Compression**: responses come as zstd, br or gzip where \`Accept-Encoding\` asks for it.
- **Invoice deletions** are sent to the intake (\`/api/v1/docs\`). \`/invoice-deletions/search\` and \`/get\` say what became of them.
- Every response carries \`x-request-id\`: the request's own, when it sent one of 1 to 128 visible ASCII characters, otherwise a new one.

\`x-provisional: true\` marks endpoints and statuses whose shape may still change.

${syncDescription}
`.trim()

const error = (text: string, detail: string, isProvisional: boolean): Status => ({
  description: text,
  body: "ErrorDetail",
  example: { detail },
  isProvisional
})

/** What a value can be that an endpoint cannot work with. */
const unworkable = (path: string) => {
  if (path.startsWith("/psp-")) return new Errors.ClinicNotConnected()
  if (path === "/invoice-deletions/get") return new Errors.TaskIdRequired()
  if (path.endsWith("/changes")) return new Errors.CursorInvalid()
  return path.endsWith("/get") && path !== "/organization/get" ? new Errors.IdRequired() : new Errors.OrgMismatch()
}

const unavailable = (path: string) => {
  if (path.startsWith("/psp-")) return new Errors.ProcessorDown()
  return path.startsWith("/invoice-deletions/") ? new Errors.TaskStoreDown() : new Errors.RecordStoreDown()
}

const statuses = (path: string): Readonly<Record<string, Status>> => ({
  200: { description: "The response.", isProvisional: false },
  400: error(
    "A value that the endpoint cannot work with: a number out of range, a missing or blank id, a cursor that is damaged or of something else, or an organization other than the key's.",
    unworkable(path).detail,
    false
  ),
  401: error("The API key is missing or invalid.", new Errors.Unauthorized().detail, false),
  404: error(
    "The organization has no such record. The response is the same whether or not another organization has one.",
    (path === "/invoice-deletions/get" ? new Errors.TaskNotFound() : new Errors.RecordNotFound()).detail,
    true
  ),
  410: error(
    "The order of changes that the cursor belongs to has ended: start again without a cursor, with an empty copy.",
    new Errors.CursorExpired().detail,
    true
  ),
  413: error("The request body is larger than 1 MiB.", "The request body is larger than 1048576 bytes", true),
  415: error("The request has a Content-Encoding other than identity.", new Errors.EncodingUnsupported().detail, true),
  422: {
    description:
      "The request does not have the shape that the endpoint takes. All faults of the body are listed, up to 100; a query string is refused before the body is looked at.",
    body: "HTTPValidationError",
    example: { detail: [{ loc: ["body", "organization"], ...faults.string }] },
    isProvisional: false
  },
  429: error(
    "The organization sends more requests than it may. Try again after `Retry-After` seconds.",
    new Errors.TooManyRequests().detail,
    true
  ),
  500: error("A bug. The response says nothing of its cause.", "Internal Server Error", true),
  501: error(
    "The records are distributed over several servers, and their changes have no common order. It stays so: search by `updated_at_since` or `modified_since` instead.",
    new Errors.ChangesNotServed().detail,
    true
  ),
  503: error(
    "A store that the response depends on cannot be reached or refuses the service, or it or the service is busy: `detail` says which. Never reported as 401. Try again after `Retry-After` seconds.",
    unavailable(path).detail,
    false
  )
})

const isProvisional = (operation: object | undefined) => operation !== undefined && "x-provisional" in operation

const schemasOf = (spec: Pick<OpenApi.OpenAPISpec, "components" | "paths">): JsonSchema.Definitions => {
  const { components, paths } = spec
  const operations = Object.values(paths).map(({ post }) => post)
  const shown = reachableFrom(
    operations.filter((operation) => !isProvisional(operation)).map((operation) => operation?.responses),
    components.schemas
  )
  const requests = requestSchemas(paths, components.schemas)
  return Record.map(components.schemas, (schema, name) => {
    const simple = simplify(schema, !requests.has(name))
    // A get without an id is refused with 400, and a processor read without a clinic is told so, not by their schemas.
    if (name.endsWith("GetRequest")) return requiring(simple, "id")
    if (/^Psp\w+SearchRequest$/.test(name)) return requiring(simple, "clinic")
    // Records that only provisional endpoints return.
    return shown.has(name) || requests.has(name) ? simple : { ...simple, "x-provisional": true }
  })
}

/** The requests for records, with an example for each filter: that of the field that it looks at. */
const withFilterExamples = (schemas: JsonSchema.Definitions): JsonSchema.Definitions => {
  const withExamples = ({ filters, name, record }: Resource, verb: string) => {
    const request = `${typeName(name)}${verb}Request`
    const fields = propertiesOf(schemas[SchemaAST.resolveIdentifier(record.ast) ?? ""] ?? {})
    const properties = Record.map(propertiesOf(schemas[request] ?? {}), (property, filter) => {
      const examples = fields[filters[filter]?.fields[0] ?? ""]?.["examples"]
      // A filter takes a text also where the field is a number.
      return Array.isArray(examples) && !("examples" in property)
        ? { ...property, examples: examples.map(String) }
        : property
    })
    return [request, { ...schemas[request], properties }] as const
  }
  return {
    ...schemas,
    ...Object.fromEntries(
      searchable.flatMap((resource: Resource) => [withExamples(resource, "Search"), withExamples(resource, "Get")])
    )
  }
}

/** The scheme as the standard spells it; some readers take another spelling for another scheme. */
const lowercased = (scheme: OpenApi.OpenAPIHTTPSecurityScheme) => ({ ...scheme, scheme: scheme.scheme.toLowerCase() })

/** Of the data API. */
export const dataApiDocumentation = OpenApi.annotations({
  title: "Practice data API",
  version: "3.0",
  description,
  license,
  servers: [{ url: "/api/v3", description: "This server." }],
  transform: (spec) => {
    const schemas = withFilterExamples(schemasOf({ paths: spec["paths"], components: spec["components"] }))
    const requestBodies = RequestBodies.requestBodiesOf(spec["paths"], schemas)
    const paths = documentedPaths(spec["paths"], schemas, {
      statuses,
      requestBody: RequestBodies.refer,
      everywhere: ["500"]
    })
    return {
      ...spec,
      info: { ...spec["info"], contact },
      paths,
      components: {
        schemas: Record.filter(schemas, (_, name) => !(name in requestBodies)),
        requestBodies,
        headers: Headers.usedIn(paths),
        securitySchemes: Record.map(spec["components"].securitySchemes, lowercased)
      }
    }
  }
})
