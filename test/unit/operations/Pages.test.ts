/** The operators' pages over made-up figures and stores: what they show, and that nothing gets into them as HTML. */
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Figures } from "../../../src/operations/Figures.ts"
import { h, link } from "../../../src/http/Html.ts"
import { OperatorStore } from "../../../src/operations/OperatorStore.ts"
import { busy, entryOf, figures, keysOf, processOf, store, taskOf } from "./fakes.ts"
import { ask, basic, listener, token } from "./pages.ts"

const now = Effect.runSync(Clock.currentTimeMillis)

const paths = ["/ops", "/ops/requests", "/ops/deletions", "/ops/keys", "/ops/changes", "/ops/audit"]

const dead = taskOf("org_oakridge", "delivery-1", "dead", now)
const another = taskOf("org_oakridge", "delivery-3", "dead", now)
const completed = taskOf("org_harbor", "delivery-2", "completed", now)

const ofTask = (path: string, { id, organization_id }: typeof dead) => link(path, { organization: organization_id, id })

const memory = { tasks: [dead, completed], keys: keysOf(now), audit: [entryOf(dead, now)], holders: [] }

const well = figures(Effect.succeed([processOf(now, { recent: busy(now, 0.1) })]))

const sick = figures(
  Effect.succeed([
    processOf(now, { checks: { tasks: "Cannot be reached", records: null }, ready: false }),
    { process: 2, pid: 4243, silent: "No answer within a second" }
  ])
)

