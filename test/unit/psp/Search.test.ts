/** The six live reads over HTTP: the rules of a request, and the answers. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, type Schema, Struct } from "effect"
import { type Fault, faults } from "../../../src/api/Faults.ts"
import { memory } from "../../../src/psp/PspClient.ts"
import { PspReads } from "../../../src/psp/PspReads.ts"
import * as Http from "../../support/inProcess.ts"
import { InProcess, organization, other } from "../../support/inProcess.ts"
import { kinds } from "../../support/stripe.ts"
import { accounts, harbor, oak, recorded } from "./fakes.ts"

const clinics = [
  { organization, clinic: "clinic_oak", account: oak },
  { organization, clinic: "clinic_none", account: null },
  { organization, clinic: "clinic_gone", account: "acct_gone" },
  { organization, clinic: "clinic_deep", account: "acct_deep" },
  { organization: other.organization, clinic: "clinic_harbor", account: harbor }
]

/** An object that is nested too deeply to be written as JSON, which Node 26 can however deeply. */
const deep: Schema.JsonObject = {
  get within(): Schema.Json {
    throw new RangeError("Maximum call stack size exceeded")
  }
}

const deeply = { acct_deep: { payments: [{ id: "pi_deep", object: "payment_intent", created: 1, deep }] } }

const { calls, layer: client } = recorded(memory({ ...accounts, ...deeply }).list)

const path = "/api/v3/psp-payments/search"

/** The answer to a search, and the calls to the processor that it took. Text is sent as it is. */
const ask = (given: object | string, sent: Http.Sent = {}) =>
  Effect.gen(function* () {
    calls.splice(0)
    const body = typeof given === "string" ? { raw: given } : { json: { clinic: "clinic_oak", ...given } }
    const answer = yield* Http.send({ path, ...body, ...sent })
    return { ...answer, calls: calls.map(Struct.omit(["at"])) }
  })

type Found = Effect.Success<ReturnType<typeof ask>>

const is = ({ status, text, calls: made }: Found, expected: number, body: unknown, count: number) =>
  Effect.map(Http.compact(body), (compact) =>
    assert.deepStrictEqual([status, text, made.length], [expected, compact, count])
  )

const newest = (kind: (typeof kinds)[number], account: string) =>
  (accounts[account]?.[kind] ?? []).toReversed().slice(0, 100)

/** A request of the clinic with one more field, as JSON. */
const withField = (name: string, value: string) => `{"clinic":"clinic_oak","${name}":${value}}`

const long = "9".repeat(400)

const limitTooSmall = "limit must be at least 1"
const unknownClinic = "The organization has no such clinic"
const noAccount = "The clinic has no connected payment processor account"

const negative = { type: "greater_than_equal", msg: "Input should be greater than or equal to 0" }
const tooGreat = { type: "less_than_equal", msg: "Input should be less than or equal to 9007199254740991" }

const is400 = (detail: string) => [400, { detail }] as const
const is422 = (...found: ReadonlyArray<readonly [field: string, fault: Fault]>) =>
  [422, Http.invalid(...found)] as const

/** Several faults, of which the first is answered. */
const faulty = { organization: other.organization, limit: 0, clinic: "" }

