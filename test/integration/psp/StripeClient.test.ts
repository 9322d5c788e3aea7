/** Stripe's client with a Stripe that fails, and calls that are given up. */
import { inspect } from "node:util"
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Option, Redacted } from "effect"
import { PspClient } from "../../../src/psp/PspClient.ts"
import type { PspError } from "../../../src/psp/PspPage.ts"
import { eventually } from "../../support/eventually.ts"
import { Recorded } from "../../support/Recorded.ts"
import { StripeDouble } from "../../support/StripeDouble.ts"
import * as Faults from "../../support/stripe/faults.ts"
import { long } from "../../support/tries.ts"
import { accounts, oak, platform, secretKey } from "../../support/stripe/accounts.ts"

const rules = { key: secretKey, accounts, platform }

const layerWith = (key: string) =>
  Layer.unwrap(
    Effect.map(StripeDouble, ({ url }) =>
      PspClient.layerStripe({ secretKey: Redacted.make(key), apiUrl: Option.some(url) })
    )
  )

const list = (limit = 3) => Effect.flatMap(PspClient, (client) => client.list("charges", oak, { limit }))

const page = `{"object":"list","data":[{"id":"ch_1"}],"has_more":false,"url":"/v1/charges"}`

const erred: ReadonlyArray<readonly [name: string, fault: Faults.Fault]> = [
  ["an error on its side", Faults.internal],
  ["an error of a status that it does not have", Faults.error(599, { type: "api_error" })],
  ["a page for people", Faults.html(200)],
  ["a page for people that asks for patience", Faults.html(429)],
  ["a page for people of something in between", Faults.html(502)],
  ["a redirection", Faults.answer(302, "", { location: "/v1/charges?limit=1" })],
  ["a body cut short", Faults.cutShort],
  ["a body shorter than it said", Faults.truncated],
  ["a connection that breaks", Faults.reset],
  ["a connection that breaks in the body", Faults.resetInBody],
  ["a list with the status of an error", Faults.answer(500, page)],
  ...[
    "",
    "null",
    "[]",
    "5",
    "true",
    ' "text"',
    "{}",
    "{} {}",
    '{"data":null,"has_more":false}',
    '{"data":{},"has_more":false}'
  ].map((body) => [`the body ${body}`, Faults.answer(200, body)] as const),
  ...['{"data":[]}', '{"data":[],"has_more":"false"}', '{"data":[1],"has_more":false}', '{"error":true}'].map(
    (body) => [`the body ${body}`, Faults.answer(200, body)] as const
  ),
  ["a notice, which the client would print", Faults.answer(500, "{}", { "stripe-notice": Faults.processorText })],
  ["no body at all", Faults.answer(204, "")],
  ["items that are null", Faults.answer(200, '{"data":[null],"has_more":false}')],
  ["items that are lists", Faults.answer(200, '{"data":[[]],"has_more":false}')]
]

const keyRefused: typeof erred = [
  ["our key being refused", Faults.error(401, { type: "invalid_request_error", code: "api_key_expired" })],
  ["our key being unknown", Faults.unknownKey],
  ["the key of the platform being too old", Faults.error(401, { type: "x", code: "platform_api_key_expired" })]
]

const refused: typeof erred = [
  ["a parameter", Faults.error(400, { type: "invalid_request_error", param: "created[gte]" })]
]

const ofTheAccount: typeof erred = [
  ["wants a payment", Faults.error(402, { type: "card_error", code: "card_declined" })],
  ["is not allowed to", Faults.error(403, { type: "invalid_request_error" })],
  ["has nothing at the address", Faults.error(404, { type: "invalid_request_error", code: "resource_missing" })],
  ["has a conflict", Faults.conflict],
  ["is closed for good", Faults.error(410, { type: "invalid_request_error" })],
  ["is locked", Faults.error(423, { type: "invalid_request_error" })]
]

const unauthorized: typeof erred = [
  ["without a code", Faults.error(401, { type: "invalid_request_error" })],
  ["with a code that is not the key's", Faults.error(401, { type: "invalid_request_error", code: "account_closed" })]
]

const mebibyte = 1024 * 1024

const cursor: typeof erred = [
  ["missing", Faults.error(404, { type: "invalid_request_error", code: "resource_missing", param: "starting_after" })],
  ["malformed", Faults.error(400, { type: "invalid_request_error", param: "starting_after" })]
]

