/**
 * The live reads of the started program: the demo processor, Stripe's client over a double of Stripe, and none.
 *
 * @module-tag long
 */
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Array, Duration, Effect, Fiber, Layer, Schema } from "effect"
import { accounts } from "../../../src/demo/DemoProcessor.ts"
import { processorEndpoints } from "../../support/contract/Contract.ts"
import { StripeDouble } from "../../support/StripeDouble.ts"
import * as Faults from "../../support/stripe/faults.ts"
import { inTime } from "../../support/inTime.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import * as Process from "../../support/Process.ts"
import { options, Service } from "../../support/Service.ts"

const secretKey = "sk_test_0123456789abcdefghijkl"
const clinic = "clinic_oakridge_01"

const Page = Schema.Struct({
  data: Schema.NonEmptyArray(
    Schema.StructWithRest(Schema.Struct({ id: Schema.String, created: Schema.Int }), [
      Schema.Record(Schema.String, Schema.Unknown)
    ])
  ),
  has_more: Schema.Boolean
})
const decodePage = Schema.decodeUnknownEffect(Schema.fromJsonString(Page), { onExcessProperty: "error" })

const Health = Schema.fromJsonString(
  Schema.Struct({
    status: Schema.String,
    checks: Schema.Struct({ processor: Schema.Struct({ status: Schema.String }) })
  })
)
const decodeHealth = Schema.decodeUnknownEffect(Health)

const health = (client: Client.Client) =>
  Effect.gen(function* () {
    const { status, text } = yield* client.call({ path: "/api/v1/health", method: "GET", headers: {} })
    assert.strictEqual(status, 200)
    const { checks, status: all } = yield* decodeHealth(text)
    return [all, checks.processor.status]
  })

const is = ({ status, text }: Client.Answer, expected: number, detail: string) =>
  assert.deepStrictEqual([status, text], [expected, Client.json({ detail })])

/** All objects of a read, page by page. */
const walk = Effect.fnUntraced(function* (client: Pick<Client.Client, "ask">, path: string, limit: number) {
  const ids: Array<string> = []
  for (let hasMore = true; hasMore;) {
    const answer = yield* client.ask(path, {
      clinic,
      limit,
      ...(ids.length === 0 ? {} : { starting_after: ids.at(-1) })
    })
    assert.strictEqual(answer.status, 200, answer.text)
    const page = yield* decodePage(answer.text)
    ids.push(...page.data.map(({ id }) => id))
    hasMore = page.has_more
  }
  return ids
})

layer(Service.layerEmbedded, options)("the demo processor", (it) => {
  it.effect.each(processorEndpoints)("answers $path with believable objects, newest first, each once", ({ path }) =>
    Effect.gen(function* () {
      const client = yield* Service
      const { data } = yield* Effect.flatMap(client.ask(path, { clinic }), ({ text }) => decodePage(text))
      const created = data.map((object) => object.created)
      assert.deepStrictEqual(
        created,
        created.toSorted((a, b) => b - a)
      )
      for (const { currency, object, status } of data) {
        for (const value of [currency, object, status]) assert.isString(value)
      }
      const ids = yield* walk(client, path, 50)
      assert.strictEqual(new Set(ids).size, ids.length)
      assert.deepStrictEqual(
        ids.slice(0, 100),
        data.map(({ id }) => id)
      )
    })
  )

  it.effect("has an account for the first clinic of an organization, and none for the second", () =>
    Effect.gen(function* () {
      const { ask } = yield* Service
      const path = "/psp-payments/search"
      is(
        yield* ask(path, { clinic: "clinic_oakridge_02" }),
        400,
        "The clinic has no connected payment processor account"
      )
      is(yield* ask(path, { clinic: "clinic_harbor_01" }), 400, "The organization has no such clinic")
      const theirs = yield* ask(path, { clinic: "clinic_harbor_01" }, "harbor")
      assert.strictEqual(theirs.status, 200)
      assert.notInclude(theirs.text, "oakridge")
    })
  )
})

