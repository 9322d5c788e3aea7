/**
 * A resource: its fields, its filters, its table, its order, and from these its endpoints.
 *
 * A resource is described once, in the file that bears its name. The request and response schemas, the OpenAPI
 * document, the queries and the in-memory fake all follow from that description.
 */
import { type DateTime, Schema, SchemaAST, Struct } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import {
  ChangesNotServed,
  CredentialStoreDown,
  CursorExpired,
  CursorInvalid,
  IdRequired,
  OrgMismatch,
  OutOfRange,
  RecordNotFound,
  RecordStoreDown,
  responses,
  ServiceBusy
} from "../Errors.ts"
import { ReadsByKey } from "../Authorization.ts"
import { annotations, type Stability, typeName } from "../openapi/Endpoint.ts"
import { changesDescription, changesFields, changesOf } from "./Changes.ts"
import type * as Field from "./Field.ts"
import type * as Filter from "./Filter.ts"
import { getFields, organization, searchFields } from "./Search.ts"

/** The filters of a search, by the name of their request field. */
export type Filters = Readonly<Record<string, Filter.Filter>>

/** The description of a resource. */
export interface Resource<
  Name extends string = string,
  Fields extends Field.Fields = Field.Fields,
  Hidden extends Field.Fields = Field.Fields,
  F extends Filters = Filters
> {
  /** The name in the paths of its endpoints. */
  readonly name: Name
  /** The table. Its column `record` holds the JSON of each row. */
  readonly table: string
  /** The record as clients see it, fields in the contract's order. */
  readonly record: Schema.Struct<Fields>
  /** What is stored beside the record and not shown in it; filters may use it. */
  readonly hidden: Hidden
  /** The timestamp that results are ordered by, ascending, before their id. */
  readonly orderedBy: "updated_at" | "modified_at" | "created_at"
  /** The filters of its search, in the contract's order. */
  readonly filters: F
}

/** A record as it is stored: whose it is, what clients see of it, and what they do not see. */
export type Stored<R extends Resource = Resource> = R["record"]["Type"] &
  Schema.Struct.Type<R["hidden"]> & { readonly organization_id: string }

/** The names of the fields whose values are of a type, or null. */
type Named<Fields extends Field.Fields, Type> = {
  [Name in keyof Fields & string]: Exclude<Fields[Name]["Type"], null> extends Type ? Name : never
}[keyof Fields & string]

/** The filters that can be compared with fields. */
type FilterOf<Fields extends Field.Fields> =
  | Filter.Filter<Schema.Top, "equals", Named<Fields, string>>
  | Filter.Filter<Schema.Top, "numberEquals", Named<Fields, number>>
  | Filter.Filter<Schema.Top, "since" | "before", Named<Fields, DateTime.Utc>>
  | Filter.Filter<Schema.Top, "includeMarked", Named<Fields, boolean>>

type OrderOf<Fields extends Field.Fields> = Resource["orderedBy"] & Named<Fields, DateTime.Utc>

// The statement that reads the records may look up the key as well.
const down = [RecordStoreDown, CredentialStoreDown, ServiceBusy] as const

interface SchemaOf extends Struct.Lambda {
  <S extends Schema.Top>(filter: Filter.Filter<S>): S
  readonly "~lambda.out": this["~lambda.in"] extends Filter.Filter<infer S> ? S : never
}

const schemaOf = Struct.lambda<SchemaOf>((filter) => filter.schema)

const typeOf = (resource: Resource, what: string) => `${typeName(resource.name)}${what}`

const title = (resource: Resource) => resource.name.replaceAll("-", " ")

/** The filters of a search for what has changed since some time. */
export const changedSince = ({ filters, orderedBy }: Resource) =>
  Object.entries(filters).flatMap(([name, { fields }]) =>
    name.endsWith("_since") && fields.includes(orderedBy) ? [name] : []
  )

const examplesOf = SchemaAST.resolveAt<ReadonlyArray<string>>("examples")

const exampleId = ({ record }: Resource): string => {
  const { id } = record.fields
  return (id === undefined ? undefined : examplesOf(id.ast)?.[0]) ?? ""
}

const search = <const Name extends string, Fields extends Field.Fields, F extends Filters>(
  resource: Resource<Name, Fields, Field.Fields, F>,
  stability: Stability
) =>
  HttpApiEndpoint.post("search", `/${resource.name}/search`, {
    payload: Schema.Struct({ ...searchFields, ...Struct.map(resource.filters, schemaOf) }).annotate({
      identifier: typeOf(resource, "SearchRequest")
    }),
    success: Schema.Struct({ body: Schema.Array(resource.record) }).annotate({
      identifier: typeOf(resource, "Page"),
      description: `A page of ${title(resource)}.`
    }),
    error: responses(OrgMismatch, OutOfRange, ...down)
  })
    .annotate(ReadsByKey, true)
    .annotateMerge(
      annotations({
        operation: [resource.name, "search"],
        stability,
        summary: `Search ${title(resource)}`,
        description: `The organization's records that satisfy every filter given, ordered by \`${resource.orderedBy}\`, then by \`id\`, ascending. While records are changed, a walk by \`offset\` or by times alone misses some: to keep a copy, use \`/${resource.name}/changes\`, or read "By search alone" in the introduction.`,
        request: {
          ...Object.fromEntries(
            changedSince(resource)
              .slice(-1)
              .map((name) => [name, "2026-01-06T00:00:00Z"])
          ),
          limit: 10
        }
      })
    )

