/**
 * Stripe's own client over a socket to a double of Stripe, which fails, or whose calls are interrupted; and the account of a
 * clinic, in the table of clinics and in the fake.
 */
import { createServer } from "node:net"
import { inspect } from "node:util"
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Option, Redacted } from "effect"
import type { PspKind } from "../../../src/api/Psp.ts"
import { type PageRequest, PspClient, type PspError, type PspFailed, stripe } from "../../../src/psp/PspClient.ts"
import { ClinicAccounts } from "../../../src/psp/PspReads.ts"
import { compact } from "../../support/inProcess.ts"
import { eventually } from "../../support/eventually.ts"
import * as Listening from "../../support/Listening.ts"
import { Recorded, textOf } from "../../support/Recorded.ts"
import * as Faults from "../../support/stripe.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { live } from "../../support/tries.ts"
import { asKnown } from "../records/stores.ts"

const { answer, kinds, paths, rateLimit, StripeDouble } = Faults

/** A key and an account of the processor. */
const [secretKey, oak] = ["sk_test_0123456789abcdefghijkl", "acct_1Oakridge"]

/** Any fields of an object of the processor. */
const odd: object = JSON.parse(`{
  "id": "ch_1", "amount": -0.1, "huge": 9007199254740991, "tiny": 1e-7, "none": null, "list": [[], {}, null, 0],
  "0": "a number for a name", "a b": {"\\u0000": "\\ud83d\\ude00 \\u2028 \\"q\\" </script>"},
  "__proto__": {"polluted": true}, "toString": 1, "object": "list", "has_more": false, "url": "/v1/x",
  "refunds": {"object": "list", "data": [{"id": "re_1", "error": {"message": "not one"}}], "has_more": true},
  "lastResponse": 1, "requestId": "mine", "error": null, "deleted": false
}`)

const data = [odd, { id: "ch_2" }, { id: "ch_3" }]

const layerStripe = Layer.unwrap(
  Effect.map(StripeDouble, ({ url }) =>
    PspClient.layerStripe({ secretKey: Redacted.make(secretKey), apiUrl: Option.some(url) })
  )
).pipe(Layer.provideMerge(StripeDouble.layer(secretKey, data)))

const list = (kind: PspKind, account: string, page: PageRequest) =>
  Effect.flatMap(PspClient, (client) => client.list(kind, account, page))

const charges = list("charges", oak, { limit: 3 })

const mebibyte = 1024 * 1024
const type = "invalid_request_error"
const page = `{"object":"list","data":[{"id":"ch_1"}],"has_more":false,"url":"/v1/charges"}`

const strangeBodies = ["", "null", "{} {}", '{"data":[1],"has_more":false}', '{"data":[],"has_more":"false"}']

/** The tag of a failure, or who is to blame. */
type Expected = Exclude<PspError["_tag"], "PspFailed"> | PspFailed["blame"]

/** The errors of failures. */
const failures: ReadonlyArray<readonly [name: string, fault: Faults.Fault, expected: Expected, reason?: string]> = [
  ["an error on its side", Faults.internal, "unclear", "StripeAPIError 500"],
  ["a page for people", Faults.html(200), "unclear"],
  ["a page for people with 429", Faults.html(429), "unclear"],
  ["a redirect", answer(302, "", { location: "/v1/charges?limit=1" }), "psp"],
  ["a body cut short", Faults.cutShort, "unclear"],
  ["a connection that breaks", Faults.reset, "psp", "StripeConnectionError ECONNRESET"],
  ["a connection that breaks in the body", Faults.resetInBody, "psp"],
  ["a list with the status of an error", answer(500, page), "unclear"],
  ["no content", answer(204, ""), "unclear"],
  ...strangeBodies.map((body) => [`the body ${body}`, answer(200, body), "unclear"] as const),
  ...["api_key_expired", "platform_api_key_expired", "secret_key_required"].map(
    (code) => [`the key: ${code}`, Faults.error(401, { type, code }), "psp"] as const
  ),
  ["an unknown key", Faults.unknownKey, "psp"],
  ["401 without a code", Faults.error(401, { type }), "unauthorized"],
  ["401 with a code not of the key", Faults.error(401, { type, code: "account_closed" }), "unauthorized"],
  ["a parameter", Faults.error(400, { type, param: "created[gte]" }), "request"],
  ["402", Faults.error(402, { type: "card_error", code: "card_declined" }), "account"],
  ...[403, 404, 499].map(
    (status) => [String(status), Faults.error(status, { type, code: "resource_missing" }), "account"] as const
  ),
  [
    "a permission that our key lacks",
    Faults.lacksPermission,
    "permission",
    "StripePermissionError 403 rak_payout_read"
  ],
  ["an account without access", Faults.error(403, { type, code: "account_invalid" }), "AccountDisconnected"],
  [
    "an unknown cursor",
    Faults.error(404, { type, code: "resource_missing", param: "starting_after" }),
    "CursorUnknown"
  ],
  ["a malformed cursor", Faults.error(400, { type, param: "starting_after" }), "CursorUnknown"],
  ["a rate limit", rateLimit("7"), "RateLimited"],
  ["a body of more than 32 MiB", Faults.large(32 * mebibyte + 1), "request", "body too large"],
  ...[`x\n${Faults.processorText}`, oak, "A"].map(
    (code) =>
      [`a code that is none: ${code}`, Faults.error(500, { type, code }), "unclear", "StripeAPIError 500"] as const
  )
]

/** Waits until so many requests are in flight, and sockets of given up ones are closed. */
const inFlight = (count: number) =>
  Effect.flatMap(StripeDouble, ({ underWay }) =>
    eventually(`${count} requests in flight`, underWay, (found) => found === count)
  )

