/**
 * A resource: its fields, its filters, its table, its order, and from these its endpoints. The schemas of requests and
 * responses, the OpenAPI document, the queries and the in-memory fake follow from its one description.
 */
import { type DateTime, Schema, SchemaAST, Struct } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import * as Errors from "../Errors.ts"
import { annotations, typeName } from "../openapi/Document.ts"
import type * as Field from "./Field.ts"
import type * as Filter from "./Filter.ts"
import { getFields, searchFields } from "./Requests.ts"

/** The filters of a search, by the name of their request field. */
export type Filters = Readonly<Record<string, Filter.Filter>>

// The last change, or the creation, which every table has.
const orders = ["updated_at", "modified_at", "created_at"] as const

type Verb = "search" | "get"

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
  /** Fields that are stored beside the record and not shown in it; filters may use them. */
  readonly hidden: Hidden
  /** The timestamp that results are ordered by, ascending, before their id. */
  readonly orderedBy: (typeof orders)[number]
  readonly filters: F
  /** The endpoints that the contract shows; by default none. */
  readonly contract?: ReadonlyArray<Verb>
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

interface SchemaOf extends Struct.Lambda {
  <S extends Schema.Top>(filter: Filter.Filter<S>): S
  readonly "~lambda.out": this["~lambda.in"] extends Filter.Filter<infer S> ? S : never
}

const examplesIn = SchemaAST.resolveAt<ReadonlyArray<unknown>>("examples")

/** The examples of a field, which may be null. A filter takes a text also where the field is a number. */
const exampleTexts = (field: Schema.Top | undefined): ReadonlyArray<string> => {
  const members = field === undefined ? [] : SchemaAST.isUnion(field.ast) ? field.ast.types : [field.ast]
  return members.flatMap((ast) => examplesIn(ast) ?? []).map(String)
}

/** The schema of a filter, with the examples of the field that it is compared with. */
const filterSchemas = (record: Resource["record"]) =>
  Struct.lambda<SchemaOf>(({ fields, kind, schema }) => {
    const examples = kind === "equals" || kind === "numberEquals" ? exampleTexts(record.fields[fields[0]]) : []
    return examples.length > 0 ? schema.annotate({ examples }) : schema
  })

const exampleId = ({ record }: Resource) => exampleTexts(record.fields["id"])[0] ?? ""

const schemaName = (resource: Resource, suffix: string) => `${typeName(resource.name)}${suffix}`

const title = (resource: Resource) => resource.name.replaceAll("-", " ")

const documented = (
  { contract = [], name }: Resource,
  verb: Verb,
  texts: { readonly summary: string; readonly description: string; readonly request: object }
) => annotations({ operation: [name, verb], isContract: contract.includes(verb), ...texts })

const listed = (names: object) =>
  Object.keys(names)
    .map((name) => `\`${name}\``)
    .join(", ")

// The search of the documentation looks only at descriptions.
const named = ({ filters, record }: Resource) => `Filters: ${listed(filters)}. Fields: ${listed(record.fields)}.`

const search = <const Name extends string, Fields extends Field.Fields, F extends Filters>(
  resource: Resource<Name, Fields, Field.Fields, F>
) =>
  HttpApiEndpoint.post("search", `/${resource.name}/search`, {
    payload: Schema.Struct({
      ...searchFields,
      ...Struct.map(resource.filters, filterSchemas(resource.record))
    }).annotate({
      identifier: schemaName(resource, "SearchRequest")
    }),
    success: Schema.Struct({ body: Schema.Array(resource.record) }).annotate({
      identifier: schemaName(resource, "Page"),
      description: `A page of ${title(resource)}. The last page has fewer than \`limit\`.`
    }),
    error: Errors.responses(Errors.OrgMismatch, Errors.OutOfRange, Errors.RecordStoreDown)
  }).annotateMerge(
    documented(resource, "search", {
      summary: `Search ${title(resource)}`,
      description: `The organization's records that match every filter, ordered by \`${resource.orderedBy}\`, then by \`id\`, ascending. ${named(resource)} Paging by \`offset\` or time alone misses records that change meanwhile: to keep a copy, use \`/changes\`, or see "By search alone" in the introduction.`,
      request: { limit: 10 }
    })
  )

const get = <const Name extends string, Fields extends Field.Fields>(resource: Resource<Name, Fields>) =>
  HttpApiEndpoint.post("get", `/${resource.name}/get`, {
    payload: Schema.Struct(getFields(exampleId(resource))).annotate({ identifier: schemaName(resource, "GetRequest") }),
    success: resource.record,
    error: Errors.responses(Errors.OrgMismatch, Errors.IdRequired, Errors.RecordNotFound, Errors.RecordStoreDown)
  }).annotateMerge(
    documented(resource, "get", {
      summary: `Get one record of ${title(resource)}`,
      description: "The record itself, not wrapped. A record of another organization gets 404.",
      request: { id: exampleId(resource) }
    })
  )

/** The group of a resource's endpoints, described as its record is. */
export const makeGroup = <const Name extends string>({ name, record }: Pick<Resource<Name>, "name" | "record">) =>
  HttpApiGroup.make(name).annotateMerge(OpenApi.annotations({ description: SchemaAST.resolveDescription(record.ast) }))

const endpoints = <const Name extends string, Fields extends Field.Fields, F extends Filters>(
  resource: Resource<Name, Fields, Field.Fields, F>
) => makeGroup(resource).add(search(resource), get(resource))

/** A resource with its endpoints. An interface, so that declarations name it instead of repeating all that it has. */
export interface Searchable<
  Name extends string,
  Fields extends Field.Fields,
  Hidden extends Field.Fields,
  F extends Filters
> extends Resource<Name, Fields, Hidden, F> {
  readonly group: ReturnType<typeof endpoints<Name, Fields, F>>
}

/**
 * A resource with two endpoints: `POST /NAME/search` returns the organization's records that satisfy every filter, and
 * `POST /NAME/get` one record. Its table is its name in snake case.
 */
export const make = <
  const Name extends string,
  Fields extends Field.Fields,
  Hidden extends Field.Fields,
  F extends Readonly<Record<string, FilterOf<Fields & Hidden>>>
>(
  name: Name,
  record: Schema.Struct<Fields>,
  options: Pick<Resource<Name, Fields, Hidden, F>, "hidden" | "contract" | "filters">
): Searchable<Name, Fields, Hidden, F> => {
  const orderedBy = orders.find((order) => order in record.fields) ?? "created_at"
  const resource = { name, table: name.replaceAll("-", "_"), record, orderedBy, ...options }
  return { ...resource, group: endpoints(resource) }
}
