/**
 * The rules of every processor client: the fake in memory, and Stripe's own client over a socket to a double of Stripe, which
 * fails, or whose calls are interrupted; and the account of a clinic, in the table of clinics and in the fake.
 */
import { inspect } from "node:util"
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Option, Predicate, Redacted } from "effect"
import type { PspKind } from "../../../src/api/Psp.ts"
import { type PageRequest, PspClient, type PspError, type PspFailed } from "../../../src/psp/PspClient.ts"
import { CurrentOrganization } from "../../../src/api/Authorization.ts"
import { RecordDatabase } from "../../../src/database/Database.ts"
import { ClinicAccounts } from "../../../src/psp/PspReads.ts"
import { compact } from "../../support/inProcess.ts"
import { eventually } from "../../support/eventually.ts"
import { Recorded, textOf } from "../../support/Recorded.ts"
import * as Faults from "../../support/stripe/faults.ts"
import { StripeDouble } from "../../support/StripeDouble.ts"
import { kinds } from "../../support/stripe/rules.ts"
import { accounts, empty, harbor, oak, platform, secretKey, thousand } from "../../support/stripe/accounts.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const layerStripe = Layer.unwrap(
  Effect.map(StripeDouble, ({ url }) =>
    PspClient.layerStripe({ secretKey: Redacted.make(secretKey), apiUrl: Option.some(url) })
  )
).pipe(Layer.provideMerge(StripeDouble.layer({ key: secretKey, accounts, platform })))

const list = (kind: PspKind, account: string, page: PageRequest) =>
  Effect.flatMap(PspClient, (client) => client.list(kind, account, page))

const idsOf = (data: ReadonlyArray<unknown>) =>
  data.map((object) => (Predicate.hasProperty(object, "id") ? String(object.id) : undefined))

/** The ids of all pages, each starting after the last object of the one before. */
const walk = Effect.fnUntraced(function* (kind: PspKind, account: string, page: PageRequest) {
  const ids: Array<string | undefined> = []
  let hasMore = true
  while (hasMore) {
    const startingAfter = ids.at(-1)
    const found = yield* list(kind, account, { ...page, startingAfter })
    assert.isAtMost(found.data.length, page.limit)
    // A page that says there are more is full.
    if (found.hasMore) assert.strictEqual(found.data.length, page.limit)
    ids.push(...idsOf(found.data))
    hasMore = found.hasMore
  }
  return ids
})

const made = (kind: PspKind, account: string) => accounts[account]?.[kind] ?? []

const live = { excludeTestServices: true }

for (const [name, client] of Object.entries({ layerMemory: PspClient.layerMemory(accounts), layerStripe })) {
  layer<PspClient, unknown>(client, live)(`PspClient.${name}`, (it) => {
    // Each second has eight of them.
    it.effect.each([7, 8, 100])("walks through a thousand objects in pages of %d, each once, in order", (limit) =>
      Effect.gen(function* () {
        const { ids, ...bounds } = thousand
        assert.strictEqual(ids.length, 1000)
        assert.deepStrictEqual(yield* walk("balance-transactions", oak, { limit, ...bounds }), ids)
      })
    )

    it.effect.each(kinds)("shows each account its own %s alone, as they are, also when all are read at once", (kind) =>
      Effect.gen(function* () {
        const owners = [oak, harbor, empty, platform, oak, harbor]
        const pages = yield* Effect.forEach(owners, (account) => list(kind, account, { limit: 100 }), {
          concurrency: "unbounded"
        })
        const expected = owners.map((account) => made(kind, account).slice(-100).toReversed())
        // Unknown fields, odd names and values, and their order are passed on.
        assert.strictEqual(yield* compact(pages.map(({ data }) => data)), yield* compact(expected))
      })
    )

    it.effect("takes each bound of time to be inclusive, also alone", () =>
      Effect.gen(function* () {
        const { createdGte, createdLte, ids } = thousand
        const until = yield* list("balance-transactions", oak, { limit: 1, createdLte })
        assert.deepStrictEqual(idsOf(until.data), ids.slice(0, 1))
        const since = yield* walk("balance-transactions", oak, { limit: 100, createdGte })
        assert.strictEqual(since.at(-1), ids.at(-1))
      })
    )

    it.effect("finds the object to start after among all of the account, whatever the bounds", () =>
      Effect.gen(function* () {
        const { ids, ...bounds } = thousand
        const newer = made("balance-transactions", oak).at(-1)?.id
        const older = made("balance-transactions", oak)[0]?.id
        const page = { limit: 2, ...bounds }
        const afterNewer = yield* list("balance-transactions", oak, { ...page, startingAfter: newer })
        assert.deepStrictEqual([idsOf(afterNewer.data), afterNewer.hasMore], [ids.slice(0, 2), true])
        const afterOlder = yield* list("balance-transactions", oak, { ...page, startingAfter: older })
        assert.deepStrictEqual(afterOlder, { data: [], hasMore: false })
      })
    )

    it.effect("has no more when the page holds the last object and is full, or is empty", () =>
      Effect.gen(function* () {
        assert.isFalse((yield* list("charges", oak, { limit: 20 })).hasMore)
        assert.isTrue((yield* list("charges", oak, { limit: 19 })).hasMore)
        const nothing = { data: [], hasMore: false }
        assert.deepStrictEqual(yield* list("charges", empty, { limit: 10 }), nothing)
        assert.deepStrictEqual(yield* list("charges", oak, { limit: 10, createdGte: Number.MAX_SAFE_INTEGER }), nothing)
        const last = made("charges", oak)[0]?.id
        assert.deepStrictEqual(yield* list("charges", oak, { limit: 10, startingAfter: last }), nothing)
      })
    )

    it.effect.each([
      ["of another account", made("charges", harbor)[0]?.id],
      ["of another kind", made("refunds", oak)[0]?.id],
      ["empty", ""],
      ["of odd characters", "ch_\u{1F436}&limit=1#%00\r\n"],
      ["longer than any address can be", "c".repeat(100_000)]
    ])("knows no object to start after that is %s", ([, startingAfter]) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(list("charges", oak, { limit: 10, startingAfter }))
        assert.strictEqual(error._tag, "CursorUnknown")
      })
    )

    it.effect.each(["acct_unknown", "__proto__"])("knows no account %s", (account) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(list("charges", account, { limit: 10 }))
        assert.strictEqual(error._tag, "AccountDisconnected")
      })
    )
  })
}

