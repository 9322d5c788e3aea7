/** The low-code manifest of an Airbyte source, with the fields of the OpenAPI document. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { JsonSchema } from "../../src/api/openapi/Parsed.ts"
import { resolve, resourcesOf } from "./Document.ts"
import { data } from "./source.ts"

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

/** The text of `src/connectors/airbyte.yaml`, whose part before the streams stays as it is. */
export const airbyte = (): string => {
  const [definitions = ""] = readFileSync(join(import.meta.dirname, "../../src/connectors/airbyte.yaml"), "utf8").split(
    /(?<=^streams:)\n/m
  )
  const streams = resourcesOf(data).flatMap(({ item, kind, name }) =>
    kind === "records" ? [streamOf(name, resolve(data, { $ref: item }))] : []
  )
  return `${definitions}${streams.join("")}\n`
}