const limited: ReadonlyArray<readonly [name: string, fault: Faults.Fault, seconds: number]> = [
  ["without a time", Faults.rateLimit(), 1],
  ["for 7 seconds", Faults.rateLimit("7"), 7],
  ["for half a second", Faults.rateLimit("0.5"), 0.5],
  ["for no time", Faults.rateLimit("0"), 1],
  ["for a negative time", Faults.rateLimit("-5"), 1],
  ["until a date", Faults.rateLimit("Wed, 21 Oct 2026 07:28:00 GMT"), 1],
  ["with another status", Faults.error(400, { type: "invalid_request_error", code: "rate_limit" }), 1]
]

/** The error of a fault: after exactly one request, and without a word of the processor. */
const errorOf = (fault: Faults.Fault) =>
  Effect.gen(function* () {
    const double = yield* StripeDouble
    yield* double.seen
    yield* double.fail(fault)
    const error = yield* Effect.flip(list())
    assert.strictEqual((yield* double.seen).length, 1)
    for (const secret of [secretKey, oak, Faults.processorText]) assert.notInclude(inspect(error), secret)
    return error
  })

const is = (tag: PspError["_tag"], fault: Faults.Fault) =>
  Effect.map(errorOf(fault), (error) => assert.strictEqual(error._tag, tag))

const underWay = (count: number) =>
  Effect.gen(function* () {
    const double = yield* StripeDouble
    yield* eventually(
      `${count} requests under way`,
      Effect.map(double.underWay, (found) => found === count)
    )
  })

/** A socket that waits for another call is closed after 4 seconds. */
const socketsClose = Effect.gen(function* () {
  const double = yield* StripeDouble
  yield* eventually(
    "no open socket",
    Effect.map(double.sockets, (open) => open === 0)
  )
})

const live = { excludeTestServices: true }
const services = layerWith(secretKey).pipe(Layer.provideMerge(StripeDouble.layer(rules)))

layer(services, live)("PspClient.layerStripe", (it) => {
  it.effect.each(keyRefused)("takes Stripe to be unavailable, after one request, on %s", ([, fault]) =>
    is("PspUnavailable", fault)
  )

  it.effect.each(erred)("takes Stripe or the account to fail, after one request, on %s", ([, fault]) =>
    is("PspErred", fault)
  )

  it.effect.each(refused)("knows that Stripe is up when it refuses %s", ([, fault]) => is("PspRefused", fault))

  it.effect.each(ofTheAccount)("takes it to be the account's doing where the account %s", ([, fault]) =>
    is("AccountFailed", fault)
  )

  it.effect.each(unauthorized)("leaves open whose doing it is where the key is not taken %s", ([, fault]) =>
    is("AccountUnauthorized", fault)
  )

  it.effect.each([
    ["says so", true],
    ["does not say so", false]
  ] as const)("takes no body of more than 32 MiB, and closes the socket of one that %s", ([, saysLength]) =>
    Effect.gen(function* () {
      const double = yield* StripeDouble
      yield* double.fail(Faults.large(32 * mebibyte + 1, saysLength))
      const error = yield* Effect.flip(list())
      assert.strictEqual(error._tag, "AccountFailed")
      assert.include(inspect(error), "body too large")
      yield* underWay(0)
      assert.lengthOf((yield* list()).data, 3)
    })
  )

  it.effect("takes a body of 32 MiB", () =>
    Effect.gen(function* () {
      const double = yield* StripeDouble
      yield* double.fail(Faults.large(32 * mebibyte, false))
      assert.lengthOf((yield* list()).data, 1)
    })
  )

  it.effect.each([
    ["of a broken connection", Faults.reset, "StripeConnectionError ECONNRESET"],
    ["of an error on its side", Faults.internal, "StripeAPIError 500"]
  ] as const)("says in the reason what kind of failure it was: %s", ([, fault, expected]) =>
    Effect.map(errorOf(fault), (error) => assert.include("reason" in error ? error.reason : "", expected))
  )

  it.effect.each([`x\n${Faults.processorText}`, oak, "A"])("keeps from the log what is no code: %j", (code) =>
    Effect.gen(function* () {
      const chosen = Faults.error(500, { type: "api_error", code }, { "request-id": "a b" })
      const error = yield* errorOf(chosen)
      assert.strictEqual("reason" in error ? error.reason : "", "StripeAPIError 500")
      assert.isUndefined("request" in error ? error.request : "")
    })
  )

  it.effect("passes on how long to wait of an error on its side too", () =>
    Effect.gen(function* () {
      const error = yield* errorOf(Faults.error(503, { type: "api_error" }, { "retry-after": "7" }))
      assert.deepStrictEqual("retryAfter" in error ? error.retryAfter : undefined, Duration.seconds(7))
    })
  )

  it.effect.each(cursor)("does not go by the status where the object to start after is %s", ([, fault]) =>
    is("CursorUnknown", fault)
  )

  it.effect.each(limited)("passes on how long to wait: a rate limit %s", ([, fault, seconds]) =>
    Effect.gen(function* () {
      const error = yield* errorOf(fault)
      assert.strictEqual(error._tag, "RateLimited")
      if (error._tag === "RateLimited") assert.strictEqual(Duration.toSeconds(error.retryAfter), seconds)
    })
  )

  it.effect("names Stripe's id of the request in the reason and on the span", () =>
    Effect.gen(function* () {
      const double = yield* StripeDouble
      const { spans } = yield* Recorded
      yield* double.fail(Faults.internal)
      const error = yield* Effect.flip(list())
      yield* list()
      const [failed = "", answered = ""] = spans.map(({ attributes }) =>
        String(attributes.get("practice_data.processor.request"))
      )
      assert.match(failed, /^req_\d+$/)
      assert.include(inspect(error), failed)
      assert.match(answered, /^req_\d+$/)
    }).pipe(Effect.provide(Layer.provideMerge(Recorded.recording, Recorded.layer)))
  )

  it.effect("answers after a failure as before", () =>
    Effect.gen(function* () {
      const double = yield* StripeDouble
      const before = yield* list()
      yield* double.fail(Faults.truncated)
      yield* Effect.flip(list())
      assert.deepStrictEqual(yield* list(), before)
    })
  )

  it.effect("leaves no socket open, once those that wait for another call have waited", () => socketsClose, long)
})

