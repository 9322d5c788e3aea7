/** The limit of requests that an operator may set. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { TooManyRequests } from "../../../src/api/Errors.ts"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import * as AuthorizationServer from "../../../src/keys/AuthorizationServer.ts"
import { InProcess, layerDemo, other, send, type ServiceLayer } from "../../support/inProcess.ts"

const limited = (services: ServiceLayer) =>
  Layer.unwrap(
    Effect.map(Layer.build(AuthorizationServer.layerLimit(3)), (context) =>
      InProcess.layer(services).pipe(Layer.provide(Layer.succeedContext(context)))
    )
  )

/** Keys in the database of the records: without a limit, a read would be left to look its key up. */
const besideRecords = Layer.effect(
  OrgResolver,
  Effect.map(OrgResolver, ({ resolve }) =>
    OrgResolver.of({ resolve, resolveHash: () => Effect.die("The key is looked up first") })
  )
).pipe(Layer.provide(layerDemo))

const statusOf = (sent?: Parameters<typeof send>[0]) => Effect.map(send(sent), ({ status }) => status)

const theOther = { headers: { authorization: `Bearer ${other.key}` } }
const unknown = { headers: { authorization: "Bearer pda_live_unknown" } }

const whereKeysAre = [
  ["in a store of their own", layerDemo],
  ["beside the records", Layer.merge(layerDemo, besideRecords)]
] as const

for (const [where, services] of whereKeysAre) {
  layer(limited(services))(`an organization that sends more requests than it may, with keys ${where},`, (it) => {
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
}

layer(InProcess.layer(layerDemo))("without a limit", (it) => {
  it.effect("no number of requests is too many", () =>
    Effect.gen(function* () {
      assert.isUndefined(yield* AuthorizationServer.RequestLimit)
      for (let request = 0; request < 20; request++) assert.strictEqual(yield* statusOf(), 200)
    })
  )
})
