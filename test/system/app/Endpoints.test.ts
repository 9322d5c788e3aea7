/**
 * Every endpoint of the started program: no organization sees a byte of another's; whatever is sent, it answers as
 * documented, and answers the next request. The rules of requests are tested in this process, in `unit/api` and `unit/http`.
 */
import { assert, layer } from "@effect/vitest"
import { Arbitrary, Array, Effect, Schema } from "effect"
import { integer } from "../../support/arbitraries.ts"
import {
  type Answer,
  type Client,
  type Headers,
  headersOf,
  json,
  type Organization,
  parse
} from "../../support/Client.ts"
import { type Endpoint, endpoints, everything, searchable } from "../../support/contract/Contract.ts"
import { options, Service } from "../../support/Service.ts"
import { tries } from "../../support/tries.ts"
import type { Filter, Resource } from "../../support/contract/Resource.ts"

interface Generated {
  readonly endpoint: Endpoint
  readonly body: string | Uint8Array
  readonly headers: Headers
  readonly chunked: boolean
  readonly statuses: ReadonlyArray<number>
}

const element = <const A>(...values: ReadonlyArray<A>) =>
  Arbitrary.flatMap(integer(0, values.length - 1), (at) => Arbitrary.Constant(values[at]))

const anyText = Arbitrary.schema(Schema.String)
const cleanText = Arbitrary.filter(anyText, (value) => value.isWellFormed() && !value.includes("\0"))
const asJson = Arbitrary.map(json)
const anyJson = Arbitrary.map(Arbitrary.schema(Schema.Json), json)

/** One of several arbitraries, by weight. */
const weighted = <A>(...choices: ReadonlyArray<readonly [weight: number, of: Arbitrary.Arbitrary<A>]>) => {
  const all = choices.flatMap(([weight, of]) => Array.makeBy(weight, () => of))
  const [first] = all
  if (first === undefined) throw new Error("nothing to choose from")
  return Arbitrary.flatMap(integer(0, all.length - 1), (at) => all[at] ?? first)
}

const hostile = ["%", "'; select 1 --", "", "null", "\u{1F436}", "x".repeat(10_000), "charge_harbor_0001", "EXAM-01"]

/** JSON texts of values that fields take. */
const valid = {
  string: weighted([1, asJson(cleanText)], [1, asJson(element(...hostile))]),
  boolean: element("true", "false"),
  integer: element("1", "1e2", "1000", "100.0", "1E+1", "7"),
  "date-time": asJson(element("2026-01-10", "2026-01-10T08:00", "2026-01-10 08:00:00.123456789", "0001-01-01")),
  strings: element('["pets"]', '["invoices","invoice-lines","invoices"]')
} as const

const wrongTexts = `0 -1 1.5 1e400 2147483648 -0 01 +1 .5 0x10 "\\u0000" "\\ud800" "\\x" "open [ { undefined NaN '1' "1769851800"
  "2026-02-30" "2026-01-31T09:30:00.000000000000000000001Z" "+020260-01-01T00:00:00Z" {"a":{"b":[]}}`

/** JSON texts, and texts that nearly are, for fields that do not take them. */
const wrong = weighted<string | undefined>(
  [2, anyJson],
  [1, asJson(anyText)],
  [3, element(...wrongTexts.split(/\s+/), "\0", "9".repeat(5000), `[${"1,".repeat(10_000)}1]`, "[".repeat(2000))]
)

const bodyOf = (fields: ReadonlyArray<readonly [name: string, value: string | undefined]>) =>
  `{${fields.map(([name, value]) => `${json(name)}:${value}`).join(",")}}`

const fieldsOf = ({ kind, request, required }: Endpoint) =>
  Arbitrary.map(
    Arbitrary.all(
      Object.entries(request).map(([name, type]) =>
        Arbitrary.map(
          Arbitrary.all([
            integer(0, 3),
            name === "organization"
              ? element('"org_oakridge"', "null")
              : weighted<string | undefined>([3, valid[type]], [1, element("null")])
          ]),
          ([chance, value]) =>
            chance < (required.includes(name) || kind === "get" ? 3 : 1) ? [[name, value] as const] : []
        )
      )
    ),
    (fields) => fields.flat()
  )

const oddNames = ["organization", "__proto__", "constructor", "Limit", "limit ", "", "x".repeat(5000)]

const nearlyValid = (endpoint: Endpoint) =>
  Arbitrary.map(
    Arbitrary.all([fieldsOf(endpoint), element(...oddNames, ...Object.keys(endpoint.request)), wrong]),
    ([fields, name = "", value]) => bodyOf([...fields, [name, value]])
  )