/** Requests that are refused, with all faults of a body in the order of its fields, and the number of calls before. */
const refused: ReadonlyArray<readonly [given: object | string, status: number, body: object, calls?: number]> = [
  ...["0", `-${long}`].map((limit) => [withField("limit", limit), ...is400(limitTooSmall)] as const),
  ...["", "\u00a0\u2003"].map((clinic) => [{ clinic }, ...is400("clinic cannot be blank")] as const),
  ...["clinic_unknown", "clinic_harbor", oak].map((clinic) => [{ clinic }, ...is400(unknownClinic)] as const),
  [{ clinic: "clinic_none" }, ...is400(noAccount)],
  [{ clinic: "clinic_none", created_gte: 6, created_lte: 5 }, ...is400(noAccount)],
  [{ clinic: "clinic_gone" }, ...is400(noAccount), 1],
  [{ starting_after: "pi_unknown" }, ...is400("starting_after is not the id of an object of the clinic's account"), 1],
  [{ ...faulty, offset: 0 }, ...is422(["offset", faults.extra])],
  [faulty, ...is400("organization does not match the organization of the API key")],
  [{ ...faulty, organization }, ...is400(limitTooSmall)],
  [withField("created_lte", "9007199254740992"), ...is422(["created_lte", tooGreat])],
  [withField("created_gte", long), ...is422(["created_gte", tooGreat])],
  [{ clinic: null }, ...is422(["clinic", faults.missing])],
  [{ starting_after: "a\u0000" }, ...is422(["starting_after", faults.stringUnicode])],
  [
    `{"offset":0,"created_lte":1.5,"created_gte":-1,"starting_after":5,"limit":true,"organization":1}`,
    ...is422(
      ["clinic", faults.missing],
      ["organization", faults.string],
      ["limit", faults.int],
      ["starting_after", faults.string],
      ["created_gte", negative],
      ["created_lte", faults.intFromFloat],
      ["offset", faults.extra]
    )
  ]
]

const nothing = { startingAfter: undefined, createdGte: undefined, createdLte: undefined }

const after = newest("payments", oak)[1]?.id

/** Requests that are 200, with the page that the processor is asked for. */
const pages: ReadonlyArray<readonly [given: object | string, page: object]> = [
  [{}, { limit: 100 }],
  [{ limit: 101 }, { limit: 100 }],
  [withField("limit", long), { limit: 100 }],
  [
    { created_gte: 0, created_lte: 0 },
    { limit: 100, createdGte: 0, createdLte: 0 }
  ],
  [
    { starting_after: after, limit: 1 },
    { limit: 1, startingAfter: after }
  ]
]

layer(InProcess.layer(Layer.merge(Http.layerDemo, PspReads.layerMemory(clinics, client))))("a live read", (it) => {
  it.effect.each(kinds)("of %s has the objects of the clinic's account, newest first, in compact JSON", (kind) =>
    Effect.gen(function* () {
      const answer = yield* ask({}, { path: `/api/v3/psp-${kind}/search` })
      yield* is(answer, 200, { data: newest(kind, oak), has_more: (accounts[oak]?.[kind] ?? []).length > 100 }, 1)
      assert.deepStrictEqual(answer.calls[0]?.kind, kind)
      assert.strictEqual(answer.headers["content-type"], "application/json")
    })
  )

  it.effect.each(pages)("with %j asks for the page %j: a limit over 100 is read as 100", ([given, page]) =>
    Effect.gen(function* () {
      const answer = yield* ask(given)
      assert.strictEqual(answer.status, 200, answer.text)
      assert.deepStrictEqual(answer.calls, [
        { kind: "payments", account: oak, page: { ...nothing, limit: 0, ...page } }
      ])
    })
  )

  it.effect("of a time has its first and its last second, and starts after any object of the account", () =>
    Effect.gen(function* () {
      const [newer, ...others] = newest("payments", oak)
      const second = others[10]?.created ?? 0
      const answer = yield* ask({ created_gte: second, created_lte: second, starting_after: newer?.id })
      yield* is(answer, 200, { data: others.filter(({ created }) => created === second), has_more: false }, 1)
    })
  )

  it.effect("from a later time to an earlier one is an empty page, without a call", () =>
    Effect.flatMap(ask({ created_gte: 6, created_lte: 5 }), (answer) =>
      is(answer, 200, { data: [], has_more: false }, 0)
    )
  )

  it.effect.each(refused)("of %j is %d", ([given, status, body, count = 0]) =>
    Effect.flatMap(ask(given), (answer) => is(answer, status, body, count))
  )

  it.effect("of objects that are nested too deeply is 503, as from a processor that is down", () =>
    Effect.gen(function* () {
      const { headers, json, status } = yield* ask({ clinic: "clinic_deep" })
      assert.deepStrictEqual([status, headers["x-error"], headers["retry-after"]], [503, "processor_down", "1"])
      assert.deepStrictEqual(json, { detail: "The payment processor failed or refused the read" })
    })
  )
})