const changes = <const Name extends string, Fields extends Field.Fields>(resource: Resource<Name, Fields>) =>
  HttpApiEndpoint.post("changes", `/${resource.name}/changes`, {
    payload: Schema.Struct(changesFields).annotate({ identifier: typeOf(resource, "ChangesRequest") }),
    success: changesOf(resource.record, {
      identifier: typeOf(resource, "Changes"),
      description: `Changes of ${title(resource)}.`
    }),
    error: responses(OrgMismatch, OutOfRange, CursorInvalid, CursorExpired, ChangesNotServed, ...down)
  })
    .annotate(ReadsByKey, true)
    .annotateMerge(
      annotations({
        operation: [resource.name, "changes"],
        stability: "provisional",
        summary: `Changes of ${title(resource)}`,
        description: changesDescription,
        request: { limit: 10 }
      })
    )

const get = <const Name extends string, Fields extends Field.Fields>(
  resource: Resource<Name, Fields>,
  stability: Stability
) =>
  HttpApiEndpoint.post("get", `/${resource.name}/get`, {
    payload: Schema.Struct(getFields).annotate({ identifier: typeOf(resource, "GetRequest") }),
    success: resource.record,
    error: responses(OrgMismatch, IdRequired, RecordNotFound, ...down)
  })
    .annotate(ReadsByKey, true)
    .annotateMerge(
      annotations({
        operation: [resource.name, "get"],
        stability,
        summary: `Get one of the ${title(resource)}`,
        description: "The record itself, not wrapped. A record of another organization is not found.",
        request: { id: exampleId(resource) }
      })
    )

const getOwn = <const Name extends string, Fields extends Field.Fields>(
  resource: Resource<Name, Fields>,
  stability: Stability
) =>
  HttpApiEndpoint.post("get", `/${resource.name}/get`, {
    payload: Schema.Struct({ organization }).annotate({ identifier: typeOf(resource, "GetRequest") }),
    success: resource.record,
    error: responses(OrgMismatch, RecordNotFound, ...down)
  }).annotateMerge(
    annotations({
      operation: [resource.name, "get"],
      stability,
      summary: `Get the ${title(resource)}`,
      description: "The organization that the API key resolves to.",
      request: {}
    })
  )

/** The group of a resource's endpoints, described as its record is. */
const groupOf = <const Name extends string>({ name, record }: Pick<Resource<Name>, "name" | "record">) =>
  HttpApiGroup.make(name).annotateMerge(OpenApi.annotations({ description: SchemaAST.resolveDescription(record.ast) }))

/** What `make` takes: a description, in which a filter and `orderedBy` name a field of the record or a hidden one. */
interface Described<
  Name extends string,
  Fields extends Field.Fields,
  Hidden extends Field.Fields,
  F extends Filters
> extends Resource<Name, Fields, Hidden, F> {
  readonly orderedBy: OrderOf<Fields & Hidden>
  readonly search: Stability
  readonly get: Stability
}

const endpoints = <const Name extends string, Fields extends Field.Fields, F extends Filters>(
  resource: Resource<Name, Fields, Field.Fields, F> & { readonly search: Stability; readonly get: Stability }
) => groupOf(resource).add(search(resource, resource.search), get(resource, resource.get), changes(resource))

/** A resource with its endpoints. An interface, so that declarations name it instead of repeating all that it has. */
export interface Searchable<
  Name extends string,
  Fields extends Field.Fields,
  Hidden extends Field.Fields,
  F extends Filters
> extends Described<Name, Fields, Hidden, F> {
  /** Its endpoints. */
  readonly group: ReturnType<typeof endpoints<Name, Fields, F>>
}

/**
 * A resource with three endpoints: `POST /NAME/search` returns the organization's records that satisfy every filter,
 * `POST /NAME/get` one record, and `POST /NAME/changes` what has changed.
 */
export const make = <
  const Name extends string,
  Fields extends Field.Fields,
  Hidden extends Field.Fields,
  F extends Readonly<Record<string, FilterOf<Fields & Hidden>>>
>(
  options: Described<Name, Fields, Hidden, F>
): Searchable<Name, Fields, Hidden, F> => ({ ...options, group: endpoints(options) })

/** What `own` takes. */
interface OwnDescribed<Name extends string, Fields extends Field.Fields> extends Omit<
  Resource<Name, Fields>,
  "hidden" | "filters"
> {
  readonly orderedBy: OrderOf<Fields>
  readonly get: Stability
}

const ownEndpoint = <const Name extends string, Fields extends Field.Fields>(
  resource: Resource<Name, Fields> & { readonly get: Stability }
) => groupOf(resource).add(getOwn(resource, resource.get))

/** A resource of which each organization has one record, with its endpoint. */
export interface Own<Name extends string, Fields extends Field.Fields> extends OwnDescribed<Name, Fields> {
  readonly hidden: Record<never, never>
  readonly filters: Record<never, never>
  /** Its endpoint. */
  readonly group: ReturnType<typeof ownEndpoint<Name, Fields>>
}

/** A resource of which each organization has one record, its own: `POST /NAME/get` returns it. */
export const own = <const Name extends string, Fields extends Field.Fields>(
  options: OwnDescribed<Name, Fields>
): Own<Name, Fields> => {
  const resource = { ...options, hidden: {}, filters: {} }
  return { ...resource, group: ownEndpoint(resource) }
}
