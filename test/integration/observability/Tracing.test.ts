/** The spans of a request and of the run of a task, what is never in them, and the requests that are sampled. */
import { createHash } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, type Tracer } from "effect"
import { key, send, type Sent } from "../../support/inProcess.ts"
import { startWorker } from "../../support/deletions/workerFixture.ts"
import { Recorded, textOf } from "../../support/Recorded.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { live } from "../../support/tries.ts"
import * as Traced from "./traced.ts"

const sendFrom = ({ headers }: ReturnType<typeof Traced.newCaller>, sent: Sent = {}) =>
  send({ ...sent, headers: { ...sent.headers, ...headers } })

const unknown = { headers: { authorization: "Bearer pda_live_0123456789abcdefghijklmnopqrstuv012345" } }

const attributesOf = (span?: Tracer.NativeSpan) => Object.fromEntries(span?.attributes ?? [])

const isRun = ({ name }: Tracer.NativeSpan) => name === "process deletion_tasks"

layer(Traced.traced, live)("a trace", (it) => {
  it.effect("continues the caller's, down to each statement", () =>
    Effect.gen(function* () {
      const caller = Traced.newCaller()
      const own = { "x-request-id": "request-1", "user-agent": "a client" }
      const { headers } = yield* sendFrom(caller, { json: { limit: 3 }, headers: own })
      const { all, root, tree } = yield* Traced.traceOf(caller.traceId)
      const database = new URL((yield* TestDatabase).url).pathname.slice(1)
      assert.deepStrictEqual(tree, {
        "POST /api/v3/charges/search": [
          { "OrgResolver.resolve": [{ [database]: [] }] },
          { "Records.search": [{ [database]: [] }] }
        ]
      })
      assert.strictEqual(Traced.parentOf(root), caller.spanId)
      assert.deepInclude(attributesOf(root), {
        "http.request.method": "POST",
        "url.path": "/api/v3/charges/search",
        "http.route": "/api/v3/charges/search",
        "http.response.status_code": 200,
        "user_agent.original": "a client",
        "practice_data.request_id": "request-1",
        "practice_data.organization": "org_oakridge",
        "practice_data.rows": 3
      })
      assert.isUndefined(headers["traceparent"])
      const statement = all.findLast(({ name }) => name === database)
      assert.strictEqual(statement?.kind, "client")
      assert.deepInclude(attributesOf(statement), { "db.system.name": "postgresql", "server.address": "127.0.0.1" })
      const text = String(attributesOf(statement)["db.query.text"])
      assert.match(text, /^select t\.record.* where t\.organization_id = \$1 .* limit 3$/)
    })
  )

  it.effect("of a delivery does not contain the run of its task, which is a trace of its own", () =>
    Effect.gen(function* () {
      const caller = Traced.newCaller()
      const task = Traced.delivery("linked")
      assert.strictEqual((yield* sendFrom(caller, task)).status, 202)
      yield* startWorker()
      const spans = yield* Traced.spansWith("the run", isRun)
      const run = spans.find(isRun)
      const { root } = yield* Traced.traceOf(caller.traceId)
      assert.isDefined(run)
      assert.notStrictEqual(run.traceId, root.traceId)
      assert.deepStrictEqual([Traced.parentOf(run), run.kind], [undefined, "consumer"])
      assert.strictEqual(attributesOf(run)["practice_data.organization"], "org_oakridge")
      const running = spans.find((span) => Traced.parentOf(span) === run.spanId)
      const statements = spans.filter((span) => Traced.parentOf(span) === running?.spanId)
      assert.deepStrictEqual([running?.name, statements.length], ["Scheduler.run", 1])
    })
  )

  it.effect("is not made of a probe, and does not take its name from an unknown path", () =>
    Effect.gen(function* () {
      const probe = Traced.newCaller()
      yield* sendFrom(probe, { path: "/api/v1/health", method: "GET" })
      const caller = Traced.newCaller()
      const headers = { "user-agent": "x".repeat(5000) }
      yield* sendFrom(caller, { path: `/${"y".repeat(5000)}?token=${Traced.secret}`, method: "PURGE", headers })
      const { root, tree } = yield* Traced.traceOf(caller.traceId)
      assert.deepStrictEqual(tree, { PURGE: [] })
      assert.deepInclude(attributesOf(root), { "http.request.method": "PURGE", "http.response.status_code": 404 })
      for (const text of root.attributes.values()) assert.isAtMost(String(text).length, 256)
      assert.isFalse((yield* Recorded).spans.some(({ traceId }) => traceId === probe.traceId))
    })
  )

  it.effect("has the kind and the code of a failure, and not the words of the database", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`alter table products rename to hidden_products`
      const caller = Traced.newCaller()
      const answer = yield* sendFrom(caller, { path: "/api/v3/products/search" })
      yield* sql`alter table hidden_products rename to products`
      assert.strictEqual(answer.status, 503)
      const { all, root } = yield* Traced.traceOf(caller.traceId)
      assert.deepInclude(attributesOf(root), { "http.response.status_code": 503, "error.type": "503" })
      const failed = all.filter(({ status }) => status._tag === "Ended" && Exit.isFailure(status.exit))
      const names = failed.map(({ name }) => name)
      assert.includeMembers(names, ["POST /api/v3/products/search", "Records.search"])
      const statement = failed.find(({ kind }) => kind === "client")
      assert.strictEqual(attributesOf(statement)["db.response.status_code"], "42P01")
      for (const span of all) assert.notInclude(textOf(span), "does not exist")
    })
  )

  it.effect("has no secret, no value of a statement, no header and no query", () =>
    Effect.gen(function* () {
      const values = { filter: "a-value-of-a-filter", header: "a-value-of-a-header", query: "a-value-of-a-query" }
      const caller = Traced.newCaller()
      const task = Traced.delivery("secrets")
      const requests: ReadonlyArray<Sent> = [
        { json: { id: values.filter } },
        { path: "/api/v3/charges/get", json: { id: values.filter } },
        unknown,
        { path: `/api/v3/charges/search?filter=${values.query}` },
        { headers: { "x-secret": values.header, cookie: values.header, baggage: `x=${values.header}` } },
        { path: "/api/v3/psp-charges/search", json: { clinic: "clinic_oakridge_01", starting_after: values.filter } },
        { ...task, headers: { ...task.headers, "webhook-signature": `v1,${values.header}` } }
      ]
      for (const request of requests) yield* sendFrom(Traced.newCaller(), request)
      yield* sendFrom(caller)
      yield* Traced.traceOf(caller.traceId)
      const hash = createHash("sha256").update(key).digest()
      const all = (yield* Recorded).spans.map(textOf).join()
      const hashes = [hash.toString("hex"), hash.toString("base64")]
      const texts = ["ghijklmnopqrstuv", "invoice_oakridge_0001", Traced.secret, ...Object.values(values)]
      for (const secret of [key, ...hashes, ...texts]) assert.notInclude(all, secret)
    })
  )
})