const charges = list("charges", oak, { limit: 3 })

const { answer, rateLimit } = Faults

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
  it.effect.each(failures)(
    "sends one request, and passes on none of the processor's text, on %s",
    ([, fault, expected, reason]) =>
      Effect.gen(function* () {
        const double = yield* StripeDouble
        const { logs, spans } = yield* Recorded
        yield* double.seen
        yield* double.fail(fault)
        const failure = yield* Effect.flip(charges)
        assert.strictEqual(failure._tag === "PspFailed" ? failure.blame : failure._tag, expected)
        assert.isNotEmpty(spans)
        if (reason !== undefined) assert.include("reason" in failure ? failure.reason : "", reason)
        const seen = (yield* double.seen).map(({ account, authorization }) => [account, authorization])
        assert.deepStrictEqual(seen, [[oak, `Bearer ${secretKey}`]])
        const shown = [inspect(failure), ...logs, ...spans.map(textOf)].join("\n")
        for (const secret of [secretKey, secretKey.slice(-8), oak, Faults.processorText])
          assert.notInclude(shown, secret)
        yield* inFlight(0)
        assert.lengthOf((yield* charges).data, 3)
      }).pipe(Effect.provide(recorded))
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

const filled = Layer.effectDiscard(
  Effect.flatMap(RecordDatabase, (sql) =>
    Effect.forEach(clinics, ({ organization, clinic: id, account: processor_account }) => {
      return sql`insert into clinics ${sql.insert({ organization_id: organization, id, organization, processor_account })}`
    })
  )
)

const layerPostgres = ClinicAccounts.layer.pipe(Layer.provideMerge(filled), Layer.provide(TestDatabase.layerDatabases))

const find = (organization: string, clinic: string) =>
  Effect.flatMap(ClinicAccounts, (found) => found.find(clinic)).pipe(
    Effect.provideService(CurrentOrganization, CurrentOrganization.of({ id: organization }))
  )

const stores = { layerMemory: ClinicAccounts.layerMemory(clinics), layer: layerPostgres }

for (const [name, store] of Object.entries(stores)) {
  layer<ClinicAccounts, unknown>(store, live)(`ClinicAccounts.${name}`, (it) => {
    it.effect("finds the account of an organization's clinic, by its exact id", () =>
      Effect.gen(function* () {
        for (const { account, clinic, organization } of clinics)
          assert.strictEqual(yield* find(organization, clinic), account)
        for (const clinic of ["clinic_3", "CLINIC_1", "clinic_1 "]) assert.isUndefined(yield* find("org_a", clinic))
      })
    )
  })
}
