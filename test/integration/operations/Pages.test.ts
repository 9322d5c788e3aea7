/** The operators' page over a made-up process and store: the facts on it, and that no text becomes HTML. */
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { h, link } from "../../../src/http/Html.ts"
import { layerShared } from "../../../src/database/Database.ts"
import { loginOf, TestDatabase } from "../../support/TestDatabase.ts"
import { ask, busy, checksOf, databaseWith, listener, processOf, silent, taskOf, unreachable } from "./pageFixture.ts"

const now = Effect.runSync(Clock.currentTimeMillis)

const tasks = [taskOf("org_oakridge", "delivery-1", "dead", now), taskOf("org_harbor", "delivery-2", "completed", now)]

const well = processOf({ recent: busy(now) })

const sick = processOf({ checks: checksOf({ tasks: "Cannot be reached", records: null }), ready: false })

const shows = Effect.fnUntraced(function* (path: string, words: ReadonlyArray<string>) {
  const { text } = yield* ask(path)
  for (const each of words) assert.include(text, each)
})

const full = Layer.merge(listener(Layer.merge(well, databaseWith(tasks))), TestDatabase.layer)

layer(full, { excludeTestServices: true })("the operators' page", (it) => {
  it.effect("is a whole page that loads nothing from elsewhere", () =>
    Effect.gen(function* () {
      const { headers, status, text } = yield* ask("/ops")
      assert.strictEqual(status, 200)
      assert.match(text, /^<!doctype html>[^]*<\/html>\n$/)
      assert.notMatch(text, /(src|href)="(https?:)?\/\/|\sstyle=|\son\w+=|javascript:/)
      assert.strictEqual(headers.get("cache-control"), "no-store")
      assert.include(headers.get("content-security-policy") ?? "", "frame-ancestors 'none'")
    })
  )

  it.effect("shows requests, dependencies, the process and deletions", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* ask("/")).headers.get("location"), "/ops")
      const deletions = ["Dead deletions", "Deletions that ended in an hour", "invoices_total_check", "8 attempts"]
      const dependencies = ["records", "credentials", "tasks", "changes", "processor"].map((name) => `>${name}</th>`)
      const facts = ["Requests in a minute", `pid ${process.pid}`, " MiB"]
      yield* shows("/ops", [...facts, ...dependencies, ...deletions])
    })
  )

  it.effect.each([
    ["", ["delivery-1", "delivery-2"]],
    ["?state=dead", ["delivery-1"]],
    ["?organization=org_harbor", ["delivery-2"]],
    ["?organization=org_harbor&state=dead", []]
  ] as const)("lists deletions by state and organization: %s", ([query, keys]) =>
    Effect.gen(function* () {
      const { text } = yield* ask(`/ops${query}`)
      const found = tasks.map((task) => task.idempotency_key).filter((key) => text.includes(`>${key}</span`))
      assert.deepStrictEqual(found, [...keys])
    })
  )

  it.effect.each([
    ["an unknown value", "/ops?state=nonsense"],
    ["two values", "/ops?organization=org_a&organization=org_b"]
  ] as const)("is 422 without rows for a parameter with %s", ([, path]) =>
    Effect.gen(function* () {
      const { status, text } = yield* ask(path)
      assert.strictEqual(status, 422)
      assert.notMatch(text, /<table/)
    })
  )

  it.effect.each<readonly [path: string, host: string, address: string, status: number]>([
    ["/ops", "localhost", "127.0.0.1", 200],
    ["/ops", "127.0.0.1:9464", "127.0.0.1", 200],
    ["/ops", "[::1]:9464", "127.0.0.1", 200],
    ["/ops", "localhost", "::1", 200],
    ["/ops", "localhost", "::ffff:127.0.0.1", 200],
    ["/ops", "localhost", "10.0.0.7", 403],
    ["/ops", "evil.example", "127.0.0.1", 403],
    ["/ops", "127.0.0.1.evil.example", "127.0.0.1", 403],
    ["/ops", "10.0.0.1", "127.0.0.1", 403],
    ["/ops", "", "127.0.0.1", 403],
    ["/metrics", "10.0.0.1:9464", "10.0.0.7", 200]
  ])("is for this machine alone, unlike metrics: %s of the host '%s' for %s is %d", ([path, host, address, expected]) =>
    Effect.gen(function* () {
      const { headers, status } = yield* ask(path, host, address)
      assert.deepStrictEqual([status, headers.get("x-content-type-options")], [expected, "nosniff"])
    })
  )

  it.effect("says that a login may not read the deletions, and shows the rest", () =>
    Effect.gen(function* () {
      const sql = yield* loginOf("api")
      const read = shows("/ops", ["The task store refuses the service", "Requests in a minute"])
      yield* Effect.provide(read, listener(Layer.merge(well, layerShared(sql))), { local: true })
    })
  )

  it.effect("is the only page", () => Effect.map(ask("/nope"), ({ status }) => assert.strictEqual(status, 404)))
})

layer(listener(Layer.merge(sick, unreachable)), { excludeTestServices: true })("when nothing can be read", (it) => {
  it.effect("the page shows why, and the rest", () =>
    shows("/ops", ["The task store cannot be reached.", "Cannot be reached", "not ready", "</footer>"])
  )
})

layer(listener(Layer.merge(processOf({ checks: Effect.never }), silent)))("when nothing answers", (it) => {
  it.effect("the page responds within two seconds", () =>
    Effect.gen(function* () {
      const asking = yield* Effect.forkChild(shows("/ops", ["</footer>"]))
      yield* TestClock.adjust("1500 millis")
      yield* TestClock.adjust("400 millis")
      yield* TestClock.withLive(Effect.timeout(Fiber.join(asking), "10 seconds"))
    })
  )
})

describe("HTML", () => {
  test.prop("takes any text as text, between tags and in attributes", { text: Schema.String }, ({ text }) => {
    assert.match(h("p", { title: text })(text).text, /^<p title="[^"<>]*">[^<>]*<\/p>$/)
    assert.match(h("a", { href: link("/ops", { text }) })("x").text, /^<a href="[^"<>\s]*">x<\/a>$/)
  })

  test("replaces control characters and those that change the direction of text", () => {
    assert.strictEqual(h("p")("a\u202eb\u0000c\nd\ud800").text, "<p>a\ufffdb\ufffdc\nd\ufffd</p>")
  })
})
