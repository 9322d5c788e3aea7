/**
 * Every endpoint of the started program, held against the contract's tables: its records, and that no organization sees a
 * byte of another's. The rules of requests are tested in this process, in `unit/api` and `unit/http`.
 */
import { assert, layer } from "@effect/vitest"
import { Array, Effect, Order, Schema } from "effect"
import { endpoints, everything, searchable } from "../../support/contract/Contract.ts"
import type { FieldType, Filter, Resource } from "../../support/contract/Resource.ts"
import { type Answer, type Client, json, type Organization } from "../../support/Client.ts"
import { options, Service } from "../../support/Service.ts"
import { anyRequest } from "./anyRequest.ts"

type Record = Readonly<{ [field: string]: unknown }>

const decodePage = Schema.decodeUnknownEffect(
  Schema.fromJsonString(Schema.Struct({ body: Schema.Array(Schema.Record(Schema.String, Schema.Unknown)) })),
  { onExcessProperty: "error" }
)

const isText = (shape: RegExp) => (value: unknown) => typeof value === "string" && shape.test(value)
const isNumber = (value: unknown) => typeof value === "number"

const isOfType: Readonly<{ [type: string]: (value: unknown) => boolean }> = {
  string: isText(/^/),
  number: isNumber,
  integer: Number.isInteger,
  boolean: (value) => typeof value === "boolean",
  "date-time": isText(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/),
  date: isText(/^\d{4}-\d{2}-\d{2}$/),
  strings: (value) => Array.isArray(value) && value.every(isText(/^/)),
  split: (value) =>
    Object.keys(Object(value)).join() === "to_Platform,to_Processor,to_Clinic" &&
    Object.values(Object(value)).every((portion) => portion === null || isNumber(portion))
}

const isOf = (type: FieldType, value: unknown) =>
  value === null ? !type.endsWith("!") : isOfType[type.replace("!", "")]?.(value) === true

const text = (value: unknown) => (typeof value === "string" ? value : "")

/** The timestamp, where it is shown, then the id by bytes. */
const orderOf = ({ orderedBy }: Resource) =>
  Order.combine(
    Order.mapInput(Order.String, (record: Record) => text(record[orderedBy])),
    Order.mapInput(Order.Array(Order.Number), ({ id }: Record) => [...Buffer.from(text(id))])
  )

const search = (client: Client, resource: Resource, request: object, organization?: Organization) =>
  Effect.gen(function* () {
    const answer = yield* client.ask(`/${resource.name}/search`, request, organization)
    assert.strictEqual(answer.status, 200, answer.text)
    return (yield* decodePage(answer.text)).body
  })

const hasRecords = Effect.fnUntraced(function* (client: Client, resource: Resource) {
  const request = everything(resource)
  const records = yield* search(client, resource, request)
  assert.isAbove(records.length, 0)
  for (const record of records) {
    assert.deepStrictEqual(Object.keys(record), Object.keys(resource.fields))
    for (const [field, type] of Object.entries(resource.fields)) {
      assert.isTrue(isOf(type, record[field]), `${field} ${json(record[field])} is no ${type}`)
    }
  }
  assert.deepStrictEqual(records, Array.sort(records, orderOf(resource)))
  const { limit: _, ...byDefault } = request
  assert.deepStrictEqual(yield* search(client, resource, byDefault), records.slice(0, 100))
  const second = yield* search(client, resource, { ...request, limit: 29, offset: 29 })
  assert.deepStrictEqual(second, records.slice(29, 58))
  for (const { id } of [records[0], records.at(-1)].filter((record) => record !== undefined)) {
    const page = yield* client.ask(`/${resource.name}/search`, { ...request, id })
    const { status, text: record } = yield* client.ask(`/${resource.name}/get`, { id })
    assert.deepStrictEqual([status, `{"body":[${record}]}`], [200, page.text])
  }
})

const others = { oakridge: "harbor", harbor: "oakridge" } as const

const owned = searchable.flatMap((resource) =>
  (["oakridge", "harbor"] as const).map((organization) => ({ resource, name: resource.name, organization }))
)

const isWithout = (slug: string, { headers, text: body }: Answer) =>
  assert.notInclude(`${json(headers)}${body}`.toLowerCase(), slug)

/** Values of a filter that find records of one organization or of another. */
const valuesOf = (
  { compares, fields: [field] }: Filter,
  slugs: ReadonlyArray<string>,
  records: ReadonlyArray<Record>
) => {
  if (compares === "includes") return [true, false]
  if (field === undefined) return slugs.map((slug) => `pet_${slug}_0001`)
  return records.map((record) => (compares === "numberEquals" ? String(record[field]) : record[field]))
}

layer(Service.layerPostgres, options)("The program", (it) => {
  it.effect.each(searchable)("/$name/search and /get return its records, in order, with all fields", (resource) =>
    Effect.flatMap(Service, (client) => hasRecords(client, resource))
  )

  it.effect.each(owned)("shows $organization nothing of another in /$name, whatever it filters by", (own) =>
    Effect.gen(function* () {
      const client = yield* Service
      const { organization, resource } = own
      const stranger = others[organization]
      const mine = yield* search(client, resource, everything(resource), organization)
      const theirs = yield* search(client, resource, everything(resource), stranger)
      const path = `/${resource.name}/search`
      const samples = [...mine.slice(0, 1), ...theirs.slice(0, 1)]
      assert.lengthOf(samples, 2)
      isWithout(stranger, yield* client.ask(path, everything(resource), organization))
      for (const [name, filter] of Object.entries(resource.filters)) {
        for (const value of valuesOf(filter, [organization, stranger], samples)) {
          const answer = yield* client.ask(path, { ...everything(resource), limit: 100, [name]: value }, organization)
          assert.strictEqual(answer.status, 200)
          isWithout(stranger, answer)
        }
      }
      const unknown = yield* client.ask(`/${resource.name}/get`, { id: "no-such-id" }, organization)
      const foreign = yield* client.ask(`/${resource.name}/get`, { id: theirs[0]?.["id"] }, organization)
      assert.deepStrictEqual([foreign.status, foreign.text], [404, unknown.text])
      assert.deepStrictEqual(Object.keys(foreign.headers), Object.keys(unknown.headers))
    })
  )

  it.effect.each(endpoints)("tells an organization nothing of another that it names: $path", ({ path, required }) =>
    Effect.gen(function* () {
      const { ask } = yield* Service
      const theirs = { id: "charge_harbor_0001", clinic: "clinic_harbor_01" }
      const needed = Object.fromEntries(Object.entries(theirs).filter(([name]) => required.includes(name)))
      for (const named of [{}, { no_such_field: "org_harbor" }, { organization: 5 }]) {
        isWithout("harbor", yield* ask(path, { ...needed, organization: "org_harbor", ...named }))
      }
    })
  )

  anyRequest(it)
})
