/**
 * A processor that fails, seen through the data API: the decided answer in time, nothing of the processor, the account or
 * the key in it or in the logs and spans, and no socket left.
 */
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Layer, Option, Redacted } from "effect"
import { inTime } from "../support/inTime.ts"
import { PspClient } from "../../src/Psp/PspClient.ts"
import { eventually } from "../blackbox/support/eventually.ts"
import * as Http from "../Http/inProcess.ts"
import { Recorded, textOf } from "../support/Recorded.ts"
import { StripeDouble } from "../support/StripeDouble.ts"
import * as Faults from "../support/stripe/faults.ts"
import { accounts, oak, platform, secretKey } from "./accounts.ts"

const clinic = "clinic_oak"
const clinics = [
  { organization: Http.organization, clinic, account: oak },
  { organization: Http.organization, clinic: "clinic_gone", account: "acct_1Gone" }
]

/** The data API over the double, its circuit closed. */
const server = Layer.unwrap(
  Effect.map(StripeDouble, ({ url }) => {
    const client = PspClient.layerStripe({ secretKey: Redacted.make(secretKey), apiUrl: Option.some(url) })
    return Http.InProcess.layer(Layer.merge(Http.layerDemo, Http.layerPsp(client, clinics)))
  })
)

const services = Layer.mergeAll(StripeDouble.layer({ key: secretKey, accounts, platform }), Recorded.layer)

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

const isUnavailable = ({ status, headers, text }: Http.Answer) => {
  assert.strictEqual(status, 503, text)
  assert.strictEqual(text, '{"detail":"The payment processor cannot be reached"}')
  assert.strictEqual(headers["retry-after"], "1")
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
    return answers
  }).pipe(Effect.provide(server.pipe(Layer.provide(Recorded.recording))))

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
  ["asks for a patience that nobody has", [Faults.rateLimit("60")]],
  ["asks for patience, and again", [Faults.rateLimit("0.1"), Faults.rateLimit("0.1")]],
  ["asks for patience without saying how much, and fails then", [Faults.rateLimit(), Faults.internal]]
]

layer(services, { excludeTestServices: true })("a read from a processor that", (it) => {
  it.effect.each(once)("%s is answered with 503", ([, faults]) =>
    Effect.gen(function* () {
      for (const answer of yield* faulty(faults)) isUnavailable(answer)
    })
  )

  it.effect("asks for patience once is answered", () =>
    Effect.gen(function* () {
      const double = yield* StripeDouble
      yield* double.fail(Faults.rateLimit("0.1"))
      const { status } = yield* Effect.provide(search(), server)
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
      const served = server.pipe(Layer.provide(Recorded.recording))
      const answer = yield* Effect.provide(search(body), served)
      assert.deepStrictEqual([answer.status, answer.json], [400, { detail }])
      yield* isSecret([answer])
      assert.strictEqual((yield* double.seen).length, 1)
    })
  )

  it.effect("hangs, stops or drips is answered with 503 after 8 seconds, and its sockets are closed", () =>
    Effect.gen(function* () {
      const double = yield* StripeDouble
      const slow = [Faults.hang, Faults.hangInBody, Faults.drip]
      const [took, answers] = yield* Effect.timed(faulty(slow, slow.length))
      for (const answer of answers) isUnavailable(answer)
      assert.isAtLeast(Duration.toSeconds(took), 7.9)
      // A socket that waits for another call is closed after 4 seconds.
      yield* eventually(
        "no open socket",
        Effect.map(double.sockets, (open) => open === 0)
      )
    })
  )
})
