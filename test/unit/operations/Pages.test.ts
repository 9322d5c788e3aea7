/** The operators' pages over made-up figures and stores: the facts on them, and that no text becomes HTML. */
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { h, link } from "../../../src/http/Html.ts"
import { OperatorStore, Problem } from "../../../src/operations/OperatorStore.ts"
import { ask, basic, busy, checksOf, entryOf, factOf, figures, keysOf, listener, processOf } from "./fakes.ts"
import { revokedId, store, taskOf, token } from "./fakes.ts"

const now = Effect.runSync(Clock.currentTimeMillis)

const paths = ["/ops", "/ops/requests", "/ops/deletions", "/ops/keys", "/ops/secrets", "/ops/audit"]
const documents = ["/ops/runbook", "/ops/guide"]

const dead = taskOf("org_oakridge", "delivery-1", "dead", now)
const another = taskOf("org_oakridge", "delivery-3", "dead", now)
const completed = taskOf("org_harbor", "delivery-2", "completed", now)

const ofTask = (path: string, { id, organization_id }: typeof dead) => link(path, { organization: organization_id, id })

const secretId = "secret_0a1b2c3d4e5f"
const secret = { organization_id: "org_harbor", id: secretId, created_at: dead.received_at, revoked_at: null }

const verdicts = ["deleted", "not_found", "clinic_mismatch"] as const
const facts = verdicts.map((verdict) => factOf(completed, verdict, now))

const memory = { secrets: [secret], tasks: [dead, completed], facts, keys: keysOf(now), audit: [entryOf(dead, now)] }

const form = { name: "alice", token }

/** A program that sends the token. */
const byCurl = { method: "POST", headers: { ...basic("bob", token), accept: "*/*" } }

const well = figures(Effect.succeed(processOf(now, { recent: busy(now) })))

const sick = figures(
  Effect.succeed(processOf(now, { checks: checksOf({ tasks: "Cannot be reached", records: null }), ready: false }))
)

const shows = Effect.fnUntraced(function* (path: string, words: ReadonlyArray<string>) {
  const { text } = yield* ask(path)
  for (const each of words) assert.include(text, each)
  return text
})

