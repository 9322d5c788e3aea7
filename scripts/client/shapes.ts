/** The resources of the data API as its OpenAPI document has them: what each is made of, and how the client asks it. */
import { Array, Option } from "effect"
import { searchable } from "../../src/api/records/index.ts"
import { type Document, type Endpoint, endpointsOf, resolve } from "./Document.ts"
import { type JsonSchema, nameOf } from "./JsonSchema.ts"

type Endpoints = Partial<Record<"search" | "get" | "changes", Endpoint>>

/** A resource. */
export interface Resource {
  readonly name: string
  readonly endpoints: Endpoints
  /** How the client asks it: `live` by pages of the payment processor, `keyed` by one of several keys. */
  readonly kind: "own" | "records" | "live" | "keyed"
  /** The type of its records. */
  readonly item: string
  readonly description: string | undefined
  /** The types of what a search and a get take. */
  readonly search: string | undefined
  readonly key: string | undefined
  /** The field that identifies a record, the one that a search is ordered by, and the filter for it. */
  readonly order: { readonly id: string; readonly time?: string; readonly since?: string }
}

/** The type of an object of the payment processor, where the document has no name for it. */
export const pspItem = "PspObject"

const tasks = "invoice-deletions"

const orderOf = (name: string): Resource["order"] => {
  if (name === tasks) return { id: "task_id", time: "scheduled_for", since: "scheduled_since" }
  const found = Option.getOrUndefined(Array.findFirst(searchable, (resource) => resource.name === name))
  if (found === undefined || !(found.orderedBy in found.record.fields)) return { id: "id" }
  const { orderedBy } = found
  const since = Object.entries<{ readonly fields: ReadonlyArray<string> }>(found.filters).flatMap(
    ([filter, { fields }]) => (filter.endsWith("_since") && fields.includes(orderedBy) ? [filter] : [])
  )
  const filter = since.find((each) => each.startsWith(orderedBy)) ?? since[0]
  return { id: "id", time: orderedBy, ...(filter !== undefined && { since: filter }) }
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
    item: item.$ref === undefined ? pspItem : nameOf(item.$ref),
    description: resolve(document, item).description,
    search: search?.request.name,
    key: get?.request.name,
    order: orderOf(name)
  }
}

/** The resources of a document, in its order. */
export const resourcesOf = (document: Document): ReadonlyArray<Resource> =>
  Object.entries(Array.groupBy([...endpointsOf(document)], ([path]) => path.split("/")[1] ?? "")).map(
    ([name, endpoints]) =>
      resourceOf(
        document,
        name,
        Object.fromEntries(endpoints.map(([path, endpoint]) => [path.split("/")[2], endpoint]))
      )
  )
