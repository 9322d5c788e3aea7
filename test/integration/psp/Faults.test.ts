/**
 * A processor that fails, seen through the data API: the decided answer in time, nothing of the processor, the account or
 * the key in it or in the logs and spans, and no socket left.
 */
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Option, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { inTime } from "../../support/inTime.ts"
import { PspClient } from "../../../src/psp/PspClient.ts"
import { eventually } from "../../support/eventually.ts"
import * as Http from "../../http/inProcess.ts"
import { Recorded, textOf } from "../../support/Recorded.ts"
import { StripeDouble } from "../../support/StripeDouble.ts"
import * as Faults from "../../support/stripe/faults.ts"
import { accounts, harbor, oak, platform, secretKey } from "../../support/stripe/accounts.ts"

const clinic = "clinic_oak"
const clinics = [
  { organization: Http.organization, clinic, account: oak },
  { organization: Http.organization, clinic: "clinic_gone", account: "acct_1Gone" },
  { organization: Http.other.organization, clinic: "clinic_harbor", account: harbor }
]

/** The data API over the double. */
const server = Layer.unwrap(
  Effect.map(StripeDouble, ({ url }) => {
    const client = PspClient.layerStripe({ secretKey: Redacted.make(secretKey), apiUrl: Option.some(url) })
    return Http.InProcess.layer(Layer.merge(Http.layerDemo, Http.layerPsp(client, clinics)))
  })
)

const services = server.pipe(
  Layer.provide(Recorded.recording),
  Layer.provideMerge(Layer.merge(StripeDouble.layer({ key: secretKey, accounts, platform }), Recorded.layer))
)

const search = (body: object = {}) =>
  Http.send({ path: "/api/v3/psp-charges/search", json: { clinic, limit: 3, ...body } })

const secrets = [secretKey, secretKey.slice(-8), oak, "acct_1Gone", Faults.processorText]

/** Nothing that was said anywhere since the last time of asking holds what only we and the processor know. */
const isSecret = (answers: ReadonlyArray<Http.Answer>) =>
  Effect.gen(function* () {
    const { logs, spans } = yield* Recorded
    assert.isNotEmpty(spans)
    const said = [...answers.flatMap(({ headers, text }) => [...Object.values(headers), text]), ...logs.splice(0)]
    said.push(...spans.splice(0).map(textOf))
    for (const secret of secrets) assert.notInclude(said.join("\n"), secret)
  })

const isUnavailable = ({ status, headers, text }: Http.Answer, seconds = "1") => {
  assert.strictEqual(status, 503, text)
  assert.strictEqual(text, '{"detail":"The payment processor cannot be reached"}')
  assert.strictEqual(headers["retry-after"], seconds)
}

/** Asks several times at once, while the processor fails each call. */
const faulty = (faults: ReadonlyArray<Faults.Fault>, requests = 1, body: object = {}) =>
  Effect.gen(function* () {
    const double = yield* StripeDouble
    yield* double.seen
    yield* double.fail(...faults)
    const asked = Effect.all(
      Array.from({ length: requests }, () => search(body)),
      { concurrency: "unbounded" }
    )
    const [took, answers] = yield* Effect.timed(asked)
    assert.isBelow(Duration.toSeconds(took), inTime(8))
    assert.strictEqual((yield* double.seen).length, faults.length)
    yield* isSecret(answers)
    yield* eventually(
      "no request under way",
      Effect.map(double.underWay, (count) => count === 0)
    )
    // The next read is answered, which leaves every circuit closed.
    assert.strictEqual((yield* search()).status, 200)
    return answers
  })

const once: ReadonlyArray<readonly [name: string, faults: ReadonlyArray<Faults.Fault>]> = [
  ["fails on its side", [Faults.internal]],
  ["has a conflict", [Faults.conflict]],
  ["answers a page for people", [Faults.html(200)]],
  ["is behind something that answers a page for people", [Faults.html(502)]],
  ["cuts its answer short", [Faults.cutShort]],
  ["closes before the end of its answer", [Faults.truncated]],
  ["breaks the connection", [Faults.reset]],
  ["breaks the connection in its answer", [Faults.resetInBody]],
  ["answers no object", [Faults.answer(200, `"${Faults.processorText}"`)]],
  ["answers no list", [Faults.answer(200, `{"data":"${Faults.processorText}","has_more":false}`)]],
  ["refuses our key", [Faults.error(401, { type: "invalid_request_error" })]],
  ["refuses a parameter of ours", [Faults.error(400, { type: "invalid_request_error", param: "limit" })]],
  ["refuses an account", [Faults.error(403, { type: "invalid_request_error" })]],
  ["does not take our key for an account", [Faults.error(401, { type: "invalid_request_error" })]],
  ["does not know our key", [Faults.unknownKey]],
  ["answers more than anyone reads", [Faults.large(33 * 1024 * 1024, false)]],
  ["asks for patience, and again", [Faults.rateLimit("0.1"), Faults.rateLimit("0.1")]],
  ["asks for patience without saying how much, and fails then", [Faults.rateLimit(), Faults.internal]]
]

