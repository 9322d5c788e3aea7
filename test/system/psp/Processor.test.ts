/**
 * The live reads of the started program: the demo processor, Stripe's client over a double of Stripe, and none.
 *
 * @module-tag long
 */
import { assert, it as test, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { accounts } from "../../../src/demo/DemoProcessor.ts"
import * as Client from "../../support/Client.ts"
import { processorEndpoints } from "../../support/contract/Contract.ts"
import * as Program from "../../support/Program.ts"
import { options, Service } from "../../support/Service.ts"
import * as Faults from "../../support/stripe/faults.ts"
import { StripeDouble } from "../../support/StripeDouble.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const secretKey = "sk_test_0123456789abcdefghijkl"
const clinic = "clinic_oakridge_01"
const path = "/psp-charges/search"

const decodePage = Schema.decodeUnknownEffect(
  Schema.fromJsonString(
    Schema.Struct({
      data: Schema.NonEmptyArray(Schema.Struct({ id: Schema.String, created: Schema.Int })),
      has_more: Schema.Boolean
    })
  )
)

/** The processor's part of the health of a program. */
const health = (client: Client.Client) =>
  Effect.map(client.call({ path: "/api/v1/health", method: "GET", headers: {} }), ({ text }) => {
    const { checks, status } = JSON.parse(text)
    return [status, checks.processor.status]
  })

const is = ({ status, text }: Client.Answer, expected: number, detail: string) =>
  assert.deepStrictEqual([status, text], [expected, Client.json({ detail })])

/** The ids of all objects of a read, page by page. */
const walk = Effect.fnUntraced(function* (client: Pick<Client.Client, "ask">, read: string, limit: number) {
  const all: Array<{ readonly id: string; readonly created: number }> = []
  for (let hasMore = true; hasMore;) {
    const starting_after = all.at(-1)?.id ?? null
    const { status, text } = yield* client.ask(read, { clinic, limit, starting_after })
    assert.strictEqual(status, 200, text)
    const page = yield* decodePage(text)
    all.push(...page.data)
    hasMore = page.has_more
  }
  const newestFirst = all.toSorted((a, b) => b.created - a.created)
  assert.deepStrictEqual(all, newestFirst)
  return all.map(({ id }) => id)
})

layer(Service.layerEmbedded, options)("The demo processor", (it) => {
  it.effect("has objects of each kind, newest first and each once, for the first clinic of an organization alone", () =>
    Effect.gen(function* () {
      const client = yield* Service
      for (const { path: read } of processorEndpoints) {
        const ids = yield* walk(client, read, 50)
        assert.strictEqual(new Set(ids).size, ids.length, read)
      }
      const second = yield* client.ask(path, { clinic: "clinic_oakridge_02" })
      is(second, 400, "The clinic has no connected payment processor account")
      is(yield* client.ask(path, { clinic: "clinic_harbor_01" }), 400, "The organization has no such clinic")
      const theirs = yield* client.ask(path, { clinic: "clinic_harbor_01" }, "harbor")
      assert.strictEqual(theirs.status, 200)
      assert.notInclude(theirs.text, "oakridge")
    })
  )
})

const own = Layer.fresh(
  Layer.merge(TestDatabase.layerDemo, StripeDouble.layer({ key: secretKey, accounts, platform: "acct_platform" }))
)

test.live("Stripe's client reads the clinic's account, and stops calling one that is down", () =>
  Effect.gen(function* () {
    const { url } = yield* TestDatabase
    const double = yield* StripeDouble
    const environment = { STRIPE_SECRET_KEY: secretKey, STRIPE_API_URL: double.url.href, LOG_LEVEL: "All" }
    const { client, output } = yield* Program.start({ DATABASE_URL: url, ...environment })
    const ids = (accounts["acct_demo_oakridge"]?.charges ?? []).map(({ id }) => id)
    assert.deepStrictEqual(yield* walk(client, path, 50), ids.toReversed())
    for (const { account, authorization } of yield* double.seen)
      assert.deepStrictEqual([account, authorization], ["acct_demo_oakridge", `Bearer ${secretKey}`])
    assert.deepStrictEqual(yield* health(client), ["pass", "pass"])

    yield* double.seen
    yield* double.fail(...Array.from({ length: 5 }, () => Faults.internal))
    for (let time = 0; time < 10; time++) {
      is(yield* client.ask(path, { clinic }), 503, "The payment processor cannot be reached")
    }
    assert.strictEqual((yield* double.seen).length, 5)
    assert.include(output(), "Circuit breaker open")
    for (const secret of [secretKey, "acct_demo", Faults.processorText]) assert.notInclude(output(), secret)
  }).pipe(Effect.provide(own))
)
