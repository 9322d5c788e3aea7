/** The examples of requests in the documentation. */
import { Predicate, String as Text } from "effect"
import type { Operation } from "../api/openapi/Parsed.ts"

/** A value as it stands in TypeScript. */
const source = (value: unknown) =>
  JSON.stringify(value, null, 1)
    .replaceAll(/\n\s*/g, " ")
    .replaceAll(/"(\w+)":/g, "$1:")
    .replaceAll("[ ", "[")
    .replaceAll(" ]", "]")

/** A request with curl. Its variables are those of the quick start. */
export const curlExample = (method: string, path: string, operation: Operation, body: unknown): string => {
  const lines = [
    `curl -s "$PRACTICE_DATA_URL${path}"`,
    ...(operation.security.length > 0 ? ['-H "Authorization: Bearer $PRACTICE_DATA_API_KEY"'] : []),
    ...operation.parameters.flatMap(({ examples, name }) =>
      examples ? [`-H '${name}: ${String(examples.demo.value)}'`] : []
    ),
    ...(method === "POST" ? ["-H 'Content-Type: application/json'", `-d '${JSON.stringify(body)}'`] : [])
  ]
  return lines.join(" \\\n  ")
}

/** The same with our client, where it has a method for it. */
export const clientExample = ({ operationId }: Operation, body: unknown): string | undefined => {
  const [name = "", verb] = operationId.split(".")
  const resource = name.startsWith("psp") ? `psp.${Text.uncapitalize(name.slice(3))}` : name
  if (resource === "changes") return `for await (const page of client.changes(cursor)) console.log(page)`
  switch (verb) {
    case "schedule":
      return `await sender.send(${source(body)}, { idempotencyKey: "delivery-1" })`
    case "changes":
      return `for await (const page of client.${resource}.changes(cursor)) console.log(page)`
    case "search":
      return `await client.${resource}.search(${source(body)})`
    case "get": {
      const isById = Predicate.hasProperty(body, "id")
      return `await client.${resource}.get(${isById ? source(body.id) : resource === "organization" ? "" : source(body)})`
    }
    default:
      return undefined
  }
}
