/**
 * A kind of record: its fields, its filters, its table, its order, and from these its endpoints.
 *
 * A resource is described once, in the file that bears its name. The request and response schemas, the OpenAPI
 * document, the queries and the in-memory fake all follow from that description.
 */
import { Effect, Schema, String as Text, Struct } from "effect"
import { HttpApiEndpoint, OpenApi } from "effect/http-api"
import {
  CredentialStoreDown,
  IdRequired,
  OrgMismatch,
  OutOfRange,
  RecordNotFound,
  RecordStoreDown,
  responses,
  ServiceBusy
} from "../Errors.ts"
import type * as Field from "./Field.ts"
import type * as Filter from "./Filter.ts"
import { getFields, organization, searchFields } from "./Search.ts"

/** The filters of a search, by the name of their request field. */
export type Filters = Readonly<Record<string, Filter.Filter>>

/** The description of a kind of record. */
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

/** Describes a kind of record. */
export const make = <
  const Name extends string,
  Fields extends Field.Fields,
  Hidden extends Field.Fields,
  F extends Filters
>(
  resource: Resource<Name, Fields, Hidden, F>
): Resource<Name, Fields, Hidden, F> => resource

/** A record as it is stored: whose it is, what clients see of it, and what they do not see. */
export type Stored<Fields extends Field.Fields, Hidden extends Field.Fields> = Schema.Struct.Type<Fields> &
  Schema.Struct.Type<Hidden> & { readonly organization_id: string }

/** A stored record in the JSON forms of its values. */
export interface Row {
  readonly organization: string
  readonly id: string
  /** Every value, hidden ones included, by the name of its field. */
  readonly values: Readonly<Record<string, unknown>>
  /** The record as clients see it. */
  readonly json: string
}

/** The rows of stored records. A record that its schema does not describe is a defect. */
export const rowsOf = Effect.fnUntraced(function* <
  Name extends string,
  Fields extends Field.Fields,
  Hidden extends Field.Fields,
  F extends Filters
>(resource: Resource<Name, Fields, Hidden, F>, records: ReadonlyArray<Stored<Fields, Hidden>>) {
  const encodeRecord = Schema.encodeUnknownEffect(resource.record)
  const encodeHidden = Schema.encodeUnknownEffect(Schema.Struct(resource.hidden))
  return yield* Effect.forEach(records, (stored) =>
    Effect.gen(function* () {
      const record = yield* encodeRecord(stored)
      const values: Row["values"] = { ...(yield* encodeHidden(stored)), ...record }
      const row: Row = {
        organization: stored.organization_id,
        id: String(values["id"]),
        values,
        json: yield* Schema.encodeEffect(Schema.fromJsonString(Schema.Unknown))(record)
      }
      return row
    })
  )
}, Effect.orDie)

/** Whether the contract shows an endpoint, or we decided its shape. */
export type Standing = "contract" | "provisional"

const annotations = (standing: Standing, summary: string, description: string) =>
  OpenApi.annotations({
    summary,
    description,
    override: standing === "provisional" ? { "x-provisional": true } : undefined
  })

// The statement that reads the records may look up the key as well.
const down = [RecordStoreDown, CredentialStoreDown, ServiceBusy] as const

interface SchemaOf extends Struct.Lambda {
  <S extends Schema.Top>(filter: Filter.Filter<S>): S
  readonly "~lambda.out": this["~lambda.in"] extends Filter.Filter<infer S> ? S : never
}

const schemaOf = Struct.lambda<SchemaOf>((filter) => filter.schema)

const requestName = (resource: Resource, verb: "Search" | "Get") =>
  `${resource.name.split("-").map(Text.capitalize).join("")}${verb}Request`

const title = (resource: Resource) => resource.name.replaceAll("-", " ")

/** `POST /NAME/search`: the organization's records that satisfy every filter, in the order of their last change. */
export const search = <
  const Name extends string,
  Fields extends Field.Fields,
  Hidden extends Field.Fields,
  F extends Filters
>(
  standing: Standing,
  resource: Resource<Name, Fields, Hidden, F>
) =>
  HttpApiEndpoint.post("search", `/${resource.name}/search`, {
    payload: Schema.Struct({ ...searchFields, ...Struct.map(resource.filters, schemaOf) }).annotate({
      identifier: requestName(resource, "Search")
    }),
    success: Schema.Struct({ body: Schema.Array(resource.record) }),
    error: responses(OrgMismatch, OutOfRange, ...down)
  }).annotateMerge(
    annotations(
      standing,
      `Search ${title(resource)}`,
      `The organization's records that satisfy every filter given, ordered by \`${resource.orderedBy}\`, then by \`id\`, ascending. A sync reads forward: page on with \`offset\`, or start again from the last timestamp it has seen.`
    )
  )

/** `POST /NAME/get`: one record of the organization. */
export const get = <
  const Name extends string,
  Fields extends Field.Fields,
  Hidden extends Field.Fields,
  F extends Filters
>(
  standing: Standing,
  resource: Resource<Name, Fields, Hidden, F>
) =>
  HttpApiEndpoint.post("get", `/${resource.name}/get`, {
    payload: Schema.Struct(getFields).annotate({ identifier: requestName(resource, "Get") }),
    success: resource.record,
    error: responses(OrgMismatch, IdRequired, RecordNotFound, ...down)
  }).annotateMerge(
    annotations(
      standing,
      `Get one of the ${title(resource)}`,
      "The record itself, not wrapped. A record of another organization is not found."
    )
  )

/** `POST /NAME/get` of the one record that an organization has of this kind: its own. */
export const getOwn = <
  const Name extends string,
  Fields extends Field.Fields,
  Hidden extends Field.Fields,
  F extends Filters
>(
  standing: Standing,
  resource: Resource<Name, Fields, Hidden, F>
) =>
  HttpApiEndpoint.post("get", `/${resource.name}/get`, {
    payload: Schema.Struct({ organization }).annotate({ identifier: requestName(resource, "Get") }),
    success: resource.record,
    error: responses(OrgMismatch, RecordNotFound, ...down)
  }).annotateMerge(
    annotations(standing, `Get the ${title(resource)}`, "The organization that the API key resolves to.")
  )
