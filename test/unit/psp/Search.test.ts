/** The six live reads over HTTP: every rule of a request, and what is answered. Contract: section 4.1. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema, Struct } from "effect"
import { PspClient } from "../../../src/psp/PspClient.ts"
import { faults } from "../../../src/api/Faults.ts"
import * as Http from "../../http/inProcess.ts"
import { InProcess, organization, other, processorPaths } from "../../http/inProcess.ts"
import { kinds } from "../../support/stripe/rules.ts"
import { accounts, harbor, oak, thousand } from "../../support/stripe/accounts.ts"
import { recorded } from "./fakes.ts"

const clinics = [
  { organization, clinic: "clinic_oak", account: oak },
  { organization, clinic: "clinic_shared", account: oak },
  { organization, clinic: "clinic_none", account: null },
  { organization, clinic: "clinic_empty", account: "" },
  { organization, clinic: "clinic_blank", account: " " },
  { organization, clinic: "clinic_gone", account: "acct_gone" },
  { organization: other.organization, clinic: "clinic_harbor", account: harbor },
  { organization: other.organization, clinic: "clinic_shared", account: harbor }
]

const { calls, layer: client } = recorded(accounts)
const services = Layer.merge(Http.layerDemo, Http.layerPsp(client, clinics))

const [path = ""] = processorPaths

const decodePage = Schema.decodeUnknownEffect(
  Schema.Struct({ data: Schema.Array(Schema.Struct({ id: Schema.String })), has_more: Schema.Boolean })
)

/** The answer to a request, and the calls to the processor that it took. */
const ask = (json: object, sent: Http.Sent = {}) =>
  Effect.gen(function* () {
    calls.splice(0)
    const answer = yield* Http.send({ path, json: { clinic: "clinic_oak", ...json }, ...sent })
    return { ...answer, calls: calls.map(Struct.omit(["at"])) }
  })

type Asked = Effect.Success<ReturnType<typeof ask>>

const is = ({ status, text, calls: made }: Asked, expected: number, body: unknown, count: number) =>
  Effect.gen(function* () {
    assert.strictEqual(status, expected)
    assert.strictEqual(text, yield* Http.compact(body))
    assert.strictEqual(made.length, count)
  })

/** Is refused without a call. */
const refused = (answer: Asked, detail: string) => is(answer, 400, { detail }, 0)

const invalid = (answer: Asked, ...found: ReadonlyArray<readonly [field: string, type: string, msg: string]>) =>
  is(answer, 422, { detail: found.map(([field, type, msg]) => ({ loc: ["body", field], msg, type })) }, 0)

const newest = (kind: (typeof kinds)[number], account: string, count = 100) =>
  (accounts[account]?.[kind] ?? []).toReversed().slice(0, count)

const extra = [faults.extra.type, faults.extra.msg] as const
const missing = ["clinic", "missing", "Field required"] as const
const notString = ["string_type", "Input should be a valid string"] as const
const notInteger = ["int_type", "Input should be a valid integer"] as const
const fraction = ["int_from_float", "Input should be a valid integer, got a number with a fractional part"] as const
const negative = ["greater_than_equal", "Input should be greater than or equal to 0"] as const
const tooGreat = ["less_than_equal", "Input should be less than or equal to 9007199254740991"] as const
const notUnicode = [faults.stringUnicode.type, faults.stringUnicode.msg] as const

const unknownClinic = "The organization has no such clinic"
const noAccount = "The clinic has no connected payment processor account"
const noOrganization = "organization does not match the organization of the API key"
const noCursor = "starting_after is not the id of an object of the clinic's account"

