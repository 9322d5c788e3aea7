/**
 * The source of `src/client/generated.ts`: the types of the client, with their descriptions, and its resources, as the
 * OpenAPI documents of the two APIs say. Only the time that a resource is ordered by is in no document.
 */
import { Array, Option, String as Text } from "effect"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../../src/api/DataApi.ts"
import { VersionOneApi } from "../../src/api/IntakeApi.ts"
import { searchable } from "../../src/api/records/index.ts"
import packageJson from "../../package.json" with { type: "json" }
import { decode, type Document, type Endpoint, endpointsOf } from "./Document.ts"
import { comment, declaration, type JsonSchema, nameOf, referencesOf, type Side } from "./JsonSchema.ts"

const data = decode(OpenApi.fromApi(DataApi))
const intake = decode(OpenApi.fromApi(VersionOneApi))

const fail = (what: string): never => {
  throw new Error(what)
}

const schemaIn = ({ components }: Document, { $ref = fail("a schema without a name") }: JsonSchema) =>
  components.schemas[nameOf($ref)] ?? fail(`no schema ${$ref}`)

const resolved = (schema: JsonSchema) => (schema.$ref === undefined ? schema : schemaIn(data, schema))

const property = (schema: JsonSchema, name: string) => resolved(schema).properties?.[name]

/** `consumption-logs` as `consumptionLogs`. */
const camel = (name: string) => Text.uncapitalize(name.split("-").map(Text.capitalize).join(""))

type Endpoints = Partial<Record<"search" | "get" | "changes", Endpoint>>

const resources: ReadonlyArray<readonly [string, Endpoints]> = Object.entries(
  Array.groupBy([...endpointsOf(data)], ([path]) => path.split("/")[1] ?? "")
).map(([name, endpoints]) => [
  name,
  Object.fromEntries(endpoints.map(([path, endpoint]) => [path.split("/")[2] ?? "", endpoint]))
])

const pspItem = "PspObject"

/** What a resource is made of. */
const shapeOf = (endpoints: Endpoints) => {
  const { get, search } = endpoints
  const page = search?.response ?? {}
  const live = property(page, "data")?.items
  const item = live ?? property(page, "body")?.items ?? get?.response ?? {}
  return {
    isLive: live !== undefined,
    item: item.$ref === undefined ? pspItem : nameOf(item.$ref),
    itemSchema: resolved(item),
    search: search?.request.$ref === undefined ? undefined : nameOf(search.request.$ref),
    key: get?.request.$ref === undefined ? undefined : nameOf(get.request.$ref)
  }
}

const taskOrder = { id: "task_id", time: "scheduled_for", since: "scheduled_since" }

/** The field that a search is ordered by, and its filter. */
const orderOf = (name: string) => {
  if (name === "invoice-deletions") return taskOrder
  const found = Option.getOrUndefined(Array.findFirst(searchable, (resource) => resource.name === name))
  if (found === undefined || !(found.orderedBy in found.record.fields)) return { id: "id" }
  const filters = Object.entries<{ readonly fields: ReadonlyArray<string> }>(found.filters)
  const since = filters.flatMap(([filter, { fields }]) =>
    filter.endsWith("_since") && fields.includes(found.orderedBy) ? [filter] : []
  )
  const named = since.find((filter) => filter.startsWith(found.orderedBy)) ?? since[0]
  return { id: "id", time: found.orderedBy, ...(named !== undefined && { since: named }) }
}

const infoOf = (name: string, endpoints: Endpoints): string => {
  const verbs = (["search", "get", "changes"] as const).filter((verb) => endpoints[verb] !== undefined)
  const fields = { name, verbs, ...orderOf(name), ...(shapeOf(endpoints).isLive && { live: true }) }
  const lines = Object.entries(fields).map(
    ([field, value]) => `  ${field}: ${JSON.stringify(value).replaceAll(",", ", ")}`
  )
  return `const ${camel(name)}: ResourceInfo = {\n${lines.join(",\n")}\n}`
}

/** A resource as a member of the client: what it is, its type, and how it is made. */
const memberOf = (name: string, endpoints: Endpoints) => {
  const { isLive, item, itemSchema, key, search } = shapeOf(endpoints)
  const words = name.replace(/^psp-/, "").replaceAll("-", " ")
  const documentation = isLive
    ? [`/** The payment processor's ${words} of one clinic, read live. */`]
    : comment({ description: itemSchema.description ?? `The ${words}.` }, "response")
  const [kind, make, types] = isLive
    ? (["LiveResource", "live", [item, search]] as const)
    : search === undefined
      ? (["OwnResource", "own", [item]] as const)
      : endpoints.changes === undefined
        ? (["KeyedResource", "keyed", [item, search, key]] as const)
        : (["RecordResource", "records", [item, search]] as const)
  return { name, documentation, kind, types, made: `make.${make}(${camel(name)})` }
}

type Member = ReturnType<typeof memberOf>

const clientMembers = resources.map(([name, endpoints]) => memberOf(name, endpoints))
const isPsp = ({ name }: { readonly name: string }) => name.startsWith("psp-")
const psp = clientMembers.filter(isPsp)
const top = clientMembers.filter((member) => !isPsp(member))