layer(services, { excludeTestServices: true })("a read from a processor that", (it) => {
  it.effect.each(once)("%s is answered with 503", ([, faults]) =>
    Effect.gen(function* () {
      for (const answer of yield* faulty(faults)) isUnavailable(answer)
    })
  )

  it.effect.each([
    ["for a minute", "60", "60"],
    ["for an hour", "3600", "60"],
    ["for 2.5 seconds", "2.5", "3"]
  ] as const)("asks for a patience that nobody has, %s, is answered with what it says", ([, said, seconds]) =>
    Effect.gen(function* () {
      for (const answer of yield* faulty([Faults.rateLimit(said)])) isUnavailable(answer, seconds)
    })
  )

  it.effect("asks for patience once is answered", () =>
    Effect.gen(function* () {
      const double = yield* StripeDouble
      yield* double.fail(Faults.rateLimit("0.1"))
      yield* double.seen
      const { status } = yield* search()
      assert.strictEqual(status, 200)
      assert.strictEqual((yield* double.seen).length, 2)
    })
  )

  it.effect.each([
    ["a cursor", { starting_after: "ch_unknown" }, "starting_after is not the id of an object of the clinic's account"],
    ["an account", { clinic: "clinic_gone" }, "The clinic has no connected payment processor account"]
  ] as const)("does not know %s is answered with 400", ([, body, detail]) =>
    Effect.gen(function* () {
      const double = yield* StripeDouble
      yield* double.seen
      const answer = yield* search(body)
      assert.deepStrictEqual([answer.status, answer.json], [400, { detail }])
      yield* isSecret([answer])
      assert.strictEqual((yield* double.seen).length, 1)
    })
  )
})

layer(services)("a read from a processor, by a clock of the test's own,", (it) => {
  it.effect("that hangs, stops or drips is answered with 503 after 8 seconds, and its sockets are closed", () =>
    Effect.gen(function* () {
      const double = yield* StripeDouble
      const slow = [Faults.hang, Faults.hangInBody, Faults.drip]
      yield* double.fail(...slow)
      const asked = yield* Effect.forkChild(Effect.forEach(slow, () => search(), { concurrency: "unbounded" }))
      const underWay = (expected: number) =>
        TestClock.withLive(
          eventually(
            `${expected} requests under way`,
            Effect.map(double.underWay, (count) => count === expected)
          )
        )
      yield* underWay(slow.length)
      yield* TestClock.adjust(7999)
      assert.strictEqual(yield* double.underWay, slow.length)
      yield* TestClock.adjust(1)
      const answers = yield* Fiber.join(asked)
      for (const answer of answers) isUnavailable(answer)
      yield* isSecret(answers)
      // None was answered in full, so each ends with its socket.
      yield* underWay(0)
    })
  )
})

layer(services)("an account for which the processor", (it) => {
  it.effect.each([
    ["fails", Faults.internal],
    ["answers no list", Faults.answer(200, '{"data":{}}')],
    ["breaks the connection", Faults.reset],
    ["is behind a page for people", Faults.html(502)]
  ] as const)("%s shuts out no other organization", ([, fault]) =>
    Effect.gen(function* () {
      const double = yield* StripeDouble
      const headers = { authorization: `Bearer ${Http.other.key}` }
      const theOther = Http.send({ path: "/api/v3/psp-charges/search", json: { clinic: "clinic_harbor" }, headers })
      yield* double.breakAccount(oak, fault)
      for (let read = 0; read < 5; read++) isUnavailable(yield* search(), read < 4 ? "1" : "5")
      assert.strictEqual((yield* theOther).status, 200)
      yield* double.seen
      isUnavailable(yield* search(), "5")
      assert.lengthOf(yield* double.seen, 0)
      yield* double.breakAccount(oak, undefined)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* search()).status, 200)
    })
  )
})