layer(listener(Layer.merge(well, store(memory))), { excludeTestServices: true })("the operators' pages", (it) => {
  it.effect.each([...paths, ...documents])("%s is a whole page that loads nothing from elsewhere", (path) =>
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

  it.effect("the links of the runbook and the guide lead to places in them", () =>
    Effect.gen(function* () {
      const pages = yield* Effect.forEach(documents, (path) => Effect.map(ask(path), ({ text }) => ({ path, text })))
      const places = pages.flatMap(({ path, text }) =>
        Array.from(text.matchAll(/ id="([^"]+)"/g), ([, id = ""]) => `${path}#${id}`)
      )
      const linked = pages.flatMap(({ path, text }) =>
        Array.from(text.matchAll(/ href="((?:\/ops\/\w+)?#[^"]+)"/g), ([, href = ""]) =>
          href.startsWith("#") ? `${path}${href}` : href
        )
      )
      assert.includeMembers(places, ["/ops/runbook#practicedatadown", "/ops/guide#the-operators-page"])
      assert.include(linked, "/ops/guide#changes")
      assert.includeMembers(places, linked)
    })
  )

  it.effect("/ redirects to the overview, which shows dependencies and the process, as /health does", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* ask("/")).headers.get("location"), "/ops")
      yield* shows("/ops", ["Requests in 1 min", "Dead deletions", "processor", "pid 4242", "180 MiB"])
      const parts = ["records", "credentials", "tasks", "changes", "processor"].map((name) => `"${name}"`)
      yield* shows("/health", ['{"status":"pass"', ...parts])
    })
  )

  it.effect("requests are shown by endpoint and organization, the most active first, and by their refusal", () =>
    Effect.gen(function* () {
      const text = yield* shows("/ops/requests?window=day", ["Requests in 5 min", "outage", "invalid"])
      assert.match(text, /aria-current="true"\s*>Last day/)
      for (const name of ["willow_creek_veterinary_partners", "oakridge", "harbor"])
        assert.include(text, `org_${name}<`)
      const requests = Array.from(text.matchAll(/class="id"\s*>\/api[^<]*<\/span><\/th><td[^>]*>(\d+)</g), ([, one]) =>
        Number(one)
      )
      assert.isAbove(requests.length, 2)
      const sorted = requests.toSorted((one, two) => two - one)
      assert.deepStrictEqual(requests, sorted)
    })
  )

  it.effect.each([
    ["", ["delivery-1", "delivery-2"]],
    ["?state=dead", ["delivery-1"]],
    ["?organization=org_harbor", ["delivery-2"]],
    ["?q=delivery-1", ["delivery-1"]],
    ["?q=delivery-1&organization=org_harbor", []],
    ["?q=delivery-1&state=completed", []],
    ["?q=%20&state=", ["delivery-1", "delivery-2"]]
  ] as const)("deletions are found by state, organization and Idempotency-Key: %s", ([query, keys]) =>
    Effect.gen(function* () {
      const { text } = yield* ask(`/ops/deletions${query}`)
      const found = memory.tasks.map((task) => task.idempotency_key).filter((key) => text.includes(`>${key}</a`))
      assert.deepStrictEqual(found, [...keys])
    })
  )

  it.effect("a task is shown with its error, outcome and trace, and its changes by operators in the audit log", () =>
    Effect.gen(function* () {
      const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
      yield* shows(ofTask("/ops/task", dead), ["invoices_total_check", trace, "Cancel it…", "4 invoices and 3 lines"])
      yield* shows(link("/ops/audit", { organization: "org_oakridge", target: dead.id }), ["alice"])
      assert.notInclude(yield* shows(link("/ops/audit", { target: completed.id }), ["None."]), "alice")
      const text = yield* shows(ofTask("/ops/task", completed), ["the organization had no such invoice"])
      assert.notInclude(text, "Replay…")
    })
  )

  it.effect.each(["/nope", "/ops/task", "/ops/task?organization=org_harbor&id=nope"])("%s is 404", (path) =>
    Effect.map(ask(path), ({ status }) => assert.strictEqual(status, 404))
  )

  const replayable = listener(Layer.merge(well, store({ ...memory, tasks: [dead, another, completed] })))

  it.effect("a page reloads without JavaScript too; a form that a person fills in does not", () =>
    Effect.gen(function* () {
      yield* shows("/ops", ["/ops/live.js", '<noscript><meta http-equiv="refresh"'])
      assert.notMatch(yield* shows(ofTask("/ops/task/replay", dead), ["Replay this deletion"]), /live\.js|http-equiv/)
    })
  )

  it.effect.each([
    ["replay", "Replaying", "Only a dead one can be replayed."],
    ["cancel", "Cancelled", "Only a scheduled or dead one can be cancelled."]
  ] as const)(
    "%s: of a dead task with the token, by the form or by HTTP Basic; not of another one",
    ([action, ...texts]) =>
      Effect.gen(function* () {
        const [done, otherwise] = texts
        const path = `/ops/task/${action}`
        const byForm = yield* ask(ofTask(path, dead), { form })
        assert.deepStrictEqual([byForm.status, byForm.headers.get("location")], [303, ofTask("/ops/task", dead)])
        const { status, text } = yield* ask(ofTask(path, another), byCurl)
        assert.deepStrictEqual([status, text], [200, `${done} ${another.id}\n`])
        const refused = yield* ask(ofTask(path, completed), byCurl)
        assert.deepStrictEqual([refused.status, refused.text], [409, `This deletion is completed. ${otherwise}\n`])
      }).pipe(Effect.provide(replayable, { local: true }))
  )

  it.effect("a task is shown with its items and what is still open, and is undone in parts and whole", () =>
    Effect.gen(function* () {
      const items = [
        "1 invoice deleted, 1 invoice remembered, 1 invoice clinic mismatch",
        "1 item not found",
        "clinic_1"
      ]
      const undo = ofTask("/ops/task/undo", completed)
      const text = yield* shows(ofTask("/ops/task", completed), [...items, "may still bring records", "Undo it…"])
      // Neither the item that did not fit, nor a task that has run.
      assert.lengthOf(text.match(/>Undo…</g) ?? [], 2)
      assert.notInclude(text, "Cancel it…")
      const one = `${undo}&kind=invoice&record=invoice_not_found`
      yield* shows(one, ["Undoes 1 deletion of this invoice with its lines", "Undo this deletion"])
      const done = yield* ask(one, { form })
      assert.deepStrictEqual([done.status, done.headers.get("location")], [303, ofTask("/ops/task", completed)])
      yield* shows(ofTask("/ops/task", completed), ["1 invoice undone", "Undo it…"])
      assert.strictEqual((yield* ask(undo, byCurl)).text, "Undone: 2 items\n")
      assert.strictEqual((yield* ask(undo, byCurl)).status, 409)
    }).pipe(Effect.provide(replayable, { local: true }))
  )

  it.effect("the dead tasks of a reason are replayed after their number was confirmed", () =>
    Effect.gen(function* () {
      yield* shows("/ops/deletions?state=dead", ["Replay dead deletions…"])
      const path = "/ops/deletions/replay"
      const text = yield* shows(`${path}?reason=total`, ["<strong>2</strong>", "dead deletions match"])
      // The tasks that die after the confirmation was shown are left alone.
      assert.match(text, /action="[^"]*reason=total[^"]*before=\d{4}-/)
      // JavaScript reads the second as one of 2001.
      for (const since of ["soon", "11", "2026-02-30", "%2B010000-01-01T00:00Z", "0001-01-01T00:00%2B01:00"])
        assert.strictEqual((yield* ask(`${path}?since=${since}`)).status, 422)
      assert.strictEqual((yield* ask(`${path}?reason=${"x".repeat(201)}`)).status, 422)
      const done = yield* ask(path, { form: { ...form, reason: "total" } })
      assert.deepStrictEqual([done.status, done.headers.get("location")], [303, "/ops/deletions?state=dead"])
      assert.strictEqual((yield* ask(`${path}?reason=total`, byCurl)).status, 409)
    }).pipe(Effect.provide(replayable, { local: true }))
  )

  it.effect.each([
    ["/ops/keys", { organization: "org_a", purpose: "CI" }, "pda_live_new", "key_3nVVQ0aXbT1Zk"],
    ["/ops/secrets", { organization: "org_a" }, "whsec_new", secretId]
  ] as const)("%s: one is made, and shown once; one is revoked", ([path, fields, made, old]) =>
    Effect.gen(function* () {
      yield* shows(path, [`${path}/create`, `${path}/revoke?organization=`])
      const create = { form: { ...fields, ...form } }
      const shown = yield* ask(`${path}/create`, create)
      assert.deepStrictEqual([shown.status, shown.headers.get("cache-control")], [200, "no-store"])
      assert.include(shown.text, `<pre>${made}</pre>`)
      const text = yield* ask(`${path}/create`, { ...create, headers: { accept: "*/*" } })
      assert.strictEqual(text.text, `${made}\n`)
      assert.strictEqual((yield* ask(`${path}/create`, { form: { ...form, organization: " " } })).status, 422)
      yield* shows(`${path}/revoke?id=${old}`, [old, "It stops working at once"])
      for (const [revoked, status] of [
        [`${path}/revoke?id=${old}`, 303],
        [`${path}/revoke?id=nope`, 404],
        [`/ops/keys/revoke?id=${revokedId}`, 409]
      ] as const) {
        assert.strictEqual((yield* ask(revoked, { form })).status, status)
      }
    })
  )

  it.effect.each([
    ["a wrong token", { form: { name: "alice", token: "wrong-horse-battery" } }, 403],
    ["a wrong token beside a right one", { form: { name: "a", token: "x" }, headers: basic("a", token) }, 403],
    ["no name", { form: { name: " ", token } }, 422],
    ["no token", { form: { name: "alice" } }, 401],
    ["no form", { method: "POST" }, 401]
  ] as const)("nothing is replayed with %s", ([, asked, expected]) =>
    Effect.gen(function* () {
      const { status, text } = yield* ask(ofTask("/ops/task/replay", dead), asked)
      assert.strictEqual(status, expected)
      assert.notInclude(text, "wrong-horse")
      if (expected === 403) assert.include(text, "Wrong token. Nothing was changed.")
      yield* shows(ofTask("/ops/task", dead), ["Replay…", "None so far"])
    })
  )
})

