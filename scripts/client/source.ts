/**
 * The source of `src/client/generated`, from the OpenAPI documents of the two APIs: the types of the client, with their
 * descriptions, and its resources. Only the order of a search is in no document.
 *
 * Tools that generate types lack generic pages and dates as filters, and would allow null for a filter.
 */
import { Array } from "effect"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../../src/api/DataApi.ts"
import { VersionOneApi } from "../../src/api/IntakeApi.ts"
import type { Document, JsonSchema } from "../../src/api/openapi/Parsed.ts"
import { version } from "../../src/process/Package.ts"
import { decode, endpointsOf, fail, feedPath, type Resource, resolve, resourcesOf } from "./Document.ts"
import { declaration, referencesOf, type Side } from "./JsonSchema.ts"
import { clientClass, listOf } from "./resources.ts"

/** The document of the data API. */
export const data = decode(OpenApi.fromApi(DataApi))
const intake = decode(OpenApi.fromApi(VersionOneApi))
const resources = resourcesOf(data)

/** The names that schemas refer to, and all that these refer to, in the order in which they are met. */
const closure = (document: Document, schemas: ReadonlyArray<JsonSchema>): ReadonlyArray<string> => {
  const names = new Set<string>()
  const visit = (schema: JsonSchema) => {
    for (const name of referencesOf(schema)) {
      if (names.has(name)) continue
      names.add(name)
      visit(resolve(document, { $ref: name }))
    }
  }
  schemas.forEach(visit)
  return [...names]
}

const declared = (document: Document, side: Side, names: ReadonlyArray<string>) =>
  names.map((name) => declaration(name, resolve(document, { $ref: name }), side))

const isPage = (name: string) => {
  const { properties = {} } = resolve(data, { $ref: name })
  return "body" in properties || "data" in properties
}

const responses = closure(
  data,
  resources.flatMap(({ endpoints: { changes, get, search } }) =>
    [search, get, changes].flatMap((endpoint) => endpoint?.response ?? [])
  )
).filter((name) => !isPage(name))

/** The types of requests: filters, and the keys of a resource that has several. */
const requests = Array.dedupeWith(
  resources.flatMap(({ endpoints: { get, search }, kind }) =>
    [search, kind === "keyed" ? get : undefined].flatMap((endpoint) => endpoint?.request ?? [])
  ),
  (a, b) => a.name === b.name
).map(({ name, schema }) => declaration(name, schema, "filters"))

const feed = endpointsOf(data).get(feedPath) ?? fail("no feed")

/** The types of the feed of all resources: its page, and the changes in it. */
const feedTypes = () => {
  const [page = "", ...changes] = closure(data, [feed.response]).filter((name) => !responses.includes(name))
  const { properties = {}, required = [], ...described } = resolve(data, { $ref: page })
  const { lag = {} } = headers.properties ?? {}
  return [
    declaration(page, { ...described, properties: { ...properties, lag }, required: [...required, "lag"] }, "response"),
    ...declared(data, "response", changes)
  ]
}

/** A page of items of any kind. */
const pageOf = (name: string, description: string, response: JsonSchema, items: string, more: JsonSchema = {}) => {
  const { properties = {}, required = [] } = resolve(data, response)
  return declaration(
    `${name}<Item>`,
    {
      description,
      properties: { ...properties, [items]: { ...properties[items], items: { $ref: "Item" } }, ...more.properties },
      required: [...required, ...(more.required ?? [])]
    },
    "response"
  )
}

const first = (verb: "search" | "changes", kind: Resource["kind"]) =>
  resources.find((resource) => resource.kind === kind)?.endpoints[verb]?.response ?? fail(`no ${verb} of ${kind}`)

// These are headers in the document.
const headers: JsonSchema = {
  properties: {
    lag: {
      type: "integer",
      description: "The delay in seconds of a replica behind an open transaction; 0 if there is none."
    },
    complete: {
      type: "boolean",
      description:
        "True once the first load is complete: you have every record that existed when you began, except those changed since."
    }
  },
  required: ["lag", "complete"]
}

const delivery = endpointsOf(intake).get("/invoice-deletions") ?? fail("no intake")
// The sender is called as the schema is.
const deliveryName = `${delivery.request.name}Request`

const note = "// Made by `npm run generate` from the OpenAPI documents of the APIs. Change these instead."

const file = (...parts: ReadonlyArray<string>) => `${[note, ...parts].join("\n\n")}\n`

/** The text of each file, by its name in `src/client/generated`. */
export const source = (): Readonly<Record<string, string>> => ({
  "version.ts": file(`/** The version of this package. */\nexport const version = ${JSON.stringify(version)}`),
  "types.ts": file(
    ...declared(data, "response", responses),
    pageOf("ChangesPage", "A page of changes.", first("changes", "records"), "body", headers),
    ...feedTypes(),
    pageOf("LivePage", "A page of objects of the payment processor.", first("search", "live"), "data"),
    ...declared(data, "response", ["ValidationError"]),
    ...requests,
    ...declared(intake, "delivery", closure(intake, [delivery.request.schema])),
    declaration(deliveryName, { description: "The items to delete.", ...delivery.request.schema }, "delivery"),
    ...declared(intake, "response", closure(intake, [delivery.response]))
  ),
  "resources.ts": file(
    'import type { KeyedResource, LiveResource, Make, OwnResource, RecordResource, ResourceInfo } from "../Resource.ts"\nimport type * as Types from "./types.ts"',
    listOf(resources),
    clientClass(resources)
  )
})