layer(listener(Layer.merge(well, store(memory))), { excludeTestServices: true })("The operators' pages", (it) => {
  it.effect.each(paths)("%s is a whole page that loads nothing from elsewhere", (path) =>
    Effect.gen(function* () {
      const { headers, status, text } = yield* ask(path)
      assert.strictEqual(status, 200)
      assert.match(text, /^<!doctype html>/)
      assert.match(text.trim(), /<\/html>$/)
      assert.match(text, new RegExp(`href="${path}"\\s+aria-current="page"`))
      assert.notMatch(text, /(src|href)="(https?:)?\/\//)
      assert.notMatch(text, /\sstyle=|\son\w+=|javascript:/)
      assert.strictEqual(headers.get("cache-control"), "no-store")
      assert.include(headers.get("content-security-policy") ?? "", "frame-ancestors 'none'")
    })
  )

  it.effect("the overview tells what is dead, and since when each dependency is as it is", () =>
    Effect.gen(function* () {
      const { text } = yield* ask("/ops")
      for (const words of ["Requests a second", "Dead deletions", "Task store", "none seen", "pid 4242", "180 MiB"]) {
        assert.include(text, words)
      }
    })
  )

  it.effect("requests are told by endpoint and organization, in the order of a column", () =>
    Effect.gen(function* () {
      const { text } = yield* ask("/ops/requests?sort=name&window=day")
      assert.match(text, /aria-sort="ascending"/)
      const endpoints = Array.from(text.matchAll(/<span class="id"\s*>(\/api[^<]*)</g), ([, name]) => name)
      assert.isNotEmpty(endpoints)
      assert.deepStrictEqual(
        endpoints,
        endpoints.toSorted((one = "", two = "") => (one < two ? -1 : 1))
      )
      assert.include(text, "org_willow_creek_veterinary_partners")
    })
  )

  it.effect("deletions are found by state, organization, and Idempotency-Key", () =>
    Effect.gen(function* () {
      const shows = Effect.fnUntraced(function* (path: string, keys: ReadonlyArray<string>) {
        const { text } = yield* ask(path)
        for (const { idempotency_key: key } of memory.tasks) {
          assert.strictEqual(text.includes(`>${key}</a`), keys.includes(key), `${path} ${key}`)
        }
      })
      yield* shows("/ops/deletions", ["delivery-1", "delivery-2"])
      yield* shows("/ops/deletions?state=dead", ["delivery-1"])
      yield* shows("/ops/deletions?organization=org_harbor", ["delivery-2"])
      yield* shows("/ops/deletions?q=delivery-1", ["delivery-1"])
      yield* shows("/ops/deletions?q=delivery-1&organization=org_harbor", [])
      yield* shows("/ops/deletions?state=nonsense", ["delivery-1", "delivery-2"])
    })
  )

  it.effect("a task is shown with its error, outcome, trace and history", () =>
    Effect.gen(function* () {
      const { text } = yield* ask(ofTask("/ops/task", dead))
      for (const words of ["invoices_total_check", "4bf92f3577b34da6a3ce929d0e0e4736", "alice", "Replay…"]) {
        assert.include(text, words)
      }
      const other = yield* ask(ofTask("/ops/task", completed))
      assert.include(other.text, "the organization has no such invoice")
      assert.notInclude(other.text, "Replay…")
      for (const path of [
        "/ops/task",
        "/ops/task?organization=org_harbor&id=nope",
        "/ops/task?organization=%00&id=1"
      ]) {
        assert.strictEqual((yield* ask(path)).status, 404)
      }
    })
  )

  it.effect("a dead task is replayed after the token was given, by the form or by HTTP Basic", () =>
    Effect.gen(function* () {
      const path = ofTask("/ops/task/replay", dead)
      const asked = yield* ask(path)
      assert.include(asked.text, "Replay this deletion?")
      assert.notInclude(asked.text, "/ops/live.js")
      const done = yield* ask(path, { form: { name: "alice", token } })
      assert.strictEqual(done.status, 303)
      assert.include(done.headers.get("location") ?? "", "&replayed=1")
      const plain = { ...basic("bob", token), accept: "*/*" }
      const byCurl = yield* ask(ofTask("/ops/task/replay", another), { method: "POST", headers: plain })
      assert.deepStrictEqual([byCurl.status, byCurl.text], [200, `Replaying ${another.id}\n`])
      const alive = yield* ask(ofTask("/ops/task/replay", completed), { method: "POST", headers: plain })
      assert.deepStrictEqual(
        [alive.status, alive.text],
        [409, "This deletion is completed. Only a dead one can be replayed.\n"]
      )
    }).pipe(
      Effect.provide(listener(Layer.merge(well, store({ ...memory, tasks: [dead, another, completed] }))), {
        local: true
      })
    )
  )

  it.effect("nothing is replayed without the token, or without a name", () =>
    Effect.gen(function* () {
      const path = ofTask("/ops/task/replay", dead)
      const wrong = yield* ask(path, { form: { name: "alice", token: "wrong-horse-battery" } })
      assert.strictEqual(wrong.status, 403)
      assert.include(wrong.text, "Wrong token. Nothing was changed.")
      assert.include(wrong.text, 'value="alice"')
      assert.notInclude(wrong.text, "wrong-horse")
      assert.strictEqual((yield* ask(path, { form: { name: " ", token } })).status, 422)
      assert.strictEqual((yield* ask(path, { form: { name: "alice" } })).status, 401)
      assert.strictEqual((yield* ask(path, { method: "POST" })).status, 401)
      // A wrong token in the form is not mended by a right one beside it.
      const both = { form: { name: "a", token: "wrong" }, headers: basic("a", token) }
      assert.strictEqual((yield* ask(path, both)).status, 403)
    })
  )

  it.effect("health tells each part of each process", () =>
    Effect.gen(function* () {
      const { text } = yield* ask("/health")
      const found = yield* Schema.decodeEffect(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))(
        text
      )
      assert.strictEqual(found["status"], "pass")
      for (const part of ["records", "credentials", "tasks", "changes", "processor"]) assert.include(text, `"${part}"`)
    })
  )

  it.effect("what is not there is 404, and / leads to the page", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* ask("/nope")).status, 404)
      assert.strictEqual((yield* ask("/api/v3/openapi.json")).status, 404)
      assert.strictEqual((yield* ask("/")).headers.get("location"), "/ops")
    })
  )
})

