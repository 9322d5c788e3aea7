/** What the program answers, read as the contract's tables read it. */
import { assert } from "@effect/vitest"
import { Effect, Order, Schema } from "effect"
import type { FieldType, Filter, ValueType, Resource } from "./contract/Resource.ts"
import type { Client, Organization } from "./Client.ts"

/** A record as JSON has it. */
export type Record = Readonly<{ [field: string]: unknown }>

const decodePage = Schema.decodeUnknownEffect(
  Schema.fromJsonString(Schema.Struct({ body: Schema.Array(Schema.Record(Schema.String, Schema.Unknown)) })),
  { onExcessProperty: "error" }
)

/** The records of a page. */
export const recordsOf = (text: string): Effect.Effect<ReadonlyArray<Record>> =>
  Effect.map(Effect.orDie(decodePage(text)), ({ body }) => body)

/** A search that must succeed. */
export const search = (client: Client, resource: Resource, request: object = {}, organization?: Organization) =>
  Effect.gen(function* () {
    const answer = yield* client.ask(`/${resource.name}/search`, request, organization)
    assert.strictEqual(answer.status, 200, answer.text)
    return yield* recordsOf(answer.text)
  })

/** What a search asks for to leave out nothing. */
export const everything = (resource: Resource) => ({
  limit: 1000,
  ...("include_deleted" in resource.filters ? { include_deleted: true } : {})
})

const known = new WeakMap<Client, Map<string, ReadonlyArray<Record>>>()

/** All records of an organization. They are asked for once, as nothing changes them. */
export const all = Effect.fnUntraced(function* (client: Client, resource: Resource, organization?: Organization) {
  const records = known.get(client) ?? new Map<string, ReadonlyArray<Record>>()
  known.set(client, records)
  const name = `${resource.name} ${organization ?? ""}`
  const found = records.get(name) ?? (yield* search(client, resource, everything(resource), organization))
  records.set(name, found)
  return found
})

/** The ids of records. */
export const idsOf = (records: ReadonlyArray<Record>) => records.map(({ id }) => id)

const isString = (value: unknown) => typeof value === "string"
const isNumber = (value: unknown) => typeof value === "number"
const isText = (shape: RegExp) => (value: unknown) => typeof value === "string" && shape.test(value)
const isStrings = (value: unknown) => Array.isArray(value) && value.every(isString)
const isSplit = (value: unknown) =>
  typeof value === "object" &&
  value !== null &&
  Object.keys(value).join() === "to_Platform,to_Processor,to_Clinic" &&
  Object.values(value).every((portion) => portion === null || isNumber(portion))

const is: Readonly<{ [K in ValueType]: (value: unknown) => boolean }> = {
  string: isString,
  number: isNumber,
  integer: Number.isInteger,
  boolean: (value) => typeof value === "boolean",
  "date-time": isText(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/),
  date: isText(/^\d{4}-\d{2}-\d{2}$/),
  strings: isStrings,
  split: isSplit
}

const isValueType = (text: string): text is ValueType => text in is

/** Whether a value is of a field's type. */
export const isOf = (type: FieldType, value: unknown) => {
  const kind = type.replace("!", "")
  return isValueType(kind) && (value === null ? !type.endsWith("!") : is[kind](value))
}

/** What a request field of a filter would be to find a record by a field of it. */
export const valueOf = (filter: Filter, record: Record) => {
  const value = record[filter.fields[0] ?? ""]
  return filter.compares === "numberEquals" ? String(value) : value
}

/** Whether a record is one that a filter with a value is about, by the fields that it shows. */
export const satisfies = (filter: Filter, value: unknown) => (record: Record) =>
  filter.fields.some((field) => {
    const held = record[field]
    switch (filter.compares) {
      case "equals":
        return held === value
      case "numberEquals":
        return String(held) === value
      case "since":
        return String(held) >= String(value)
      case "before":
        return String(held) < String(value)
      case "includes":
        return value === true || held === false
    }
  })

const textOf = (value: unknown) => (typeof value === "string" ? value : "")

const byBytes = Order.mapInput(Order.Array(Order.Number), (text: unknown) => [...Buffer.from(textOf(text))])

/** The order of a resource's results: its timestamp, where it is shown, then the id by bytes. */
export const orderOf = ({ orderedBy }: Resource) =>
  Order.combine(
    Order.mapInput(Order.String, (record: Record) => textOf(record[orderedBy])),
    Order.mapInput(byBytes, (record: Record) => record["id"])
  )