const byte = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))
const bytes = weighted<string | Uint8Array>(
  [
    3,
    Arbitrary.map(Arbitrary.array(Arbitrary.schema(byte), { minLength: 1, maxLength: 300 }), (all) =>
      Uint8Array.from(all)
    )
  ],
  [1, Arbitrary.Constant(Buffer.from('{"limit":1}', "utf16le"))],
  [1, Arbitrary.Constant(Buffer.from('{"id":"caf\u00e9"}', "latin1"))]
)

const headerText = Arbitrary.map(anyText, (value) => value.replace(/[^\x20-\x7e]/g, "~").trim())
const oddHeaders = weighted<Headers>(
  [1, Arbitrary.map(headerText, (value) => ({ accept: value, "accept-encoding": value, "x-request-id": value }))],
  [1, Arbitrary.Constant({ traceparent: "00-zz-zz-zz", b3: "1", range: "bytes=0-1", "if-none-match": "*" })],
  [1, Arbitrary.Constant({ "x-http-method-override": "DELETE", "x-organization-id": "org_harbor" })]
)

/** The statuses of valid requests. A search is empty or not; a read may name no record, a cursor is made up. */
const statusesOf = (endpoint: Endpoint) =>
  ({
    search: [200],
    changes: [200, 400],
    feed: [200, 400],
    get: "id" in endpoint.request ? [200, 400, 404] : [200],
    processor: [200, 400, 422],
    "search tasks": [200],
    "get task": [400, 404]
  })[endpoint.kind]

const requestTo = (endpoint: Endpoint): Arbitrary.Arbitrary<Generated> => {
  const headers = headersOf("oakridge")
  const ofAny = [200, 400, 404, 422]
  const validBody = Arbitrary.map(fieldsOf(endpoint), bodyOf)
  const as = (body: Arbitrary.Arbitrary<string | Uint8Array>, statuses: ReadonlyArray<number>) =>
    Arbitrary.map(Arbitrary.all([body, integer(0, 9)]), ([sent, chance]): Generated => {
      return { endpoint, body: sent, headers, chunked: chance === 0, statuses }
    })
  return weighted(
    [6, as(validBody, statusesOf(endpoint))],
    [7, as(nearlyValid(endpoint), ofAny)],
    [2, as(anyJson, ofAny)],
    [2, as(bytes, ofAny)],
    [
      2,
      Arbitrary.map(Arbitrary.all([as(validBody, statusesOf(endpoint)), oddHeaders]), ([request, odd]): Generated => {
        return { ...request, headers: { ...headers, ...odd } }
      })
    ]
  )
}

const documented = [
  [422, /^\{"detail":\[\{"loc":\["(body|query|header)"/],
  [404, /^\{"detail":"[^"]+"\}$/],
  [400, /^\{"detail":"[^"]+"\}$/],
  [200, /^\{"(body|data|id)":/]
] as const

type Record = Readonly<{ [field: string]: unknown }>

const decodePage = Schema.decodeUnknownEffect(
  Schema.fromJsonString(Schema.Struct({ body: Schema.Array(Schema.Record(Schema.String, Schema.Unknown)) })),
  { onExcessProperty: "error" }
)

const search = (client: Client, resource: Resource, request: object, organization?: Organization) =>
  Effect.gen(function* () {
    const answer = yield* client.ask(`/${resource.name}/search`, request, organization)
    assert.strictEqual(answer.status, 200, answer.text)
    return (yield* decodePage(answer.text)).body
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

  for (const { often, options: runs } of tries({ few: 40, many: 600, concurrency: 8, size: 20 }))
    it.effect.prop(
      `answers any request to any endpoint with a documented status and body, and then the next one${often}`,
      [weighted(...endpoints.map((endpoint) => [1, requestTo(endpoint)] as const))],
      ([{ body, chunked, endpoint, headers, statuses }]) =>
        Effect.gen(function* () {
          const client = yield* Service
          const answer = yield* client.call({ path: `/api/v3${endpoint.path}`, headers, body, chunked })
          const sent = `${endpoint.path} ${json(body.slice(0, 2000))} ${json(headers)}: ${answer.status} ${answer.text}`
          assert.include(statuses, answer.status, sent)
          for (const [status, shape] of documented) if (answer.status === status) assert.match(answer.text, shape, sent)
          yield* parse(answer.text)
          assert.notInclude(answer.text, "harbor_")
          assert.strictEqual((yield* client.ask("/organization/get")).status, 200)
        }),
      runs
    )
})
