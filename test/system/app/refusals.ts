/** How requests are refused: the statuses, the bodies, and the order of checks. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { type Endpoint, endpoints } from "../../support/contract/Contract.ts"
import { type Answer, headersOf, type Headers, json, keys, parse } from "../../support/Client.ts"
import { Service, type Tests } from "../../support/Service.ts"
import { long } from "../../support/tries.ts"

const searches = endpoints.filter(({ request }) => "offset" in request)
const gets = endpoints.filter(({ request }) => "id" in request && !("limit" in request))

const kindOf = ({ path }: Endpoint) => (path.startsWith("/psp-") ? "psp" : path.split("/").at(-1))

const firstOfEachKind = endpoints.filter(
  (endpoint, index) => endpoints.findIndex((one) => kindOf(one) === kindOf(endpoint)) === index
)

/** The same code takes the bodies of all endpoints: one of each kind in `npm test`, the others among the long tests. */
const tiers = [
  { of: firstOfEachKind, options: {} },
  { of: endpoints.filter((endpoint) => !firstOfEachKind.includes(endpoint)), options: long }
]

const detail = ({ status, text }: Answer, expected: number) =>
  Effect.gen(function* () {
    assert.strictEqual(status, expected, text)
    const body = yield* parse(text)
    assert.hasAllKeys(body, ["detail"])
    assert.match(text, /^\{"detail":"[^"]+"\}$/)
  })

const fault = (loc: ReadonlyArray<string | number>, type: string, msg: string) => ({ loc, msg, type })

const invalid = ({ status, text }: Answer, ...faults: ReadonlyArray<unknown>) => {
  assert.strictEqual(status, 422, text)
  assert.strictEqual(text, json({ detail: faults }))
}

const wrongTypes = {
  string: [5, ["string_type", "Input should be a valid string"]],
  boolean: ["true", ["bool_type", "Input should be a valid boolean"]],
  integer: ["100", ["int_type", "Input should be a valid integer"]],
  "date-time": [1769851800, ["datetime_type", "Input should be a valid datetime"]]
} as const

/** A body with a fault in every field that an endpoint has, and in one that it has not; and the faults. */
const everyFault = ({ request }: Endpoint) => {
  const fields = Object.entries(request).map(([name, type]) => ({ name, wrong: wrongTypes[type] }))
  return {
    body: { no_such_field: 1, ...Object.fromEntries(fields.map(({ name, wrong }) => [name, wrong[0]])) },
    faults: [
      ...fields.map(({ name, wrong: [, [type, msg]] }) => fault(["body", name], type, msg)),
      fault(["body", "no_such_field"], "extra_forbidden", "Extra inputs are not permitted")
    ]
  }
}

const outOfRange: ReadonlyArray<readonly [field: string, value: string]> = [
  ["limit", "0"],
  ["limit", "-1"],
  ["limit", "1001"],
  ["limit", "2147483648"],
  ["limit", "9".repeat(400)],
  ["limit", "1e400"],
  ["offset", "-1"],
  ["offset", "2147483648"],
  ["offset", `-${"9".repeat(400)}`]
]

const notJson: ReadonlyArray<readonly [name: string, body: string | Uint8Array]> = [
  ["no closing brace", "{"],
  ["a trailing comma", '{"limit":1,}'],
  ["a comment", '{} // "comment"'],
  ["two values", "{}{}"],
  ["a word", "hello"],
  ["single quotes", "{'limit':1}"],
  ["NaN", '{"limit":NaN}'],
  ["bytes that are not UTF-8", new Uint8Array([0x7b, 0xff, 0x7d])]
]

const badAuthorization: ReadonlyArray<readonly [name: string, headers: Headers]> = [
  ["no Authorization", {}],
  ["an empty Authorization", { authorization: "" }],
  ["another scheme", { authorization: `Basic ${keys.oakridge}` }],
  ["the key without a scheme", { authorization: keys.oakridge }],
  ["Bearer without a key", { authorization: "Bearer" }],
  ["Bearer and a blank", { authorization: "Bearer " }],
  ["an unknown key", { authorization: "Bearer pda_demo_unknown" }],
  ["a key with a character more", { authorization: `Bearer ${keys.oakridge}x` }],
  ["a key in other case", { authorization: `Bearer ${keys.oakridge.toUpperCase()}` }],
  ["a very long key", { authorization: `Bearer ${"k".repeat(8000)}` }],
  ["a key of odd characters", { authorization: "Bearer '; select 1 --\u00e9" }]
]

const badContentTypes: ReadonlyArray<string | undefined> = [
  undefined,
  "",
  "text/plain",
  "application/jsonp",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x"
]

const goodContentTypes = ["application/json; charset=utf-8", "Application/JSON", "application/json;profile=x"]

export const refusals = (it: Tests) => {
  it.effect.each(searches)("$path answers 400 for limit and offset out of range", ({ path }) =>
    Effect.gen(function* () {
      const client = yield* Service
      for (const [field, value] of outOfRange) {
        yield* detail(yield* client.call({ path: `/api/v3${path}`, body: `{"${field}":${value}}` }), 400)
      }
    })
  )

  it.effect.each(endpoints)("$path answers 400 for an organization other than the key's", ({ path, least }) =>
    Effect.gen(function* () {
      const client = yield* Service
      const refused = ["org_harbor", "org_nobody", "", " ", "ORG_OAKRIDGE", "org_oakridge "]
      const answers = yield* Effect.forEach(refused, (organization) => client.ask(path, { ...least, organization }))
      for (const answer of answers) yield* detail(answer, 400)
      assert.strictEqual(new Set(answers.map(({ text }) => text)).size, 1)
      const own = yield* client.ask(path, { ...least, organization: "org_oakridge" })
      assert.strictEqual(own.status, "id" in least || "task_id" in least ? 404 : 200)
    })
  )

  it.effect.each(gets)("$path answers 400 for an id that is absent, null, empty or blank", ({ path }) =>
    Effect.gen(function* () {
      const client = yield* Service
      for (const request of [{}, { id: null }, { id: "" }, { id: "  " }, { id: "\t\n" }]) {
        yield* detail(yield* client.ask(path, request), 400)
      }
    })
  )

  it.effect.each(endpoints)("$path answers 401, always the same, without a valid key", ({ path }) =>
    Effect.gen(function* () {
      const client = yield* Service
      const bodies = new Set<string>()
      for (const [name, authorization] of badAuthorization) {
        const headers = { "content-type": "application/json", ...authorization }
        const answer = yield* client.call({ path: `/api/v3${path}`, headers, body: "{}" })
        yield* detail(answer, 401)
        assert.strictEqual(answer.headers["www-authenticate"], "Bearer", name)
        bodies.add(answer.text)
      }
      assert.strictEqual(bodies.size, 1)
    })
  )

  it.effect.each(endpoints)("$path answers 422 with every fault at once, in the order of its fields", (endpoint) =>
    Effect.gen(function* () {
      const client = yield* Service
      const { body, faults } = everyFault(endpoint)
      invalid(yield* client.ask(endpoint.path, body), ...faults)
    })
  )

  it.effect.each(searches)("$path answers 422 for a limit or offset that is no integer", ({ path }) =>
    Effect.gen(function* () {
      const client = yield* Service
      for (const field of ["limit", "offset"]) {
        for (const value of ["abc", "100", true, [1], { a: 1 }]) {
          invalid(
            yield* client.ask(path, { [field]: value }),
            fault(["body", field], "int_type", "Input should be a valid integer")
          )
        }
        invalid(
          yield* client.ask(path, { [field]: 1.5 }),
          fault(
            ["body", field],
            "int_from_float",
            "Input should be a valid integer, got a number with a fractional part"
          )
        )
      }
    })
  )

  for (const { of, options } of tiers)
    it.effect.each(of)(
      "$path answers 422 for text that no database can hold",
      ({ path, request, least }) =>
        Effect.gen(function* () {
          const client = yield* Service
          const names = Object.keys(request).filter((name) => request[name] === "string")
          for (const name of names) {
            for (const text of ["a\\u0000b", "\\ud800", "\\udc00\\ud800"]) {
              // The last of two fields of the same name counts.
              const body = json({ ...least, "": "" }).replace(`"":""}`, `"${name}":"${text}"}`)
              const answer = yield* client.call({ path: `/api/v3${path}`, body })
              const msg = "Input should be a valid string, unable to parse raw data as a unicode string"
              invalid(answer, fault(["body", name], "string_unicode", msg))
            }
          }
        }),
      options
    )

  it.effect.each(searches)("$path answers 422 for a text that is no date and time", ({ path, request }) =>
    Effect.gen(function* () {
      const client = yield* Service
      const names = Object.keys(request).filter((name) => request[name] === "date-time")
      const texts = ["", "1769851800", "20260131", "2026-02-30", "2026-13-01T00:00:00Z", "2026-01-31T25:00:00Z", "now"]
      for (const name of names) {
        for (const text of texts) {
          const answer = yield* client.ask(path, { [name]: text })
          assert.strictEqual(answer.status, 422, text)
          assert.include(answer.text, `"loc":["body","${name}"],"msg":"Input should be a valid datetime or date, `)
          assert.include(answer.text, `"type":"datetime_from_date_parsing"`)
        }
      }
    })
  )

  for (const { of, options } of tiers)
    it.effect.each(of)(
      "$path answers 422 for a body that is no JSON object",
      ({ path }) =>
        Effect.gen(function* () {
          const client = yield* Service
          const send = (body: string | Uint8Array) => client.call({ path: `/api/v3${path}`, body })
          const missing = fault(["body"], "missing", "Field required")
          for (const body of ["", "null", "  "]) invalid(yield* send(body), missing)
          const msg = "Input should be a valid dictionary or object to extract fields from"
          const noObject = fault(["body"], "model_attributes_type", msg)
          for (const body of ["[]", "1", '"text"', "true", "[{}]"]) invalid(yield* send(body), noObject)
          for (const [name, body] of notJson) {
            const { status, text } = yield* send(body)
            assert.strictEqual(status, 422, name)
            assert.match(
              text,
              /^\{"detail":\[\{"loc":\["body",\d+\],"msg":"JSON decode error","type":"json_invalid"\}\]\}$/,
              name
            )
          }
        }),
      options
    )

  for (const { of, options } of tiers)
    it.effect.each(of)(
      "$path answers 422 for a content type other than application/json",
      ({ path, least }) =>
        Effect.gen(function* () {
          const client = yield* Service
          const { authorization = "" } = headersOf("oakridge")
          const send = (type: string | undefined) =>
            client.call({
              path: `/api/v3${path}`,
              headers: { authorization, ...(type === undefined ? {} : { "content-type": type }) },
              body: json(least)
            })
          for (const type of badContentTypes) {
            const msg = "Content-Type should be application/json"
            invalid(yield* send(type), fault(["header", "content-type"], "content_type", msg))
          }
          for (const type of goodContentTypes) assert.notStrictEqual((yield* send(type)).status, 422, type)
        }),
      options
    )

  for (const { of, options } of tiers)
    it.effect.each(of)(
      "$path answers 413 for a body over 1 MiB, and reads one of 1 MiB",
      ({ path }) =>
        Effect.gen(function* () {
          const client = yield* Service
          const send = (bytes: number) => client.call({ path: `/api/v3${path}`, body: `{${" ".repeat(bytes - 2)}}` })
          yield* detail(yield* send(1024 * 1024 + 1), 413)
          assert.notStrictEqual((yield* send(1024 * 1024)).status, 413)
        }),
      options
    )

  it.effect.each(endpoints)(
    "$path checks the key, then the body, then the organization, pagination and id",
    ({ path, request, least, required }) =>
      Effect.gen(function* () {
        const client = yield* Service
        const several400 = {
          ...("limit" in request && { limit: 0 }),
          ...Object.fromEntries(required.map((name) => [name, ""])),
          organization: "org_harbor"
        }
        const wrong = json({ ...several400, no_such_field: 1 })
        const noKey = yield* client.call({
          path: `/api/v3${path}`,
          headers: { "content-type": "text/plain" },
          body: wrong
        })
        assert.strictEqual(noKey.status, 401)
        assert.strictEqual((yield* client.call({ path: `/api/v3${path}`, body: wrong })).status, 422)
        const mismatch = yield* client.ask(path, { ...least, organization: "org_harbor" })
        const several = yield* client.ask(path, several400)
        assert.deepStrictEqual([several.status, several.text], [400, mismatch.text])
      })
  )

  it.effect("an unknown path is 404 and a wrong method 405 with Allow, each with a detail", () =>
    Effect.gen(function* () {
      const client = yield* Service
      for (const path of [
        "/api",
        "/api/v3",
        "/api/v3/charges",
        "/api/v3/organization/search",
        "/api/v2/charges/search"
      ]) {
        yield* detail(yield* client.call({ path, body: "{}" }), 404)
      }
      for (const method of ["GET", "PUT", "PATCH", "DELETE"] as const) {
        const answer = yield* client.call({ path: "/api/v3/charges/search", method })
        yield* detail(answer, 405)
        assert.strictEqual(answer.headers["allow"], "POST")
      }
    })
  )

  it.effect("x-request-id is the caller's where it is 1 to 128 visible ASCII characters, else a new one", () =>
    Effect.gen(function* () {
      const client = yield* Service
      const send = (id: string) =>
        Effect.map(
          client.call({
            path: "/api/v3/organization/get",
            headers: { ...headersOf("oakridge"), "x-request-id": id },
            body: "{}"
          }),
          ({ headers }) => headers["x-request-id"]
        )
      for (const id of ["a", "x".repeat(128), "!~{}\"'"]) assert.strictEqual(yield* send(id), id)
      for (const id of ["", "x".repeat(129), "a b", "caf\u00e9"]) {
        const given = yield* send(id)
        assert.notStrictEqual(given, id)
        assert.match(String(given), /^[\x21-\x7e]{1,128}$/)
      }
    })
  )
}
