/**
 * A processor that fails, seen through the data API: the answer in time, no text of the processor, the account or the key
 * in it, in logs or in spans, and no socket left.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { PspClient } from "../../../src/psp/PspClient.ts"
import * as Http from "../../support/inProcess.ts"
import { eventually } from "../../support/eventually.ts"
import { Recorded, textOf } from "../../support/Recorded.ts"
import { accounts, oak, platform, secretKey } from "../../support/stripe/accounts.ts"
import * as Faults from "../../support/stripe/faults.ts"
import { StripeDouble } from "../../support/StripeDouble.ts"

const clinic = "clinic_oak"
const { organization } = Http
const clinics = [
  { organization, clinic, account: oak },
  { organization, clinic: "clinic_gone", account: "acct_1Gone" }
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

/** Asserts that answers, and the logs and spans so far, hold no secret. */
const haveNoSecret = (answers: ReadonlyArray<Http.Answer>) =>
  Effect.gen(function* () {
    const { logs, spans } = yield* Recorded
    assert.isNotEmpty(spans)
    const texts = [...answers.flatMap(({ headers, text }) => [...Object.values(headers), text]), ...logs.splice(0)]
    texts.push(...spans.splice(0).map(textOf))
    for (const secret of secrets) assert.notInclude(texts.join("\n"), secret)
  })

const isUnavailable = ({ status, headers, text }: Http.Answer, seconds = "1") =>
  assert.deepStrictEqual(
    [status, text, headers["retry-after"]],
    [503, '{"detail":"The payment processor cannot be reached"}', seconds]
  )

const faults: ReadonlyArray<readonly [name: string, faults: ReadonlyArray<Faults.Fault>, seconds?: string]> = [
  ["fails", [Faults.internal]],
  ["answers text", [Faults.answer(200, `"${Faults.processorText}"`)]],
  ["does not know our key", [Faults.unknownKey]],
  ["limits the rate for a minute", [Faults.rateLimit("60")], "60"]
]

layer(services, { excludeTestServices: true })("a read from a processor", (it) => {
  it.effect.each(faults)("that %s is 503", ([, some, seconds]) =>
    Effect.gen(function* () {
      const double = yield* StripeDouble
      yield* double.seen
      yield* double.fail(...some)
      const answer = yield* search()
      isUnavailable(answer, seconds)
      assert.strictEqual((yield* double.seen).length, some.length)
      yield* haveNoSecret([answer])
      // A success leaves every circuit closed.
      assert.strictEqual((yield* search()).status, 200)
    })
  )
})

layer(services)((it) => {
  it.effect("a read from a processor that hangs, stops or drips is 503 after 8 seconds, and its socket is closed", () =>
    Effect.gen(function* () {
      const double = yield* StripeDouble
      const slow = [Faults.hang, Faults.hangInBody, Faults.drip]
      yield* double.fail(...slow)
      const asked = yield* Effect.forkChild(Effect.forEach(slow, () => search(), { concurrency: "unbounded" }))
      const inFlight = (expected: number) =>
        TestClock.withLive(eventually(`${expected} requests in flight`, double.underWay, (count) => count === expected))
      yield* inFlight(slow.length)
      yield* TestClock.adjust(7999)
      assert.strictEqual(yield* double.underWay, slow.length)
      yield* TestClock.adjust(1)
      const answers = yield* Fiber.join(asked)
      for (const answer of answers) isUnavailable(answer)
      yield* haveNoSecret(answers)
      yield* inFlight(0)
    })
  )
})
