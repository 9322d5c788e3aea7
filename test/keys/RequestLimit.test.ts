/** The limit of requests that an operator may set. Decisions: fairness. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { TooManyRequests } from "../../src/api/Errors.ts"
import * as Limit from "../../src/keys/RequestLimit.ts"
import { InProcess, layerDemo, other, send } from "../http/inProcess.ts"

const limited = Layer.unwrap(
  Effect.map(Layer.build(Limit.layer(3)), (context) =>
    InProcess.layer(layerDemo).pipe(Layer.provide(Layer.succeedContext(context)))
  )
)

const statusOf = (sent?: Parameters<typeof send>[0]) => Effect.map(send(sent), ({ status }) => status)

const theOther = { headers: { authorization: `Bearer ${other.key}` } }
const unknown = { headers: { authorization: "Bearer pda_live_unknown" } }

layer(limited)("an organization that sends more requests than it may", (it) => {
  it.effect("is answered 429 with Retry-After, alone, and served again when that time is over", () =>
    Effect.gen(function* () {
      for (let request = 0; request < 3; request++) assert.strictEqual(yield* statusOf(), 200)
      const refused = yield* send()
      assert.strictEqual(refused.status, 429)
      assert.deepStrictEqual(refused.json, { detail: new TooManyRequests().detail })
      assert.strictEqual(refused.headers["retry-after"], "1")
      assert.strictEqual(yield* statusOf({ raw: "{" }), 429)
      assert.strictEqual(yield* statusOf(theOther), 200)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* statusOf(), 200)
    })
  )

  it.effect("is not looked for behind a key that nobody has: 401 however often it is sent", () =>
    Effect.gen(function* () {
      for (let request = 0; request < 10; request++) assert.strictEqual(yield* statusOf(unknown), 401)
    })
  )
})

layer(InProcess.layer(layerDemo))("without a limit", (it) => {
  it.effect("no number of requests is too many", () =>
    Effect.gen(function* () {
      assert.isUndefined(yield* Limit.RequestLimit)
      for (let request = 0; request < 20; request++) assert.strictEqual(yield* statusOf(), 200)
    })
  )
})