/** The program over a Postgres with demo data, and Stripe's double with the demo processor's objects. */
const program = Effect.gen(function* () {
  const { url, sql } = yield* TestDatabase
  const double = yield* StripeDouble
  const { address, output } = yield* Process.start({
    DATABASE_URL: url,
    STRIPE_SECRET_KEY: secretKey,
    STRIPE_API_URL: double.url.href,
    LOG_LEVEL: "All"
  })
  return { client: yield* Client.make(yield* address, 64), double, output, sql }
})

const own = Layer.fresh(
  Layer.merge(TestDatabase.layerDemo, StripeDouble.layer({ key: secretKey, accounts, platform: "acct_platform" }))
)

const path = "/psp-charges/search"

describe.concurrent("a program with a key of the processor", () => {
  test.live("reads the clinic's account by Stripe's client, page by page", () =>
    Effect.gen(function* () {
      const { client, double } = yield* program
      const ids = (accounts["acct_demo_oakridge"]?.charges ?? []).map(({ id }) => id)
      assert.deepStrictEqual(yield* walk(client, path, 50), ids.toReversed())
      const seen = yield* double.seen
      assert.deepStrictEqual(new Set(seen.map(({ account }) => account)), new Set(["acct_demo_oakridge"]))
      assert.deepStrictEqual(new Set(seen.map(({ authorization }) => authorization)), new Set([`Bearer ${secretKey}`]))
      assert.deepStrictEqual(yield* health(client), ["pass", "pass"])
    }).pipe(Effect.provide(own))
  )

  test.live("closes its socket to the processor when the caller hangs up", () =>
    Effect.gen(function* () {
      const { client, double } = yield* program
      const slow = [Faults.hang, Faults.hangInBody, Faults.drip]
      yield* double.fail(...slow)
      const callers = yield* Effect.forEach(slow, () => Effect.forkChild(client.ask(path, { clinic })))
      yield* eventually(
        "every call under way",
        Effect.map(double.underWay, (count) => count === slow.length)
      )
      yield* Fiber.interruptAll(callers)
      const [took] = yield* Effect.timed(
        eventually(
          // None was answered in full, so each ends with its socket. A spare socket may stay open a while.
          "no call under way",
          Effect.map(double.underWay, (count) => count === 0)
        )
      )
      assert.isBelow(Duration.toSeconds(took), inTime(4))
      assert.strictEqual((yield* client.ask(path, { clinic })).status, 200)
    }).pipe(Effect.provide(own))
  )

  test.live("outlives whatever the processor answers, stops calling one that is down, and says so in its health", () =>
    Effect.gen(function* () {
      const { client, double, output } = yield* program
      const nonsense = Faults.answer(200, `"${Faults.processorText}"`, { "stripe-notice": Faults.processorText })
      yield* double.fail(nonsense, Faults.reset, Faults.html(500), Faults.truncated, Faults.internal)
      for (const _ of Array.range(1, 10)) {
        is(yield* client.ask(path, { clinic }), 503, "The payment processor cannot be reached")
        const ofAnother = yield* client.ask(path, { clinic: "clinic_harbor_01" }, "harbor")
        is(ofAnother, 503, "The payment processor cannot be reached")
      }
      assert.strictEqual((yield* double.seen).length, 5)
      assert.deepStrictEqual(yield* health(client), ["warn", "warn"])
      assert.strictEqual((yield* client.ask("/charges/search")).status, 200)
      assert.include(output(), "Circuit breaker open: the payment processor failed")
      for (const secret of [secretKey, "acct_demo", Faults.processorText]) assert.notInclude(output(), secret)
    }).pipe(Effect.provide(own))
  )

  test.live("keeps what is wrong with one organization's account from every other", () =>
    Effect.gen(function* () {
      const { client, double, output, sql } = yield* program
      const ofHarbor = client.ask(path, { clinic: "clinic_harbor_01" }, "harbor")
      const ofOakridge = client.ask(path, { clinic })
      const down = "The payment processor cannot be reached"

      yield* double.breakAccount("acct_demo_oakridge", Faults.error(401, { type: "invalid_request_error" }))
      for (const _ of Array.range(1, 10)) is(yield* ofOakridge, 503, down)
      assert.strictEqual((yield* double.seen).length, 5)
      assert.match(String((yield* ofOakridge).headers["retry-after"]), /^[1-5]$/)
      assert.strictEqual((yield* ofHarbor).status, 200)
      assert.deepStrictEqual(yield* health(client), ["pass", "pass"])
      const lines = output().split("\n")
      assert.lengthOf(
        lines.filter((line) => line.includes("Circuit breaker open")),
        1
      )
      for (const word of ["org_oakridge", clinic, "req_5", "StripeAuthenticationError 401"]) {
        assert.include(output(), word)
      }

      yield* double.seen
      yield* double.breakAccount("acct_demo_harbor", Faults.hang)
      yield* Effect.forEach(Array.range(1, 5), () => Effect.timeoutOption(ofHarbor, "1 second"), {
        concurrency: "unbounded"
      })
      yield* eventually(
        "an open circuit breaker of an account whose callers had left",
        Effect.map(ofHarbor, ({ status }) => status === 503)
      )
      assert.strictEqual((yield* double.seen).length, 5)

      yield* sql`update clinics set processor_account = 'acct_\u00fc' where organization_id = 'org_oakridge'`
      is(yield* ofOakridge, 400, "The clinic has no connected payment processor account")
      assert.deepStrictEqual(yield* health(client), ["pass", "pass"])
      for (const secret of ["acct_demo", Faults.processorText]) assert.notInclude(output(), secret)
    }).pipe(Effect.provide(own))
  )

  test.live("has no more than 20 reads of an organization under way, and refuses more at once", () =>
    Effect.gen(function* () {
      const { client, double } = yield* program
      const ofHarbor = client.ask(path, { clinic: "clinic_harbor_01" }, "harbor")
      yield* ofHarbor
      yield* double.seen
      yield* double.breakAccount("acct_demo_oakridge", Faults.hang)
      const reads = yield* Effect.forEach(Array.range(1, 60), () => Effect.forkChild(client.ask(path, { clinic })))
      yield* eventually(
        "a read refused",
        Effect.sync(() => reads.some((read) => read.pollUnsafe() !== undefined))
      )
      assert.strictEqual((yield* ofHarbor).status, 200)
      const ended = yield* Effect.forEach(reads, (read) => Effect.timeoutOption(Fiber.join(read), "1 second"), {
        concurrency: "unbounded"
      })
      const refused = Array.getSomes(ended)
      assert.isNotEmpty(refused)
      for (const answer of refused) {
        assert.strictEqual(answer.status, 503, answer.text)
        assert.match(String(answer.headers["retry-after"]), /^[1-5]$/)
      }
      assert.include(refused.map(({ text }) => text).join(), "Too many reads of the payment processor are in flight")
      const ofOakridge = (yield* double.seen).filter(({ account }) => account === "acct_demo_oakridge")
      assert.isAtMost(ofOakridge.length, 20)
      yield* Fiber.interruptAll(reads)
    }).pipe(Effect.provide(own))
  )
})

describe("a program with a Postgres and no key of the processor", () => {
  test.live.each([{}, { STRIPE_SECRET_KEY: "", STRIPE_API_URL: "" }])("answers every live read with 503: %j", (unset) =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const { address } = yield* Process.start({ DATABASE_URL: url, ...unset })
      const client = yield* Client.make(yield* address)
      for (const endpoint of processorEndpoints) {
        const answer = yield* client.ask(endpoint.path, { clinic })
        is(answer, 503, "The payment processor is not configured")
        assert.match(String(answer.headers["retry-after"]), /^[1-9]\d*$/)
      }
      assert.deepStrictEqual(yield* health(client), ["pass", "pass"])
    }).pipe(Effect.provide(Layer.fresh(TestDatabase.layerDemo)))
  )
})
