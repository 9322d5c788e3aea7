/** The test of payloads that need no decoder: whatever passes it, the endpoint's decoder would leave as it is. */
import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Array, Exit, Schema } from "effect"
import { allChanges, searchable } from "../../../src/api/records/index.ts"
import { testOf } from "../../../src/http/PlainPayload.ts"
import { oneOf } from "../../support/arbitraries.ts"
import { endpoints as described, recordEndpoints } from "../../support/contract/Contract.ts"
import { anyJson, fieldsOf, nearlyValid, objectOf } from "../../support/requests.ts"
import { tries } from "../../support/tries.ts"

const all = [
  allChanges.endpoints.changes,
  ...searchable.flatMap(({ group: { endpoints } }) => [endpoints.search, endpoints.get, endpoints.changes])
]

/** Each endpoint with its test, its decoder as an HttpApi has it, and its fields as the contract words them. */
const endpoints = Array.map(all, ({ path, payload }) => {
  const [schema] = [...payload.values()].flatMap(({ schemas }) => schemas)
  const contract = [...described, ...recordEndpoints].find((each) => each.path === path)
  if (schema === undefined || contract === undefined) throw new Error(`${path} is not in the contract`)
  const codec = Schema.toCodecJson(Schema.make<Schema.Codec<unknown>>(schema.ast))
  const decode = Schema.decodeUnknownExit(codec, { onExcessProperty: "error" })
  return { path, isPlain: testOf({ payload, "~Payload": { Type: undefined } }), decode, contract }
})

const [first, ...others] = endpoints

const parsed = Schema.decodeUnknownExit(Schema.fromJsonString(Schema.Unknown))

const payloadOf = (endpoint: (typeof endpoints)[number]) =>
  Arbitrary.map(
    oneOf<string>(Arbitrary.map(fieldsOf(endpoint.contract), objectOf), nearlyValid(endpoint.contract), anyJson),
    (text) => ({ endpoint, text })
  )

if (first === undefined) throw new Error("There is no endpoint")
const payload = oneOf(payloadOf(first), ...others.map(payloadOf))

const values = {
  string: "a",
  integer: 7,
  boolean: true,
  "date-time": "2026-01-10T08:00:00Z",
  strings: ["pets"]
}

describe("a payload", () => {
  for (const { often, options } of tries({ few: 500, many: 6000, size: 20 }))
    it.prop(
      `that passes the test decodes to itself${often}`,
      [payload],
      ([{ endpoint, text }]) => {
        const value = parsed(text)
        if (Exit.isFailure(value) || !endpoint.isPlain(value.value)) return
        assert.deepStrictEqual(endpoint.decode(value.value), Exit.succeed(value.value), `${endpoint.path} ${text}`)
      },
      options
    )

  it.each(endpoints)("with any one field, or null in its place, passes the test: $path", ({ contract, isPlain }) => {
    const { least, request, required } = contract
    assert.isTrue(isPlain(least))
    for (const [name, type] of Object.entries(request)) {
      assert.isTrue(isPlain({ ...least, [name]: values[type] }), name)
      assert.strictEqual(isPlain({ ...least, [name]: null }), !required.includes(name), name)
    }
    assert.isTrue(isPlain(Object.fromEntries(Object.entries(request).map(([name, type]) => [name, values[type]]))))
  })

  it.each(["{}", '"a"', "null", "[]", "1"])(
    "with an unknown field does not pass it, whatever its name: %s",
    (value) => {
      for (const { contract, isPlain, path } of endpoints)
        for (const name of ["__proto__", "constructor", "toString", "more", ""]) {
          const given = parsed(`{"${name}":${value},${JSON.stringify(contract.least).slice(1)}`.replace(",}", "}"))
          assert.isFalse(Exit.isSuccess(given) && isPlain(given.value), `${path} ${name}`)
          assert.isTrue(Exit.isSuccess(given))
        }
    }
  )
})