layer(InProcess.layer(services))("a live read", (it) => {
  it.effect.each(kinds)("of %s answers the objects of the clinic's account, newest first, in compact JSON", (kind) =>
    Effect.gen(function* () {
      const answer = yield* ask({}, { path: `/api/v3/psp-${kind}/search` })
      const has_more = newest(kind, oak, 101).length > 100
      yield* is(answer, 200, { data: newest(kind, oak), has_more }, 1)
      assert.deepStrictEqual(answer.calls[0]?.kind, kind)
      assert.strictEqual(answer.headers["content-type"], "application/json")
      assert.match(answer.headers["x-request-id"] ?? "", /^[\x21-\x7e]{1,128}$/)
    })
  )

  it.effect.each(processorPaths)("at %s needs a key, and is a POST", (at) =>
    Effect.gen(function* () {
      const headers = { authorization: undefined }
      assert.strictEqual((yield* ask({}, { path: at, headers })).status, 401)
      const got = yield* ask({}, { path: at, method: "GET" })
      assert.deepStrictEqual([got.status, got.headers["allow"]], [405, "POST"])
    })
  )

  it.effect("walks through a thousand objects by starting_after in both bounds, each once, in order", () =>
    Effect.gen(function* () {
      const ids: Array<string> = []
      const bounds = { created_gte: thousand.createdGte, created_lte: thousand.createdLte, limit: 99 }
      for (let hasMore = true; hasMore;) {
        const { json } = yield* ask(
          { ...bounds, starting_after: ids.at(-1) },
          { path: "/api/v3/psp-balance-transactions/search" }
        )
        const { data, has_more } = yield* decodePage(json)
        ids.push(...data.map(({ id }) => id))
        hasMore = has_more
      }
      assert.deepStrictEqual(ids, thousand.ids)
    })
  )

  it.effect("takes null for whatever may be left out", () =>
    Effect.gen(function* () {
      const nulls = { organization: null, limit: null, starting_after: null, created_gte: null, created_lte: null }
      const { calls: made } = yield* ask(nulls)
      const nothing = { startingAfter: undefined, createdGte: undefined, createdLte: undefined }
      assert.deepStrictEqual(made, [{ kind: "payments", account: oak, page: { limit: 100, ...nothing } }])
    })
  )

  it.effect.each([
    [1, 1],
    [100, 100],
    [101, 100],
    [1e20, 100],
    [undefined, 100]
  ])("with the limit %s asks for %d objects", ([limit, expected]) =>
    Effect.gen(function* () {
      const answer = yield* ask(limit === undefined ? {} : { limit })
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(answer.calls[0]?.page.limit, expected)
    })
  )

  it.effect.each(["0", "-1", "-0", `-${"9".repeat(400)}`])("with the limit %s is refused with 400", (limit) =>
    Effect.gen(function* () {
      yield* refused(yield* ask({}, { raw: `{"clinic":"clinic_oak","limit":${limit}}` }), "limit must be at least 1")
    })
  )

  it.effect("with a limit too long for a number is read as 100", () =>
    Effect.gen(function* () {
      const answer = yield* ask({}, { raw: `{"clinic":"clinic_oak","limit":${"9".repeat(400)}}` })
      assert.deepStrictEqual([answer.status, answer.calls[0]?.page.limit], [200, 100])
    })
  )

  it.effect.each(["", " ", "\t\r\n", "\u00a0\u2003"])("of a clinic that is blank is refused with 400: '%s'", (clinic) =>
    Effect.gen(function* () {
      yield* refused(yield* ask({ clinic }), "clinic cannot be blank")
    })
  )

  it.effect("without a clinic, or with null, is refused with 422", () =>
    Effect.gen(function* () {
      yield* invalid(yield* ask({}, { json: {} }), missing)
      yield* invalid(yield* ask({ clinic: null }), missing)
    })
  )

  it.effect.each(["clinic_unknown", "clinic_harbor", "clinic_oak ", "CLINIC_OAK", oak, "%"])(
    "of a clinic that the organization does not have says so with 400, and not whether another has it: %s",
    (clinic) => Effect.flatMap(ask({ clinic }), (answer) => refused(answer, unknownClinic))
  )

  it.effect("of a clinic whose id two organizations have shows each its own", () =>
    Effect.gen(function* () {
      const mine = yield* ask({ clinic: "clinic_shared" })
      yield* is(mine, 200, { data: newest("payments", oak), has_more: false }, 1)
      const headers = { authorization: `Bearer ${other.key}` }
      const theirs = yield* ask({ clinic: "clinic_shared" }, { headers })
      yield* is(theirs, 200, { data: newest("payments", harbor), has_more: false }, 1)
    })
  )

  it.effect.each(["clinic_none", "clinic_empty", "clinic_blank"])(
    "of a clinic without an account says so with 400, and never reads the key's own: %s",
    (clinic) => Effect.flatMap(ask({ clinic }), (answer) => refused(answer, noAccount))
  )

  it.effect("of a clinic whose account was disconnected is refused just as one without", () =>
    Effect.gen(function* () {
      yield* is(yield* ask({ clinic: "clinic_gone" }), 400, { detail: noAccount }, 1)
    })
  )

  it.effect.each([
    ["unknown", "pi_unknown"],
    ["another account's", newest("payments", harbor)[0]?.id],
    ["another kind's", newest("charges", oak)[0]?.id],
    ["empty", ""]
  ])("that starts after an id that is %s is refused with 400", ([, starting_after]) =>
    Effect.gen(function* () {
      yield* is(yield* ask({ starting_after }), 400, { detail: noCursor }, 1)
    })
  )

  it.effect("from a later time to an earlier one is an empty page, without a call", () =>
    Effect.gen(function* () {
      const nothing = { data: [], has_more: false }
      yield* is(yield* ask({ created_gte: 6, created_lte: 5 }), 200, nothing, 0)
      yield* is(yield* ask({ created_gte: 5, created_lte: 5 }), 200, nothing, 1)
      yield* refused(yield* ask({ clinic: "clinic_none", created_gte: 6, created_lte: 5 }), noAccount)
    })
  )

  it.effect.each(["created_gte", "created_lte"])("takes %s from 0 to 2^53-1", (field) =>
    Effect.gen(function* () {
      for (const value of [0, Number.MAX_SAFE_INTEGER]) {
        const answer = yield* ask({ [field]: value })
        assert.strictEqual(answer.status, 200)
        const { createdGte, createdLte } = answer.calls[0]?.page ?? {}
        assert.deepStrictEqual(
          [createdGte, createdLte],
          field === "created_gte" ? [value, undefined] : [undefined, value]
        )
      }
    })
  )

  it.effect.each([
    ["created_gte", "-1", negative],
    ["created_lte", "9007199254740992", tooGreat],
    ["created_gte", "9".repeat(400), tooGreat],
    ["created_lte", `-${"9".repeat(400)}`, negative],
    ["created_gte", "1.5", fraction],
    ["created_lte", '"1767600000"', notInteger],
    ["created_gte", '"2026-01-31T09:30:00Z"', notInteger],
    ["limit", '"100"', notInteger],
    ["limit", "1.5", fraction],
    ["starting_after", "5", notString],
    ["starting_after", '"a\\u0000"', notUnicode],
    ["organization", "[]", notString],
    ["offset", "0", extra],
    ["startingAfter", '"pi_1"', extra],
    ["account", `"${harbor}"`, extra],
    ["ending_before", '"pi_1"', extra],
    ["expand", "[]", extra]
  ] as const)("with %s: %s is refused with 422", ([field, value, [type, msg]]) =>
    Effect.gen(function* () {
      const answer = yield* ask({}, { raw: `{"clinic":"clinic_oak","${field}":${value}}` })
      yield* invalid(answer, [field, type, msg])
    })
  )

  it.effect("names every fault of a body at once, in the order of its fields, unknown fields last", () =>
    Effect.gen(function* () {
      const wrong = { created_lte: 1.5, created_gte: -1, starting_after: 5, limit: true, organization: 1 }
      yield* invalid(
        yield* ask({}, { json: { offset: 0, ...wrong } }),
        missing,
        ["organization", ...notString],
        ["limit", ...notInteger],
        ["starting_after", ...notString],
        ["created_gte", ...negative],
        ["created_lte", ...fraction],
        ["offset", ...extra]
      )
    })
  )

  it.effect("checks key, body, organization, limit and clinic in this order, each before the next", () =>
    Effect.gen(function* () {
      const wrong = { organization: other.organization, limit: 0, clinic: "", offset: 0 }
      assert.strictEqual((yield* ask(wrong, { headers: { authorization: undefined } })).status, 401)
      yield* invalid(yield* ask(wrong), ["offset", ...extra])
      const { offset: _, ...body } = wrong
      yield* refused(yield* ask(body), noOrganization)
      yield* refused(yield* ask({ ...body, organization }), "limit must be at least 1")
      yield* refused(yield* ask({ ...body, organization, limit: 1 }), "clinic cannot be blank")
      const clinic = "clinic_unknown"
      yield* refused(yield* ask({ organization, clinic, starting_after: "x" }), unknownClinic)
    })
  )

  it.effect.each([other.organization, "", " "])("for another organization than the key's is 400: '%s'", (given) =>
    Effect.flatMap(ask({ organization: given }), (answer) => refused(answer, noOrganization))
  )
})

layer(InProcess.layer(Layer.merge(Http.layerDemo, Http.layerPsp(PspClient.layerNotConfigured, clinics))))(
  "a live read without a processor",
  (it) => {
    it.effect.each(processorPaths)("says so with 503 at %s", (at) =>
      Effect.gen(function* () {
        const answer = yield* ask({}, { path: at })
        yield* is(answer, 503, { detail: "The payment processor is not configured" }, 0)
        assert.strictEqual(answer.headers["retry-after"], "1")
      })
    )

    it.effect("still refuses what is wrong with the request", () =>
      Effect.gen(function* () {
        yield* refused(yield* ask({ clinic: "clinic_unknown" }), unknownClinic)
        yield* refused(yield* ask({ clinic: "clinic_none" }), noAccount)
      })
    )
  }
)
