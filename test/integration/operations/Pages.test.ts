/** The operators' pages over a made-up process and stores: the facts on them, and that no text becomes HTML. */
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { h, link } from "../../../src/http/Html.ts"
import { layerShared } from "../../../src/database/Database.ts"
import { loginOf, TestDatabase } from "../../support/TestDatabase.ts"
import {
  ask,
  busy,
  checksOf,
  databaseWith,
  entryOf,
  factOf,
  keysOf,
  listener,
  processOf,
  silent,
  taskOf,
  unreachable
} from "./pageFixture.ts"

const now = Effect.runSync(Clock.currentTimeMillis)

const paths = ["/ops", "/ops/deletions", "/ops/keys", "/ops/secrets", "/ops/audit"]

const dead = taskOf("org_oakridge", "delivery-1", "dead", now)
const completed = taskOf("org_harbor", "delivery-2", "completed", now)

const ofTask = (path: string, { id, organization_id }: typeof dead) => link(path, { organization: organization_id, id })

const secretId = "secret_0a1b2c3d4e5f"
const secret = { organization_id: "org_harbor", id: secretId, created_at: dead.received_at, revoked_at: null }

const verdicts = ["deleted", "not_found", "clinic_mismatch"] as const
const facts = verdicts.map((verdict) => factOf(completed, verdict, now))

const stored = { secrets: [secret], tasks: [dead, completed], facts, keys: keysOf(now), audit: [entryOf(dead, now)] }

const well = processOf({ recent: busy(now) })

const sick = processOf({
  checks: Effect.succeed(checksOf({ tasks: "Cannot be reached", records: null })),
  ready: false
})

const shows = Effect.fnUntraced(function* (path: string, words: ReadonlyArray<string>) {
  const { text } = yield* ask(path)
  for (const each of words) assert.include(text, each)
  return text
})

const full = Layer.merge(listener(Layer.merge(well, databaseWith(stored))), TestDatabase.layer)

layer(full, { excludeTestServices: true })("the operators' pages", (it) => {
  it.effect.each(paths)("%s is a whole page that loads nothing from elsewhere", (path) =>
    Effect.gen(function* () {
      const { headers, status, text } = yield* ask(path)
      assert.strictEqual(status, 200)
      assert.match(text, /^<!doctype html>[^]*<\/html>\n$/)
      assert.match(text, new RegExp(`href="${path}"\\s+aria-current="page"`))
      assert.notMatch(text, /(src|href)="(https?:)?\/\/|\sstyle=|\son\w+=|javascript:/)
      assert.strictEqual(headers.get("cache-control"), "no-store")
      assert.include(headers.get("content-security-policy") ?? "", "frame-ancestors 'none'")
    })
  )

  it.effect("/ redirects to the overview, which shows dependencies and the process, as /health does", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* ask("/")).headers.get("location"), "/ops")
      yield* shows("/ops", ["Requests in a minute", "Dead deletions", "processor", `pid ${process.pid}`, " MiB"])
      const parts = ["records", "credentials", "tasks", "changes", "processor"].map((name) => `"${name}"`)
      yield* shows("/health", ['{"status":"pass"', ...parts])
    })
  )

  it.effect.each([
    ["", ["delivery-1", "delivery-2"]],
    ["?state=dead", ["delivery-1"]],
    ["?organization=org_harbor", ["delivery-2"]],
    ["?q=delivery-1", ["delivery-1"]],
    ["?q=delivery-1&state=completed", []]
  ] as const)("deletions are found by state, organization and Idempotency-Key: %s", ([query, keys]) =>
    Effect.gen(function* () {
      const { text } = yield* ask(`/ops/deletions${query}`)
      const found = stored.tasks.map((task) => task.idempotency_key).filter((key) => text.includes(`>${key}</a`))
      assert.deepStrictEqual(found, [...keys])
    })
  )

  it.effect("a task is shown with its error, outcome, trace, items, and the commands that change it", () =>
    Effect.gen(function* () {
      const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
      const commands = [`tasks replay ${dead.id}`, `tasks cancel ${dead.id}`]
      yield* shows(ofTask("/ops/task", dead), ["invoices_total_check", trace, "4 invoices and 3 lines", ...commands])
      const items = [
        "1 invoice clinic mismatch, 1 invoice deleted, 1 invoice remembered",
        "clinic_1",
        "may still bring records",
        `deletions undo --task ${completed.id}`
      ]
      assert.notInclude(yield* shows(ofTask("/ops/task", completed), items), "tasks replay")
      yield* shows(link("/ops/audit", { organization: "org_oakridge", target: dead.id }), ["alice"])
      assert.notInclude(yield* shows(link("/ops/audit", { target: completed.id }), ["None."]), "alice")
    })
  )

  it.effect.each([
    ["an unknown value", "/ops/deletions?state=nonsense"],
    ["two values", "/ops/keys?organization=org_a&organization=org_b"]
  ] as const)("a parameter with %s is 422, and shows no rows", ([, path]) =>
    Effect.gen(function* () {
      const { status, text } = yield* ask(path)
      assert.strictEqual(status, 422)
      assert.notMatch(text, /<table/)
    })
  )

  it.effect("a login that may not read a store is named, and the others are read", () =>
    Effect.gen(function* () {
      const sql = yield* loginOf("api")
      const services = Layer.merge(well, layerShared(sql))
      const read = Effect.forEach(["/ops/deletions", "/ops/secrets", "/ops/keys"], (path) => ask(path))
      const found = yield* Effect.provide(read, listener(services), { local: true })
      assert.deepStrictEqual(
        found.map(({ status }) => status),
        [503, 503, 200]
      )
      assert.include(found[0]?.text, "The task store refuses the service")
    })
  )

  it.effect.each(["/nope", "/ops/task", "/ops/task?organization=org_harbor&id=nope"])("%s is 404", (path) =>
    Effect.map(ask(path), ({ status }) => assert.strictEqual(status, 404))
  )
})