/** A member with its type, wrapped as the formatter wraps it. */
const typed = (name: string, { kind, types }: Member): ReadonlyArray<string> => {
  const line = `readonly ${name}: ${kind}<${types.join(", ")}>`
  if (line.length <= 118) return [line]
  return [
    `readonly ${name}: ${kind}<`,
    ...indented(types.map((type, index) => `${type ?? ""}${index + 1 < types.length ? "," : ""}`)),
    ">"
  ]
}

const indented = (lines: ReadonlyArray<string>) => lines.map((line) => `  ${line}`)

const pspName = (name: string) => camel(name.replace(/^psp-/, ""))

const clientClass = [
  "/** The resources of the API, each with what can be asked of it. */",
  "export class Resources {",
  ...indented([
    ...top.flatMap((member) => [...member.documentation, ...typed(camel(member.name), member)]),
    "/** Live reads of the payment processor account that is connected to a clinic. */",
    "readonly psp: {",
    ...indented(psp.flatMap((member) => [...member.documentation, ...typed(pspName(member.name), member)])),
    "}",
    "",
    "constructor(make: Make) {",
    ...indented([
      ...top.map(({ made, name }) => `this.${camel(name)} = ${made}`),
      "this.psp = {",
      ...indented([psp.map(({ made, name }) => `${pspName(name)}: ${made}`).join(",\n      ")]),
      "}"
    ]),
    "}"
  ]),
  "}"
].join("\n")

/** The schemas that others refer to, and all that these refer to, in the order in which they are met. */
const closure = (
  document: Document,
  schemas: ReadonlyArray<JsonSchema>,
  known: ReadonlyArray<string> = []
): ReadonlyArray<string> =>
  schemas
    .flatMap(referencesOf)
    .reduce<ReadonlyArray<string>>(
      (names, name) =>
        names.includes(name) ? names : closure(document, [schemaIn(document, { $ref: name })], [...names, name]),
      known
    )

const declared = (document: Document, side: Side, names: ReadonlyArray<string>) =>
  names.map((name) => declaration(name, schemaIn(document, { $ref: name }), side))

const endpoints = resources.flatMap(([, byVerb]) => Object.values(byVerb))
const isPage = (name: string) => ["body", "data"].some((field) => property({ $ref: name }, field) !== undefined)
const responses = closure(
  data,
  endpoints.map(({ response }) => response)
).filter((name) => !isPage(name))
const requests = closure(
  data,
  resources.flatMap(([, { changes, get, search }]) => [
    ...(search === undefined ? [] : [search.request]),
    ...(get === undefined || search === undefined || changes !== undefined ? [] : [get.request])
  ])
)

/** A page of records of any kind. */
const pageOf = (name: string, description: string, response: JsonSchema, records: string, more: JsonSchema = {}) => {
  const { properties = {}, required = [] } = resolved(response)
  const page: JsonSchema = {
    description,
    properties: {
      ...properties,
      [records]: { ...properties[records], items: { $ref: "Item" } },
      ...more.properties
    },
    required: [...required, ...(more.required ?? [])]
  }
  return declaration(`${name}<Item>`, page, "response")
}

const first = (verb: "search" | "changes", field: string) =>
  resources
    .map(([, byVerb]) => byVerb[verb]?.response)
    .find((response) => response !== undefined && property(response, field) !== undefined) ??
  fail(`no page of ${field}`)

const lag: JsonSchema = {
  properties: {
    lag: {
      type: "integer",
      description: "For how many seconds an open transaction has held changes back; 0 where none are."
    }
  },
  required: ["lag"]
}

const pspObject = resources.some(([, byVerb]) => shapeOf(byVerb).item === pspItem)
  ? [declaration(pspItem, { description: "An object of the payment processor, as it gives it." }, "response")]
  : []

const delivery = endpointsOf(intake).get("/invoice-deletions") ?? fail("no intake")
const deliveryName = `${nameOf(delivery.request.$ref ?? "")}Request`
const items = closure(intake, [schemaIn(intake, delivery.request)])

/** The text of the file. */
export const source = (): string =>
  [
    [
      "// Made by `npm run generate` from the OpenAPI documents of the APIs. Change these instead.",
      'import type { KeyedResource, LiveResource, Make, OwnResource, RecordResource, ResourceInfo } from "./Resource.ts"'
    ].join("\n"),
    `/** The version of this package. */\nexport const version = ${JSON.stringify(packageJson.version)}`,
    ...declared(data, "response", responses),
    ...pspObject,
    pageOf("ChangesPage", "A page of changes.", first("changes", "body"), "body", lag),
    pageOf("LivePage", "A page of objects of the payment processor.", first("search", "data"), "data"),
    declaration("ValidationError", schemaIn(data, { $ref: "ValidationError" }), "response"),
    ...declared(data, "filters", requests),
    ...declared(intake, "delivery", items),
    declaration(deliveryName, { description: "What to delete.", ...schemaIn(intake, delivery.request) }, "delivery"),
    ...declared(intake, "response", closure(intake, [delivery.response])),
    ...resources.map(([name, byVerb]) => infoOf(name, byVerb)),
    `/** The resources of the API, by their names in its paths. */\nexport const resources: ReadonlyArray<ResourceInfo> = [\n${resources.map(([name]) => `  ${camel(name)}`).join(",\n")}\n]`,
    clientClass
  ]
    .join("\n\n")
    .replaceAll(/^ +$/gm, "") + "\n"