layer(layerWith(secretKey).pipe(Layer.provideMerge(StripeDouble.layer(rules))), live)(
  "a call that is given up",
  (it) => {
    it.effect.each([
      ["has not begun to answer", Faults.hang],
      ["stopped in its answer", Faults.hangInBody],
      ["answers byte by byte", Faults.drip]
    ] as const)("closes its socket to a Stripe that %s", ([, fault]) =>
      Effect.gen(function* () {
        const double = yield* StripeDouble
        yield* double.fail(fault)
        const call = yield* Effect.forkChild(list())
        yield* underWay(1)
        assert.strictEqual(yield* double.sockets, 1)
        yield* Fiber.interrupt(call)
        yield* underWay(0)
        yield* socketsClose
      })
    )

    it.effect("is given up alone: of many, the one that is interrupted", () =>
      Effect.gen(function* () {
        const double = yield* StripeDouble
        yield* double.fail(Faults.hang, Faults.hangInBody, Faults.drip)
        const calls = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(list()))
        yield* underWay(3)
        for (const [index, call] of calls.entries()) {
          yield* list()
          yield* Fiber.interrupt(call)
          yield* underWay(calls.length - index - 1)
        }
      })
    )
  }
)

const otherKey = "sk_test_another_key_of_somebody"
const withOtherKey = layerWith(otherKey).pipe(Layer.provideMerge(StripeDouble.layer(rules)))

layer(withOtherKey, live)("PspClient.layerStripe with a key that Stripe does not know", (it) => {
  it.effect("takes Stripe to be unavailable", () =>
    Effect.gen(function* () {
      const double = yield* StripeDouble
      const error = yield* Effect.flip(list())
      assert.strictEqual(error._tag, "PspUnavailable")
      assert.notInclude(inspect(error), otherKey)
      const [seen] = yield* double.seen
      assert.deepStrictEqual([seen?.authorization, seen?.account], [`Bearer ${otherKey}`, oak])
    })
  )
})

layer(
  PspClient.layerStripe({ secretKey: Redacted.make(secretKey), apiUrl: Option.some(new URL("http://127.0.0.1:2")) }),
  live
)("PspClient.layerStripe without a Stripe", (it) => {
  it.effect("takes it to be unavailable", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* Effect.flip(list()))._tag, "PspUnavailable")
    })
  )
})