layer(listener(Layer.merge(sick, unreachable)), { excludeTestServices: true })("when nothing can be read", (it) => {
  it.effect.each(paths)("%s shows why in its place, and the rest", (path) =>
    shows(path, ["</footer>", "store cannot be reached."])
  )

  it.effect("the overview and /health show problems", () =>
    Effect.andThen(
      shows("/ops", ["Cannot be reached", "not ready"]),
      shows("/health", ['{"status":"warn"', '"ready":false', "Cannot be reached"])
    )
  )
})

layer(listener(Layer.merge(processOf({ checks: Effect.never }), silent)))("when nothing answers", (it) => {
  it.effect.each(paths)("%s responds within two seconds", (path) =>
    Effect.gen(function* () {
      const asking = yield* Effect.forkChild(shows(path, ["</footer>"]))
      yield* TestClock.adjust("1500 millis")
      yield* TestClock.adjust("400 millis")
      yield* TestClock.withLive(Effect.timeout(Fiber.join(asking), "10 seconds"))
    })
  )
})

const elements = (text: string) => Array.from(text.matchAll(/<[a-z!/][^\s>]*/gi), ([element]) => element)

describe("HTML", () => {
  test.prop("takes any text as text, between tags and in attributes", { text: Schema.String }, ({ text }) => {
    assert.match(h("p", { title: text })(text).text, /^<p title="[^"<>]*">[^<>]*<\/p>$/)
    assert.match(h("a", { href: link("/ops", { text }) })("x").text, /^<a href="[^"<>\s]*">x<\/a>$/)
  })

  test("replaces control characters and those that change the direction of text", () => {
    assert.strictEqual(h("p")("a\u202eb\u0000c\nd\ud800").text, "<p>a\ufffdb\ufffdc\nd\ufffd</p>")
  })

  const pagesWith = (text: string) => {
    const task = { ...taskOf(text, text, "dead", now), last_error: text }
    const given = {
      tasks: [task],
      facts: [{ ...factOf(task, "deleted", now), id: text, clinic_id: text }],
      keys: keysOf(now).map((key) => ({ ...key, organization_id: text, name: text })),
      audit: [{ ...entryOf(task, now), actor: text, source: text, result: text, target: text }]
    }
    const all = [
      ...paths,
      ofTask("/ops/task", task),
      link("/ops/deletions", { q: text, organization: text }),
      link("/ops/keys", { organization: text })
    ]
    const services = Layer.merge(processOf({ checks: Effect.succeed(checksOf({ [text]: text })) }), databaseWith(given))
    const found = Effect.forEach(all, (path) => Effect.map(ask(path), (answer) => elements(answer.text)))
    return Effect.provide(found, listener(services), { local: true })
  }

  test.live("every page has the same elements, whatever the texts on it are", () =>
    Effect.gen(function* () {
      const hostile = `"><script>alert(1)</script><img src=x onerror='alert(1)'>`
      assert.deepStrictEqual(yield* pagesWith(hostile), yield* pagesWith("plain"))
    })
  )
})
