/** Generated requests to the data API: valid, nearly valid, and anything else that a socket can carry. */
import { Arbitrary, Schema } from "effect"
import { type Endpoint, endpoints } from "./contract/Contract.ts"
import { headersOf, type Headers, json, keys } from "./Client.ts"

/** A request, and the statuses that its response may have. */
export interface Generated {
  readonly kind: string
  readonly endpoint: Endpoint
  readonly headers: Headers
  readonly body: string | Uint8Array
  /** Whether the body goes out in chunks, without its length. */
  readonly chunked: boolean
  readonly statuses: ReadonlyArray<number>
}

const maxBody = 1024 * 1024

const index = (count: number) =>
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: count - 1 })))

const element = <const A>(first: A, ...others: ReadonlyArray<A>) =>
  Arbitrary.map(index(others.length + 1), (at) => [first, ...others][at] ?? first)

const oneOf = <A>(first: Arbitrary.Arbitrary<A>, ...others: ReadonlyArray<Arbitrary.Arbitrary<A>>) =>
  Arbitrary.flatMap(index(others.length + 1), (at) => [first, ...others][at] ?? first)

const text = Arbitrary.schema(Schema.String)

const isClean = (value: string) => value.isWellFormed() && !value.includes("\0")

const cleanText = Arbitrary.filter(text, isClean)

const anyJson = Arbitrary.map(Arbitrary.schema(Schema.Json), json)

const asJson = Arbitrary.map(json)

/** JSON texts of values that fields take. */
const valid = {
  string: oneOf(
    asJson(cleanText),
    asJson(element("clinic_oakridge_01", "pet_oakridge_0001", "charge_oakridge_0001", "charge_harbor_0001")),
    asJson(element("paid", "EXAM-01", "100001", "%", "'; select 1 --", "\u{1F436}", "", "null", "x".repeat(10_000)))
  ),
  boolean: element("true", "false"),
  integer: oneOf(
    Arbitrary.map(index(1000), (number) => String(number + 1)),
    element("1", "1e2", "1000", "100.0", "1E+1")
  ),
  "date-time": asJson(
    element(
      "2026-01-10",
      "2026-01-10T08:00",
      "2026-01-10 08:00:00.123456789",
      "2026-01-10T08:00:00+05:30",
      "0001-01-01"
    )
  )
} as const

const wrongTexts = `0 -1 1.5 1e400 -1e400 2147483648 1e-400 -0 01 +1 .5 0x10 "\\u0000" "\\ud800" "\\x" "open [ { undefined NaN
  Infinity '1' "1769851800" "2026-02-30" "2026-01-31T09:30:00.000000000000000000001Z" "+020260-01-01T00:00:00Z" {"a":{"b":[]}}`

/** JSON texts, and texts that nearly are, for fields that do not take them. */
const wrong = oneOf(
  anyJson,
  asJson(text),
  element("", ...wrongTexts.split(/\s+/)),
  element("\u0000", "9".repeat(5000), `"${"y".repeat(60_000)}"`, `[${"1,".repeat(10_000)}1]`, "[".repeat(2000))
)

/** The fields of a body, each with the text of its value. */
type Fields = ReadonlyArray<readonly [name: string, value: string]>

const bodyOf = (fields: Fields) => `{${fields.map(([name, value]) => `${json(name)}:${value}`).join(",")}}`

const validFields = ({ kind, request, required }: Endpoint): Arbitrary.Arbitrary<Fields> => {
  const values = Object.entries(request).map(([name, type]) =>
    Arbitrary.map(
      Arbitrary.all([
        index(4),
        name === "organization" ? element('"org_oakridge"', "null") : oneOf<string>(valid[type], element("null"))
      ]),
      ([chance, value]) =>
        chance < (required.includes(name) || kind === "get" ? 3 : 1) ? [[name, value] as const] : []
    )
  )
  return Arbitrary.map(Arbitrary.all(values), (fields) => fields.flat())
}

const oddNames = ["__proto__", "constructor", "toString", "Limit", "limit ", "", "body", "x".repeat(5000)]

const mutated = (endpoint: Endpoint): Arbitrary.Arbitrary<string> =>
  Arbitrary.map(
    Arbitrary.all([
      validFields(endpoint),
      element("organization", ...Object.keys(endpoint.request), ...Object.keys(endpoint.request), ...oddNames),
      wrong
    ]),
    ([fields, name, value]) => bodyOf([...fields, [name, value]])
  )

const nested = element(
  `${"[".repeat(100_000)}${"]".repeat(100_000)}`,
  `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`,
  `{"id":${"[".repeat(100_000)}${"]".repeat(100_000)}}`,
  "[".repeat(100_000),
  '{"id":'.repeat(100_000)
)

const large = Arbitrary.map(
  Arbitrary.all([
    element("string", "array", "blanks", "number"),
    element(maxBody - 1, maxBody, maxBody + 1, 1_250_000)
  ]),
  ([shape, bytes]) => {
    const fill = {
      string: ['{"id":"', "x", '"}'],
      array: ['{"id":[', "1", "]}"],
      blanks: ["{", " ", "}"],
      number: ['{"limit":', "7", "}"]
    } as const
    const [before, inner, after] = fill[shape]
    return `${before}${inner.repeat(bytes - before.length - after.length)}${after}`
  }
)

const byte = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))

