/**
 * The data API as the contract words it, typed by hand: what the document and the running service are held against.
 * Nothing here comes from the sources of the service.
 */
import * as Decided from "./Decided.ts"
import type { Resource, Standing } from "./Resource.ts"
import * as Shown from "./Shown.ts"

/** Every kind of record. */
export const resources: ReadonlyArray<Resource> = [...Object.values(Shown), ...Object.values(Decided)]

/** The kind of record of a name. */
export const resourceOf = (name: string): Resource => {
  const found = resources.find((resource) => resource.name === name)
  if (found === undefined) throw new Error(`no such kind of record: ${name}`)
  return found
}

/** The kinds of record that can be searched. */
export const searchable = resources.filter((resource) => resource.search !== undefined)

/** An endpoint: a POST with a JSON body. */
export interface Endpoint {
  readonly path: string
  readonly kind: "search" | "get"
  readonly standing: Standing
  readonly resource: Resource
  /** The fields of its request, in order. */
  readonly request: Readonly<Record<string, "string" | "integer" | "boolean" | "date-time">>
  /** The statuses that the contract lists. */
  readonly listed: ReadonlyArray<string>
  /** The statuses that were decided. */
  readonly decided: ReadonlyArray<string>
}

const endpointsOf = (resource: Resource): ReadonlyArray<Endpoint> => {
  const listed = ["200", "400", "401", "422", "503"]
  const filters = Object.entries(resource.filters).map(([name, { type }]) => [name, type] as const)
  const get: Endpoint = {
    path: `/${resource.name}/get`,
    kind: "get",
    standing: resource.get,
    resource,
    request: resource.search === undefined ? { organization: "string" } : { id: "string", organization: "string" },
    listed,
    decided: ["404", "413", "500"]
  }
  if (resource.search === undefined) return [get]
  return [
    {
      path: `/${resource.name}/search`,
      kind: "search",
      standing: resource.search,
      resource,
      request: { organization: "string", limit: "integer", offset: "integer", ...Object.fromEntries(filters) },
      listed,
      decided: ["413", "500"]
    },
    get
  ]
}

/** Every endpoint. */
export const endpoints: ReadonlyArray<Endpoint> = resources.flatMap(endpointsOf)
