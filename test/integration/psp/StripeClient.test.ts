/** Stripe's client with a Stripe that fails, and calls that are interrupted. */
import { inspect } from "node:util"
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Option, Redacted } from "effect"
import { PspClient } from "../../../src/psp/PspClient.ts"
import type { PspError, PspFailed } from "../../../src/psp/PspPage.ts"
import { Recorded, textOf } from "../../support/Recorded.ts"
import { accounts, oak, platform, secretKey } from "../../support/stripe/accounts.ts"
import * as Faults from "../../support/stripe/faults.ts"
import { StripeDouble } from "../../support/StripeDouble.ts"
import { eventually } from "../../support/eventually.ts"

const layerStripe = Layer.unwrap(
  Effect.map(StripeDouble, ({ url }) =>
    PspClient.layerStripe({ secretKey: Redacted.make(secretKey), apiUrl: Option.some(url) })
  )
).pipe(Layer.provideMerge(StripeDouble.layer({ key: secretKey, accounts, platform })))

const list = (limit = 3) => Effect.flatMap(PspClient, (client) => client.list("charges", oak, { limit }))

const { answer, error, rateLimit } = Faults

const mebibyte = 1024 * 1024
const type = "invalid_request_error"
const page = `{"object":"list","data":[{"id":"ch_1"}],"has_more":false,"url":"/v1/charges"}`

const strangeBodies = ["", "null", "{} {}", '{"data":[1],"has_more":false}', '{"data":[],"has_more":"false"}']

/** The tag of a failure, or who is to blame. */
type Expected = Exclude<PspError["_tag"], "PspFailed"> | PspFailed["blame"]

/** What each failure is taken for, by the rule. */
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
    (code) => [`the key: ${code}`, error(401, { type, code }), "psp"] as const
  ),
  ["an unknown key", Faults.unknownKey, "psp"],
  ["401 without a code", error(401, { type }), "unauthorized"],
  ["401 with a code not of the key", error(401, { type, code: "account_closed" }), "unauthorized"],
  ["a parameter", error(400, { type, param: "created[gte]" }), "request"],
  ["402", error(402, { type: "card_error", code: "card_declined" }), "account"],
  ...[403, 404, 499].map(
    (status) => [String(status), error(status, { type, code: "resource_missing" }), "account"] as const
  ),
  ["an account without access", error(403, { type, code: "account_invalid" }), "AccountDisconnected"],
  ["an unknown cursor", error(404, { type, code: "resource_missing", param: "starting_after" }), "CursorUnknown"],
  ["a malformed cursor", error(400, { type, param: "starting_after" }), "CursorUnknown"],
  ["a rate limit", rateLimit("7"), "RateLimited"],
  ["a body of more than 32 MiB", Faults.large(32 * mebibyte + 1), "request", "body too large"],
  ...[`x\n${Faults.processorText}`, oak, "A"].map(
    (code) => [`a code that is none: ${code}`, error(500, { type, code }), "unclear", "StripeAPIError 500"] as const
  )
]

const blameOf = (failure: PspError) => (failure._tag === "PspFailed" ? failure.blame : failure._tag)

/** Times to wait, in seconds. */
const waits: ReadonlyArray<readonly [fault: Faults.Fault, seconds: number]> = [
  [rateLimit(), 1],
  [rateLimit("0.5"), 0.5],
  [rateLimit("-5"), 1],
  [rateLimit("Wed, 21 Oct 2026 07:28:00 GMT"), 1],
  [error(400, { type, code: "rate_limit" }), 1],
  [error(503, { type: "api_error" }, { "retry-after": "7" }), 7]
]

/** Waits until so many requests are in flight, and sockets of given up ones are closed. */
const inFlight = (count: number) =>
  Effect.flatMap(StripeDouble, ({ underWay }) =>
    eventually(`${count} requests in flight`, underWay, (found) => found === count)
  )

const live = { excludeTestServices: true }

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
        const failure = yield* Effect.flip(list())
        assert.strictEqual(blameOf(failure), expected)
        assert.isNotEmpty(spans)
        if (reason !== undefined) assert.include("reason" in failure ? failure.reason : "", reason)
        const seen = (yield* double.seen).map(({ account, authorization }) => [account, authorization])
        assert.deepStrictEqual(seen, [[oak, `Bearer ${secretKey}`]])
        const told = [inspect(failure), ...logs, ...spans.map(textOf)].join("\n")
        for (const secret of [secretKey, secretKey.slice(-8), oak, Faults.processorText])
          assert.notInclude(told, secret)
        yield* inFlight(0)
        assert.lengthOf((yield* list()).data, 3)
      }).pipe(Effect.provide(recorded))
  )

  it.effect.each(waits)("passes on the time to wait: $1 s", ([fault, seconds]) =>
    Effect.gen(function* () {
      yield* (yield* StripeDouble).fail(fault)
      const failure = yield* Effect.flip(list())
      assert.deepStrictEqual("retryAfter" in failure ? failure.retryAfter : undefined, Duration.seconds(seconds))
    })
  )

  it.effect("writes no notice of Stripe to standard error", () =>
    Effect.gen(function* () {
      const warnings: Array<unknown> = []
      const note = (warning: Error) => warnings.push(warning)
      process.on("warning", note)
      yield* (yield* StripeDouble).fail(answer(200, page, { "stripe-notice": Faults.processorText }))
      yield* list()
      // Warnings are emitted in the next turn.
      yield* Effect.yieldNow
      process.off("warning", note)
      assert.deepStrictEqual(warnings, [])
    })
  )

  it.effect("has Stripe's id of a request in the error and on the span, if it is one", () =>
    Effect.gen(function* () {
      const double = yield* StripeDouble
      const { spans } = yield* Recorded
      yield* double.fail(Faults.internal)
      const failure = yield* Effect.flip(list())
      yield* list()
      yield* double.fail(error(500, { type }, { "request-id": "a b" }))
      const strange = yield* Effect.flip(list())
      const ids = spans.map(({ attributes }) => attributes.get("practice_data.processor.request"))
      assert.match(String(ids[0]), /^req_\d+$/)
      assert.strictEqual("request" in failure ? failure.request : "", ids[0])
      assert.match(String(ids[1]), /^req_\d+$/)
      assert.deepStrictEqual([ids[2], "request" in strange ? strange.request : ""], [undefined, undefined])
    }).pipe(Effect.provide(recorded))
  )
})

layer(layerStripe, live)("an interrupted call", (it) => {
  it.effect("closes its socket and no other, at whatever point of the response", () =>
    Effect.gen(function* () {
      const double = yield* StripeDouble
      yield* double.fail(Faults.hang, Faults.hangInBody)
      const calls = yield* Effect.forEach([1, 2], () => Effect.forkChild(list()))
      yield* inFlight(2)
      for (const [index, call] of calls.entries()) {
        yield* list()
        yield* Fiber.interrupt(call)
        yield* inFlight(calls.length - index - 1)
      }
    })
  )
})
