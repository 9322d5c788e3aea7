/** The low-code manifest of an Airbyte source, with the fields of the OpenAPI document. */
import type { JsonSchema } from "../../src/api/openapi/Parsed.ts"
import { resolve, resourcesOf } from "./Document.ts"
import { data } from "./source.ts"

const header = `# Made by \`npm run generate\` from the OpenAPI document: a low-code source for Airbyte.
#
# Each sync reads every record of a stream by its feed of changes, so that no record is skipped while others write. Use
# "Full refresh | Overwrite + Deduped": a record that changes meanwhile comes twice. Low-code has no state for our cursor.
version: 6.0.0
type: DeclarativeSource

check:
  type: CheckStream
  stream_names: [clinics]

definitions:
  stream:
    type: DeclarativeStream
    primary_key: id
    retriever:
      type: SimpleRetriever
      requester:
        type: HttpRequester
        url_base: "{{ config['url'].strip().rstrip('/').removesuffix('/api/v3') }}/api/v3"
        path: "/{{ parameters['path'] }}/changes"
        http_method: POST
        authenticator:
          type: BearerAuthenticator
          api_token: "{{ config['api_key'].strip() }}"
        request_body_json:
          limit: 1000
        error_handler:
          type: DefaultErrorHandler
          max_retries: 5
          response_filters:
            - type: HttpResponseFilter
              action: RETRY
              http_codes: [408, 429, 502, 503, 504]
            - type: HttpResponseFilter
              action: FAIL
              http_codes: [410, 413, 415, 422, 501]
          backoff_strategies:
            - type: WaitTimeFromHeader
              header: Retry-After
            - type: ExponentialBackoffStrategy
      record_selector:
        type: RecordSelector
        extractor:
          type: DpathExtractor
          field_path: [body]
      paginator:
        type: DefaultPaginator
        page_token_option:
          type: RequestOption
          inject_into: body_json
          field_name: cursor
        pagination_strategy:
          type: CursorPagination
          cursor_value: "{{ response['cursor'] }}"
          stop_condition: "{{ not response['has_more'] }}"

spec:
  type: Spec
  connection_specification:
    type: object
    required: [url, api_key]
    properties:
      url:
        type: string
        title: Address
        description: Such as https://practice-data.example, before /api.
      api_key:
        type: string
        title: API key
        airbyte_secret: true

streams:`

/** The schema of a field without what Airbyte does not read. */
const fieldOf = ({ anyOf, format, items, properties, type }: JsonSchema): object => ({
  ...(anyOf ? { anyOf: anyOf.map(fieldOf) } : { type: type ?? ["string", "null"] }),
  ...(format === "date-time" && { format }),
  ...(items && { items: fieldOf(items) }),
  ...(properties && { properties: Object.fromEntries(Object.entries(properties).map(fieldEntry)) })
})

const fieldEntry = ([name, schema]: readonly [string, JsonSchema]) => [name, fieldOf(schema)] as const

/** A stream. JSON is YAML. */
const streamOf = (name: string, { properties = {} }: JsonSchema) => `
  - $ref: "#/definitions/stream"
    name: ${name.replaceAll("-", "_")}
    $parameters:
      path: ${name}
    schema_loader:
      type: InlineSchemaLoader
      schema:
        $schema: http://json-schema.org/draft-07/schema#
        type: object
        additionalProperties: true
        properties:
${Object.entries(properties)
  .map(fieldEntry)
  .map(([field, schema]) => `          ${field}: ${JSON.stringify(schema)}`)
  .join("\n")}`

/** The text of `src/connectors/airbyte.yaml`. */
export const airbyte = (): string => {
  const streams = resourcesOf(data).flatMap(({ item, kind, name }) =>
    kind === "records" ? [streamOf(name, resolve(data, { $ref: item }))] : []
  )
  return `${header}${streams.join("")}\n`
}