const recorded = Layer.provideMerge(Recorded.recording, Recorded.layer)

layer(layerStripe, live)("PspClient.layerStripe", (it) => {
  it.effect.each(kinds)("requests %s of an account by their path, with what the page has", (kind) =>
    Effect.gen(function* () {
      const { seen } = yield* StripeDouble
      yield* seen
      const cursor = "ch_\u{1F436}&limit=1#%00\r\n"
      yield* list(kind, oak, { limit: 7, startingAfter: cursor, createdGte: 0, createdLte: 2 })
      yield* list(kind, oak, { limit: 100 })
      const common = { path: paths[kind], account: oak, authorization: `Bearer ${secretKey}` }
      const asked = { limit: "7", starting_after: cursor, "created[gte]": "0", "created[lte]": "2" }
      const expected = [asked, { limit: "100" }].map((query) => ({ ...common, query }))
      assert.deepStrictEqual(yield* seen, expected)
    })
  )

  it.effect("passes objects on as they are, and knows no cursor that is longer than an id", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* compact(yield* charges), yield* compact({ data, hasMore: true }))
      const unknown = yield* Effect.flip(list("charges", oak, { limit: 1, startingAfter: "c".repeat(100_000) }))
      assert.strictEqual(unknown._tag, "CursorUnknown")
    })
  )

  it.effect.each(failures)("sends once, and passes on no text of the processor: %s", ([, fault, expected, reason]) =>
    Effect.gen(function* () {
      const double = yield* StripeDouble
      const { logs, spans } = yield* Recorded
      yield* double.seen
      yield* double.fail(fault)
      const failure = yield* Effect.flip(charges)
      assert.strictEqual(failure._tag === "PspFailed" ? failure.blame : failure._tag, expected)
      assert.isNotEmpty(spans)
      if (reason !== undefined) assert.include("reason" in failure ? failure.reason : "", reason)
      assert.lengthOf(yield* double.seen, 1)
      const shown = [inspect(failure), ...logs, ...spans.map(textOf)].join("\n")
      for (const secret of [secretKey, secretKey.slice(-8), oak, Faults.processorText]) assert.notInclude(shown, secret)
      yield* inFlight(0)
      assert.lengthOf((yield* charges).data, 3)
    }).pipe(Effect.provide(recorded))
  )

  it.effect("fails where no connection is made within three seconds, as without a network", () =>
    Effect.gen(function* () {
      const { port } = yield* Listening.on(createServer())
      const apiUrl = Option.some(new URL(`https://127.0.0.1:${port}`))
      const client = yield* stripe({ secretKey: Redacted.make(secretKey), apiUrl })
      const failure = yield* Effect.timeout(Effect.flip(client.list("charges", oak, { limit: 3 })), "6 seconds")
      assert.deepInclude(failure, { blame: "psp", reason: "StripeConnectionError UND_ERR_CONNECT_TIMEOUT" })
    })
  )

  it.effect.each<readonly [fault: Faults.Fault, seconds: number]>([
    [rateLimit(), 1],
    [rateLimit("0.5"), 0.5],
    [rateLimit("-5"), 1],
    [rateLimit("Wed, 21 Oct 2026 07:28:05 GMT", { date: "Wed, 21 Oct 2026 07:28:00 GMT" }), 5],
    [Faults.error(400, { type, code: "rate_limit" }), 1],
    [Faults.error(503, { type: "api_error" }, { "retry-after": "7" }), 7]
  ])("passes on the time to wait: $1 s", ([fault, seconds]) =>
    Effect.gen(function* () {
      yield* (yield* StripeDouble).fail(fault)
      const failure = yield* Effect.flip(charges)
      assert.deepStrictEqual("retryAfter" in failure ? failure.retryAfter : undefined, Duration.seconds(seconds))
    })
  )

  it.effect("closes the socket of an interrupted call, and no other, whenever that is", () =>
    Effect.gen(function* () {
      const double = yield* StripeDouble
      yield* double.fail(Faults.hang, Faults.hangInBody)
      const calls = yield* Effect.forEach([1, 2], () => Effect.forkChild(charges))
      yield* inFlight(2)
      for (const [index, call] of calls.entries()) {
        yield* charges
        yield* Fiber.interrupt(call)
        yield* inFlight(calls.length - index - 1)
      }
    })
  )
})

const clinics = [
  { organization: "org_a", clinic: "clinic_1", account: "acct_a" },
  { organization: "org_a", clinic: "clinic_2", account: null },
  { organization: "org_a", clinic: "Clinic_1", account: "acct_of_another_case" },
  { organization: "org_b", clinic: "clinic_1", account: "acct_b" },
  { organization: "org_b", clinic: "clinic_3", account: "acct_b3" }
]

const filled = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  for (const { account: processor_account, clinic: id, organization } of clinics)
    yield* sql`insert into clinics ${sql.insert({ organization_id: organization, id, organization, processor_account })}`
})

const find = (organization: string, clinic: string) =>
  asKnown(organization)(Effect.flatMap(ClinicAccounts, (found) => found.find(clinic)))

layer(Layer.provideMerge(Layer.effectDiscard(filled), TestDatabase.layerDatabases), live)("ClinicAccounts", (it) => {
  it.effect.each([
    ["in memory", ClinicAccounts.layerMemory(clinics)],
    ["in the table", ClinicAccounts.layer]
  ] as const)("finds the account of an organization's clinic %s, by its exact id", ([, store]) =>
    Effect.gen(function* () {
      for (const { account, clinic, organization } of clinics)
        assert.strictEqual(yield* find(organization, clinic), account)
      for (const clinic of ["clinic_3", "CLINIC_1", "clinic_1 "]) assert.isUndefined(yield* find("org_a", clinic))
    }).pipe(Effect.provide(store))
  )
})
