/** Generated bodies of requests to the endpoints of the data API: valid, nearly valid, and no JSON at all. */
import { Arbitrary, Schema } from "effect"
import { integer, oneOf } from "./arbitraries.ts"
import { json } from "./Client.ts"
import type { Endpoint } from "./contract/Contract.ts"

export const literal = (...values: ReadonlyArray<string>) => Arbitrary.schema(Schema.Literals(values))

export const anyText = Arbitrary.schema(Schema.String)
const cleanText = Arbitrary.filter(anyText, (value) => value.isWellFormed() && !value.includes("\0"))
const hostile = literal("%", "'; select 1 --", "", "null", "\u{1F436}", "x".repeat(10_000), "charge_harbor_0001")
export const anyJson = Arbitrary.map(Arbitrary.schema(Schema.Json), json)

/** JSON texts of values that fields take. */
const valuesOf = {
  string: Arbitrary.map(oneOf(cleanText, hostile), json),
  boolean: literal("true", "false"),
  integer: literal("1", "1e2", "1000", "100.0", "1E+1", "7"),
  "date-time": literal('"2026-01-10"', '"2026-01-10T08:00"', '"2026-01-10 08:00:00.123456789"', '"0001-01-01"'),
  strings: literal('["pets"]', '["invoices","invoice-lines","invoices"]')
}

const wrongTexts = `0 -1 1.5 1e400 2147483648 -0 01 +1 .5 0x10 "\\u0000" "\\ud800" "\\x" "open [ { undefined NaN '1' "1769851800
  "2026-02-30" "2026-01-31T09:30:00.000000000000000000001Z" "+020260-01-01T00:00:00Z" {"a":{"b":[]}}`

/** JSON texts, and texts that nearly are, for fields that do not take them. */
const wrong = oneOf<string>(
  anyJson,
  Arbitrary.map(anyText, json),
  literal(...wrongTexts.split(/\s+/), "\0", "9".repeat(5000), `[${"1,".repeat(10_000)}1]`, "[".repeat(2000))
)

/** Fields with their names, as JSON. Those that an endpoint requires are mostly there. */
export const fieldsOf = ({ kind, request, required }: Endpoint) =>
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

/** An object of fields. */
export const objectOf = (fields: ReadonlyArray<string>) => `{${fields.join(",")}}`

const oddNames = ["organization", "__proto__", "constructor", "Limit", "limit ", "", "x".repeat(5000)]

/** An object of valid fields and one more, which may be there already. */
export const nearlyValid = (endpoint: Endpoint) =>
  Arbitrary.map(
    Arbitrary.all([fieldsOf(endpoint), literal(...oddNames, ...Object.keys(endpoint.request)), wrong]),
    ([fields, name, value]) => objectOf([...fields, `${json(name)}:${value}`])
  )

/** Bytes that are mostly no UTF-8. */
export const bytes = oneOf<Uint8Array>(
  Arbitrary.map(Arbitrary.array(integer(0, 255), { minLength: 1, maxLength: 300 }), (all) => Uint8Array.from(all)),
  Arbitrary.Constant(Buffer.from('{"limit":1}', "utf16le")),
  Arbitrary.Constant(Buffer.from('{"id":"caf\u00e9"}', "latin1"))
)
