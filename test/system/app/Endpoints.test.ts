/**
 * Every endpoint of the started program: whatever is sent, it answers as documented and with nothing of another
 * organization, and answers the next request. The rules of requests are tested in this process, in `unit/api` and
 * `unit/http`; what each filter finds in each organization, over Postgres, in `integration/records`.
 */
import { assert, layer } from "@effect/vitest"
import { Arbitrary, Array, Effect, Schema } from "effect"
import { integer, oneOf } from "../../support/arbitraries.ts"
import { type Headers, headersOf, json, parse } from "../../support/Client.ts"
import { type Endpoint, endpoints } from "../../support/contract/Contract.ts"
import { options, Service } from "../../support/Service.ts"
import { tries } from "../../support/tries.ts"

const literal = (...values: ReadonlyArray<string>) => Arbitrary.schema(Schema.Literals(values))

const anyText = Arbitrary.schema(Schema.String)
const cleanText = Arbitrary.filter(anyText, (value) => value.isWellFormed() && !value.includes("\0"))
const hostile = literal("%", "'; select 1 --", "", "null", "\u{1F436}", "x".repeat(10_000), "charge_harbor_0001")
const anyJson = Arbitrary.map(Arbitrary.schema(Schema.Json), json)

/** JSON texts of values that fields take. */
const valuesOf = {
  string: Arbitrary.map(oneOf(cleanText, hostile), json),
  boolean: literal("true", "false"),
  integer: literal("1", "1e2", "1000", "100.0", "1E+1", "7"),
  "date-time": literal('"2026-01-10"', '"2026-01-10T08:00"', '"2026-01-10 08:00:00.123456789"', '"0001-01-01"'),
  strings: literal('["pets"]', '["invoices","invoice-lines","invoices"]')
}

const wrongTexts = `0 -1 1.5 1e400 2147483648 -0 01 +1 .5 0x10 "\\u0000" "\\ud800" "\\x" "open [ { undefined NaN '1' "1769851800"
  "2026-02-30" "2026-01-31T09:30:00.000000000000000000001Z" "+020260-01-01T00:00:00Z" {"a":{"b":[]}}`

/** JSON texts, and texts that nearly are, for fields that do not take them. */
const wrong = oneOf<string>(
  anyJson,
  Arbitrary.map(anyText, json),
  literal(...wrongTexts.split(/\s+/), "\0", "9".repeat(5000), `[${"1,".repeat(10_000)}1]`, "[".repeat(2000))
)

const fieldsOf = ({ kind, request, required }: Endpoint) =>
  Arbitrary.map(
    Arbitrary.all(
      Object.entries(request).map(([name, type]) => {
        const value = name === "organization" ? literal('"org_oakridge"') : valuesOf[type]
        const most = required.includes(name) || kind === "get" ? 3 : 1
        const drawn = Arbitrary.all([integer(0, 3), oneOf<string>(value, value, literal("null"))])
        return Arbitrary.map(drawn, ([chance, text]) => (chance < most ? [`${json(name)}:${text}`] : []))
      })
    ),
    (fields) => fields.flat()
  )

const oddNames = ["organization", "__proto__", "constructor", "Limit", "limit ", "", "x".repeat(5000)]

const nearlyValid = (endpoint: Endpoint) =>
  Arbitrary.map(
    Arbitrary.all([fieldsOf(endpoint), literal(...oddNames, ...Object.keys(endpoint.request)), wrong]),
    ([fields, name, value]) => `{${[...fields, `${json(name)}:${value}`].join(",")}}`
  )

const bytes = oneOf<string | Uint8Array>(
  Arbitrary.map(Arbitrary.array(integer(0, 255), { minLength: 1, maxLength: 300 }), (all) => Uint8Array.from(all)),
  Arbitrary.Constant(Buffer.from('{"limit":1}', "utf16le")),
  Arbitrary.Constant(Buffer.from('{"id":"caf\u00e9"}', "latin1"))
)

const headerText = Arbitrary.map(anyText, (value) => value.replace(/[^\x20-\x7e]/g, "~").trim())
const oddHeaders = oneOf<Headers>(
  Arbitrary.map(headerText, (value) => ({ accept: value, "accept-encoding": value, "x-request-id": value })),
  Arbitrary.Constant({ traceparent: "00-zz-zz-zz", b3: "1", range: "bytes=0-1", "if-none-match": "*" }),
  Arbitrary.Constant({ "x-http-method-override": "DELETE", "x-organization-id": "org_harbor" })
)

const requestTo = (endpoint: Endpoint) => {
  const valid = Arbitrary.map(fieldsOf(endpoint), (fields) => `{${fields.join(",")}}`)
  const body = oneOf<string | Uint8Array>(valid, nearlyValid(endpoint), anyJson, bytes)
  const odd = oneOf(Arbitrary.Constant({}), Arbitrary.Constant({}), oddHeaders)
  return Arbitrary.map(Arbitrary.all([body, integer(0, 9), odd]), ([text, chance, more]) => ({
    endpoint,
    body: text,
    headers: { ...headersOf("oakridge"), ...more },
    chunked: chance === 0
  }))
}

const detail = /^\{"detail":"[^"]+"\}$/

/** The bodies of the statuses that may be. */
const documented: Readonly<Record<number, RegExp>> = {
  200: /^\{"(body|data|id)":/,
  400: detail,
  404: detail,
  422: /^\{"detail":\[\{"loc":\["(body|query|header)"/
}

layer(Service.layerPostgres, options)("The program", (it) => {
  for (const { often, options: runs } of tries({ few: 40, many: 600, concurrency: 8, size: 20 }))
    it.effect.prop(
      `answers any request to any endpoint with a documented status and body, and then the next one${often}`,
      [oneOf(...Array.map(endpoints, requestTo))],
      ([{ body, chunked, endpoint, headers }]) =>
        Effect.gen(function* () {
          const client = yield* Service
          const answer = yield* client.call({ path: `/api/v3${endpoint.path}`, headers, body, chunked })
          const sent = `${endpoint.path} ${json(body.slice(0, 2000))} ${json(headers)}: ${answer.status} ${answer.text}`
          assert.match(answer.text, documented[answer.status] ?? /^no such status$/, sent)
          yield* parse(answer.text)
          assert.notInclude(answer.text, "harbor_")
          assert.strictEqual((yield* client.ask("/organization/get")).status, 200)
        }),
      runs
    )
})
