/** The OpenAPI documents: their endpoints, and the resources of the data API. */
import { Array, Schema } from "effect"
import { searchable } from "../../src/api/records/index.ts"
import type { Resource as Described } from "../../src/api/records/Resource.ts"
import { Document, type JsonSchema, lastOf, type Operation } from "../../src/api/openapi/Parsed.ts"

/** Reads a document. Throws if it is none. */
// oxlint-disable-next-line effecttsgo/schema-sync -- a script, whose documents are made beside it
export const decode = Schema.decodeUnknownSync(Document)

/** The request of an endpoint, by its name, and its response. */
export interface Endpoint {
  readonly request: { readonly name: string; readonly schema: JsonSchema }
  readonly response: JsonSchema
}

export const fail = (what: string): never => {
  throw new Error(what)
}

/** The schema that one refers to, or itself. */
export const resolve = ({ components }: Document, schema: JsonSchema): JsonSchema =>
  schema.$ref === undefined ? schema : (components.schemas[lastOf(schema.$ref)] ?? fail(`no schema ${schema.$ref}`))

/** The request of an operation, by its title or the name of its schema. */
const requestOf = (document: Document, { requestBody }: Operation) => {
  const { title, ...schema } = requestBody?.content["application/json"].schema ?? fail("a request without a body")
  return { name: title ?? lastOf(schema.$ref ?? fail("a request without a name")), schema: resolve(document, schema) }
}

/** The endpoints of a document that take a body, by their paths. */
export const endpointsOf = (document: Document): ReadonlyMap<string, Endpoint> =>
  new Map(
    Object.entries(document.paths).flatMap(([path, { post }]) => {
      if (post?.requestBody === undefined) return []
      const response = post.responses[200]?.content?.["application/json"].schema ?? fail(`no response of ${path}`)
      return [[path, { request: requestOf(document, post), response }] as const]
    })
  )

type Endpoints = Partial<Record<"search" | "get" | "changes", Endpoint>>

export interface Resource {
  readonly name: string
  readonly endpoints: Endpoints
  /** `live`: read from the payment processor; `keyed`: read by one of several keys. */
  readonly kind: "own" | "records" | "live" | "keyed"
  /** The type of its records. */
  readonly item: string
  readonly description: string | undefined
  /** The field that identifies a record, the one that a search is ordered by, and the filter for it. */
  readonly order: { readonly id: string; readonly time?: string; readonly since?: string }
}

const tasks = "invoice-deletions"

const orderOf = (name: string): Resource["order"] => {
  if (name === tasks) return { id: "task_id", time: "scheduled_for", since: "scheduled_since" }
  const [found] = Array.filter(searchable, (resource) => resource.name === name)
  if (found === undefined || !(found.orderedBy in found.record.fields)) return { id: "id" }
  const filters: Described["filters"] = found.filters
  const since = Object.keys(filters).filter(
    (filter) => filters[filter]?.kind === "since" && filters[filter].fields.includes(found.orderedBy)
  )
  const filter = since.find((each) => each.startsWith(found.orderedBy)) ?? since[0]
  return { id: "id", time: found.orderedBy, ...(filter !== undefined && { since: filter }) }
}

const kindOf = ({ changes, search }: Endpoints, isLive: boolean): Resource["kind"] => {
  if (isLive) return "live"
  if (search === undefined) return "own"
  return changes === undefined ? "keyed" : "records"
}

const resourceOf = (document: Document, name: string, endpoints: Endpoints): Resource => {
  const { get, search } = endpoints
  const property = (schema: JsonSchema, field: string) => resolve(document, schema).properties?.[field]
  const page = search?.response ?? {}
  const live = property(page, "data")?.items
  const item = live ?? property(page, "body")?.items ?? get?.response ?? {}
  return {
    name,
    endpoints,
    kind: kindOf(endpoints, live !== undefined),
    item: lastOf(item.$ref ?? fail(`no name for the records of ${name}`)),
    description: resolve(document, item).description,
    order: orderOf(name)
  }
}

/** The path of the feed of all resources. */
export const feedPath = "/changes"

/** The resources of a document, in its order. */
export const resourcesOf = (document: Document): ReadonlyArray<Resource> => {
  const endpoints = [...endpointsOf(document)].filter(([path]) => path !== feedPath)
  const byName = Array.groupBy(endpoints, ([path]) => path.split("/")[1] ?? "")
  return Object.entries(byName).map(([name, own]) =>
    resourceOf(document, name, Object.fromEntries(own.map(([path, endpoint]) => [path.split("/")[2], endpoint])))
  )
}