layer(listener(Layer.merge(sick, store({}))), { excludeTestServices: true })("When nothing can be read", (it) => {
  it.effect.each(paths)("%s says so in its place, and shows the rest", (path) =>
    Effect.gen(function* () {
      const { status, text } = yield* ask(path)
      assert.strictEqual(status, 200)
      if (path !== "/ops/requests") assert.include(text, "There is no such store")
      assert.include(text, "</footer>")
    })
  )

  it.effect("the overview tells what is wrong, and which process does not answer", () =>
    Effect.gen(function* () {
      const { text } = yield* ask("/ops")
      for (const words of ["Cannot be reached", "not ready", "No answer within a second"]) {
        assert.include(text, words)
      }
      assert.include((yield* ask("/health")).text, '"status":"warn"')
    })
  )
})

const hanging = Layer.merge(
  Layer.succeed(Figures, Figures.of({ all: Effect.never, metrics: Effect.never })),
  Layer.effect(
    OperatorStore,
    Effect.map(OperatorStore, (of) =>
      OperatorStore.of({
        ...of,
        taskCounts: Effect.never,
        tasks: () => Effect.never,
        keys: () => Effect.never,
        audit: () => Effect.never,
        holders: Effect.never
      })
    )
  ).pipe(Layer.provide(store({})))
)

layer(listener(hanging))("When nothing answers", (it) => {
  it.effect.each(paths)("%s is there within two seconds all the same", (path) =>
    Effect.gen(function* () {
      const started = yield* Clock.currentTimeMillis
      const asking = yield* Effect.forkChild(
        Effect.flatMap(ask(path), ({ text }) => Effect.map(Clock.currentTimeMillis, (ended) => ({ ended, text })))
      )
      yield* TestClock.adjust("1500 millis")
      yield* TestClock.adjust("400 millis")
      const { ended, text } = yield* Fiber.join(asking)
      assert.isAtMost(ended - started, 2000)
      assert.include(text, path === "/ops" ? "No process answers" : "</footer>")
    })
  )
})

const elements = (text: string) => Array.from(text.matchAll(/<[a-z!/][^\s>]*/gi), ([element]) => element)

describe("HTML", () => {
  test.prop("takes any text as text, between tags and in attributes", { text: Schema.String }, ({ text }) => {
    assert.match(h("p", { title: text })(text).text, /^<p title="[^"<>]*">[^<>]*<\/p>$/)
    assert.match(h("a", { href: link("/ops", { text }) })("x").text, /^<a href="[^"<>\s]*">x<\/a>$/)
  })

  test("shows characters that change what stands around them as what they are not", () => {
    assert.strictEqual(h("p")("a\u202eb\u0000c\nd\ud800").text, "<p>a\ufffdb\ufffdc\nd\ufffd</p>")
  })

  const hostile = `"><script>alert(1)</script><img src=x onerror='alert(1)'>`

  const pagesWith = (text: string) => {
    const task = { ...taskOf(text, text, "dead", now), last_error: text, invoices: [{ invoice_id: text }] }
    const [key] = keysOf(now)
    const given = {
      tasks: [task],
      keys: key === undefined ? [] : [{ ...key, organization_id: text, name: text }],
      audit: [{ ...entryOf(task, now), actor: text, source: text, result: text, target: text }],
      holders: [{ pid: 1, prepared: text, database: text, user: text, application: text, state: text, since: null }]
    }
    const said = figures(Effect.succeed([processOf(now, { checks: { [text]: text }, version: text, roles: [text] })]))
    const all = [
      ...paths,
      ...["/ops/task", "/ops/task/replay"].map((path) => ofTask(path, task)),
      link("/ops/deletions", { q: text, organization: text }),
      link("/ops/keys", { organization: text })
    ]
    return Effect.forEach(all, (path) => ask(path)).pipe(
      Effect.provide(listener(Layer.merge(said, store(given))), { local: true })
    )
  }

  test.live("every page has the same elements, whatever the texts on it are", () =>
    Effect.gen(function* () {
      const [plain, attacked] = [yield* pagesWith("plain"), yield* pagesWith(hostile)]
      assert.deepStrictEqual(
        attacked.map(({ text }) => elements(text)),
        plain.map(({ text }) => elements(text))
      )
    })
  )
})