layer(listener(Layer.merge(sick, store({}))), { excludeTestServices: true })("when nothing can be read", (it) => {
  it.effect.each(paths)("%s shows why in its place, and the rest", (path) =>
    shows(path, ["</footer>", ...(path === "/ops/requests" ? [] : ["There is no such store"])])
  )

  it.effect("the overview and /health show problems", () =>
    Effect.andThen(
      shows("/ops", ["Cannot be reached", "not ready"]),
      shows("/health", ['{"status":"warn"', '"ready":false', "Cannot be reached"])
    )
  )
})

test.effect("a dependency keeps the time of its last change, also while the clock is set back", () => {
  const failing = processOf(now, { checks: checksOf({ tasks: "Cannot be reached" }) })
  let current = failing
  return Effect.gen(function* () {
    yield* ask("/health")
    yield* TestClock.adjust("2 seconds")
    yield* shows("/health", ['"since":"1970-01-01T00:00:00.000Z","output":"Cannot be reached"'])
    current = processOf(now)
    yield* TestClock.adjust("4 seconds")
    yield* shows("/health", ['"tasks":{"status":"pass","since":"1970-01-01T00:00:05.000Z"}'])
    yield* TestClock.setTime(-600_000)
    yield* shows("/health", ['"since":"1970-01-01T00:00:05.000Z"}'])
    current = failing
    yield* TestClock.adjust("1 second")
    yield* shows("/health", ['"since":"1969-12-31T23:50:01.000Z","output":"Cannot be reached"'])
  }).pipe(Effect.provide(listener(Layer.merge(figures(Effect.sync(() => current)), store({})))))
})

