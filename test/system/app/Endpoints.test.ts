/**
 * Every endpoint of the started program, held against the contract's tables: its records, its refusals, and that no
 * organization sees a byte of another's.
 */
import { assert, layer } from "@effect/vitest"
import { Array, Effect, Order, Schema } from "effect"
import { type Endpoint, endpoints, everything, searchable } from "../../support/contract/Contract.ts"
import type { FieldType, Filter, Resource } from "../../support/contract/Resource.ts"
import { type Answer, type Call, type Client, headersOf, json, type Organization, parse } from "../../support/Client.ts"
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

const wrong = {
  string: [5, "string_type", "Input should be a valid string"],
  boolean: ["true", "bool_type", "Input should be a valid boolean"],
  integer: ["100", "int_type", "Input should be a valid integer"],
  "date-time": [1769851800, "datetime_type", "Input should be a valid datetime"]
} as const

/** A body with a fault in every field of an endpoint and in one that it does not have; and its response. */
const everyFault = ({ request }: Endpoint) => {
  const fields = Object.entries(request).map(([name, type]) => [name, ...wrong[type]] as const)
  const faults = fields.map(([name, , type, msg]) => ({ loc: ["body", name], msg, type }))
  const extra = { loc: ["body", "no_such_field"], msg: "Extra inputs are not permitted", type: "extra_forbidden" }
  return {
    body: { no_such_field: 1, ...Object.fromEntries(fields.map(([name, value]) => [name, value])) },
    detail: [...faults, extra]
  }
}

/** The requests that every endpoint refuses, with the status and a part of the response. */
const refused = (endpoint: Endpoint): ReadonlyArray<readonly [status: number, part: string, call: Partial<Call>]> => {
  const headers = headersOf("oakridge")
  const { body, detail } = everyFault(endpoint)
  const withKey = (authorization: string) => ({ headers: { ...headers, authorization } })
  return [
    [401, "www-authenticate", withKey("")],
    [401, "www-authenticate", withKey("Bearer pda_demo_unknown")],
    [401, "www-authenticate", { ...withKey("Bearer pda_demo_oakridgex"), body: json(body) }],
    [400, "organization", { body: json({ ...endpoint.least, organization: "org_harbor" }) }],
    [422, json({ detail }), { body: json(body) }],
    [422, '"loc":["query","limit"]', { path: "?limit=1" }],
    [422, '"loc":["header","content-type"]', { headers: { ...headers, "content-type": "text/plain" } }],
    [413, "detail", { body: `{${" ".repeat(1024 * 1024)}` }],
    [415, "identity", { headers: { ...headers, "content-encoding": "gzip" } }],
    [405, '"allow":"POST"', { method: "PUT" }]
  ]
}

const isRefused = ({ headers, status, text: body }: Answer, expected: number, part: string) => {
  assert.strictEqual(status, expected, body)
  assert.include(`${json(headers)} ${body}`, part)
  assert.match(body, status === 422 ? /^\{"detail":\[\{"loc":\[/ : /^\{"detail":"[^"]+"\}$/)
}

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
  it.effect.each(endpoints)(
    "$path refuses what every endpoint refuses, with the same statuses and bodies",
    (endpoint) =>
      Effect.gen(function* () {
        const { call } = yield* Service
        for (const [status, part, { path = "", ...sent }] of refused(endpoint)) {
          isRefused(
            yield* call({ body: json(endpoint.least), ...sent, path: `/api/v3${endpoint.path}${path}` }),
            status,
            part
          )
        }
      })
  )

  it.effect.each(searchable)("/$name/search and /get return its records, in order, with all fields", (resource) =>
    Effect.flatMap(Service, (client) => hasRecords(client, resource))
  )

  it.effect.each(endpoints)("$path returns compact JSON, with its type, its length and a request id", (endpoint) =>
    Effect.gen(function* () {
      const { ask } = yield* Service
      const { headers, text: body } = yield* ask(endpoint.path, endpoint.least)
      assert.strictEqual(headers["content-type"], "application/json")
      assert.strictEqual(Number(headers["content-length"]), Buffer.byteLength(body))
      assert.match(String(headers["x-request-id"]), /^[\x21-\x7e]{1,128}$/)
      assert.deepStrictEqual([headers["cache-control"], headers["x-content-type-options"]], ["no-store", "nosniff"])
      assert.strictEqual(body, json(yield* parse(body)))
    })
  )

  it.effect.each(["/api/v1/health", "/api/v1/health/ready", "/api/v1/openapi.json", "/api/v3/docs"])(
    "%s is for GET and HEAD, without a key",
    (path) =>
      Effect.gen(function* () {
        const { call } = yield* Service
        const got = yield* call({ path, method: "GET", headers: {} })
        const head = yield* call({ path, method: "HEAD", headers: {} })
        const posted = yield* call({ path, headers: {}, body: "{}" })
        assert.deepStrictEqual([got.status, head.status, head.text], [200, 200, ""])
        assert.strictEqual(head.headers["content-type"], got.headers["content-type"])
        assert.deepStrictEqual([posted.status, posted.headers["allow"]], [405, "GET, HEAD"])
      })
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