const oddlyEncoded = oneOf<Uint8Array>(
  Arbitrary.map(Arbitrary.array(Arbitrary.schema(byte), { minLength: 1, maxLength: 300 }), (bytes) =>
    Uint8Array.from(bytes)
  ),
  element(
    Buffer.from('{"limit":1}', "utf16le"),
    Buffer.from('\ufeff{"limit":1}', "utf16le"),
    Buffer.from('\ufeff{"limit":1}', "utf8"),
    Buffer.from('{"id":"caf\u00e9"}', "latin1"),
    Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d]),
    Buffer.from([0x7b, 0x22, 0xc0, 0xaf, 0x22, 0x3a, 0x31, 0x7d]),
    Buffer.from([0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00])
  )
)

const headerText = Arbitrary.map(text, (value) => value.replace(/[^\x20-\x7e]/g, "~").trim())

const contentTypes = oneOf(
  headerText,
  element("text/plain", "application/json, text/plain", "application/json;", "application/json; charset=utf-16", "*/*")
)

const oddHeaders = oneOf<Headers>(
  Arbitrary.map(headerText, (value) => ({ "x-request-id": value })),
  Arbitrary.map(headerText, (value) => ({
    accept: value,
    "accept-encoding": value,
    cookie: value,
    "user-agent": value
  })),
  Arbitrary.map(index(60), (count) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`x-header-${at}`, "v".repeat(100)]))
  ),
  element<Headers>(
    { "x-http-method-override": "DELETE", "x-original-url": "/api/v3/charges/get" },
    { traceparent: "00-zz-zz-zz", b3: "1", baggage: "=" },
    { range: "bytes=0-1", "if-none-match": "*", origin: "https://harbor.example" },
    { "x-organization-id": "org_harbor", "x-forwarded-host": "harbor" }
  )
)

const badAuthorizations = oneOf(
  headerText,
  Arbitrary.map(headerText, (value) => `Bearer ${value}`),
  element(
    "",
    "Bearer",
    `Basic ${keys.oakridge}`,
    `Bearer ${keys.oakridge} ${keys.oakridge}`,
    `Bearer "${keys.oakridge}"`
  )
)

/** The statuses of the responses to any body that is not too large. */
const ofAny = [200, 400, 404, 422]

const normal = { headers: headersOf("oakridge"), chunked: false, statuses: ofAny }

type Parts = Omit<Generated, "endpoint">

const kinds = (endpoint: Endpoint): ReadonlyArray<readonly [weight: number, parts: Arbitrary.Arbitrary<Parts>]> => {
  const validBody = Arbitrary.map(validFields(endpoint), bodyOf)
  // A search that is valid finds something or nothing; a read may name no record, or no clinic.
  const ofValid = {
    search: [200],
    // A cursor that is made up is no cursor.
    changes: [200, 400],
    get: "id" in endpoint.request ? [200, 400, 404] : [200],
    processor: [200, 400, 422],
    "search tasks": [200],
    "get task": [400, 404]
  }[endpoint.kind]
  const as = (kind: string, parts: Partial<Parts> = {}) =>
    Arbitrary.map((body: string | Uint8Array): Parts => ({ ...normal, kind, body, ...parts }))
  return [
    [30, as("valid", { statuses: ofValid })(validBody)],
    [35, as("nearly valid")(mutated(endpoint))],
    [10, as("other JSON")(anyJson)],
    [8, as("oddly encoded")(oddlyEncoded)],
    [1, as("deeply nested", { statuses: [422] })(nested)],
    [
      1,
      Arbitrary.map(Arbitrary.all([large, element(true, false)]), ([body, chunked]): Parts => {
        const statuses = body.length > maxBody ? [413] : ofAny
        return { ...normal, kind: "large", body, chunked, statuses }
      })
    ],
    [3, as("chunked", { chunked: true })(mutated(endpoint))],
    [
      4,
      Arbitrary.map(Arbitrary.all([validBody, contentTypes]), ([body, type]): Parts => {
        return { ...normal, kind: "content type", body, headers: { ...normal.headers, "content-type": type } }
      })
    ],
    [
      5,
      Arbitrary.map(Arbitrary.all([validBody, oddHeaders]), ([body, headers]): Parts => {
        return { ...normal, kind: "odd headers", body, headers: { ...normal.headers, ...headers }, statuses: ofValid }
      })
    ],
    [
      1,
      Arbitrary.map(mutated(endpoint), (body): Parts => {
        const headers = { ...normal.headers, "content-encoding": "gzip" }
        return { ...normal, kind: "an encoded body", body, headers, statuses: [415] }
      })
    ],
    [
      3,
      Arbitrary.map(Arbitrary.all([mutated(endpoint), badAuthorizations]), ([body, authorization]): Parts => {
        return { ...normal, kind: "no key", body, headers: { ...normal.headers, authorization }, statuses: [401] }
      })
    ]
  ]
}

/** Any request to any endpoint. */
export const generated: Arbitrary.Arbitrary<Generated> = Arbitrary.flatMap(index(endpoints.length), (at) => {
  const endpoint = endpoints[at] ?? endpoints[0]
  if (endpoint === undefined) throw new Error("there are no endpoints")
  const [first = normalParts, ...others] = kinds(endpoint).flatMap(([weight, parts]) =>
    Array.from({ length: weight }, () => parts)
  )
  return Arbitrary.map(oneOf(first, ...others), (parts) => ({ ...parts, endpoint }))
})

const normalParts = Arbitrary.Constant<Parts>({ ...normal, kind: "valid", body: "{}" })