/** A store without rows, with these reads and changes in place of its own. */
const storeWith = (some: Partial<OperatorStore["Service"]>) =>
  Layer.effect(
    OperatorStore,
    OperatorStore.useSync((of) => OperatorStore.of({ ...of, ...some }))
  ).pipe(Layer.provide(store({})))

const lost = (message: string) => new Problem({ status: 503, message })

test.effect("the form of a change whose store is lost meanwhile says that it may be done", () => {
  let reads = 0
  const countDead = () => Effect.suspend(() => (reads++ === 0 ? Effect.succeed(1) : lost("Cannot be reached.")))
  const services = Layer.merge(well, storeWith({ countDead, replayDead: () => lost("It may be done.") }))
  return Effect.gen(function* () {
    const { status, text } = yield* ask("/ops/deletions/replay", { form })
    assert.strictEqual(status, 503)
    assert.include(text, "It may be done.")
  }).pipe(Effect.provide(listener(services)))
})

const never = () => Effect.never
const silentStore = storeWith({ taskCounts: Effect.never, tasks: never, keys: never, secrets: never, audit: never })

layer(listener(Layer.merge(figures(Effect.never), silentStore)))("when nothing answers", (it) => {
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
    const own = processOf(now, { checks: checksOf({ [text]: text }), version: text, roles: [text] })
    const all = [
      ...paths,
      ...["/ops/task", "/ops/task/replay", "/ops/task/undo"].map((path) => ofTask(path, task)),
      link("/ops/deletions", { q: text, organization: text }),
      link("/ops/keys", { organization: text })
    ]
    const services = Layer.merge(figures(Effect.succeed(own)), store(given))
    const found = Effect.forEach(all, (path) => Effect.map(ask(path), (answer) => elements(answer.text)))
    return Effect.provide(found, listener(services, { token }), { local: true })
  }

  test.live("every page has the same elements, whatever the texts on it are", () =>
    Effect.gen(function* () {
      const hostile = `"><script>alert(1)</script><img src=x onerror='alert(1)'>`
      assert.deepStrictEqual(yield* pagesWith(hostile), yield* pagesWith("plain"))
    })
  )
})
