/** The spans of a request and of the run of a task, what is never in them, and the requests that are sampled. */
import { createHash } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { key, send, type Sent } from "../../support/inProcess.ts"
import { eventually } from "../../support/eventually.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import * as Traced from "./traced.ts"

const live = { excludeTestServices: true } as const

const sendFrom = ({ headers }: ReturnType<typeof Traced.newCaller>, sent: Sent = {}) =>
  send({ ...sent, headers: { ...sent.headers, ...headers } })

const unknown = { headers: { authorization: "Bearer pda_live_0123456789abcdefghijklmnopqrstuv012345" } }

const isRun = ({ name }: Traced.Span) => name === "process deletion_tasks"

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
      assert.strictEqual(root.parentSpanId, caller.spanId)
      for (const { endTimeUnixNano: end, startTimeUnixNano: start } of all)
        assert.isTrue(BigInt(start) > 0n && BigInt(end) >= BigInt(start))
      assert.deepInclude(root.attributes, {
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
      assert.strictEqual(statement?.kind, Traced.client)
      assert.deepInclude(statement?.attributes, { "db.system.name": "postgresql", "server.address": "127.0.0.1" })
      const text = String(statement?.attributes["db.query.text"])
      assert.match(text, /^select t\.record.* where t\.organization_id = \$1 .* limit 3$/)
    })
  )

  it.effect("of a delivery does not contain the run of its task, which is a trace of its own", () =>
    Effect.gen(function* () {
      const caller = Traced.newCaller()
      const task = Traced.delivery("linked")
      assert.strictEqual((yield* sendFrom(caller, task)).status, 202)
      yield* Traced.round
      const spans = yield* Traced.spansWith("the run", isRun)
      const run = spans.find(isRun)
      const { root } = yield* Traced.traceOf(caller.traceId)
      assert.isDefined(run)
      assert.notStrictEqual(run.traceId, root.traceId)
      assert.deepStrictEqual([run.parentSpanId, run.kind], [undefined, Traced.consumer])
      assert.strictEqual(run.attributes["practice_data.organization"], "org_oakridge")
      const running = spans.find(({ parentSpanId }) => parentSpanId === run.spanId)
      const statements = spans.filter(({ parentSpanId }) => parentSpanId === running?.spanId)
      assert.deepStrictEqual([running?.name, statements.length], ["Scheduler.run", 1])
    })
  )

  it.effect("is not made of a probe, and of an unknown path has no name of the caller's choice", () =>
    Effect.gen(function* () {
      const probe = Traced.newCaller()
      yield* sendFrom(probe, { path: "/api/v1/health", method: "GET" })
      const caller = Traced.newCaller()
      const headers = { "user-agent": "x".repeat(5000) }
      yield* sendFrom(caller, { path: `/${"y".repeat(5000)}?token=${Traced.secrets.stripe}`, method: "PURGE", headers })
      const { root, tree } = yield* Traced.traceOf(caller.traceId)
      assert.deepStrictEqual(tree, { HTTP: [] })
      assert.deepInclude(root.attributes, { "http.request.method": "_OTHER", "http.response.status_code": 404 })
      for (const text of Object.values(root.attributes)) assert.isAtMost(String(text).length, 256)
      assert.isFalse((yield* Traced.Collector.spans).some(({ traceId }) => traceId === probe.traceId))
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
      assert.deepInclude(root.attributes, { "http.response.status_code": 503, "error.type": "503" })
      const failed = all.filter(({ status }) => status.code === Traced.failure)
      assert.includeMembers(
        failed.map(({ name }) => name),
        ["POST /api/v3/products/search", "Records.search"]
      )
      const statement = failed.find(({ kind }) => kind === Traced.client)
      assert.strictEqual(statement?.attributes["db.response.status_code"], "42P01")
      for (const { text } of yield* Traced.Collector) assert.notInclude(text, "does not exist")
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
      const seen = yield* Traced.Collector
      const all = seen.map(({ text }) => text).join()
      const hashes = [hash.toString("hex"), hash.toString("base64")]
      const texts = [
        "ghijklmnopqrstuv",
        "invoice_oakridge_0001",
        ...Object.values(Traced.secrets),
        ...Object.values(values)
      ]
      for (const secret of [key, ...hashes, ...texts]) assert.notInclude(all, secret)
      assert.isTrue(seen.every(({ headers }) => headers["x-api-key"] === Traced.secrets.collector))
    })
  )
})

layer(Traced.traced, live)("exports", (it) => {
  it.effect("have log lines with their trace, and without secrets", () =>
    Effect.gen(function* () {
      yield* send(Traced.delivery("logged"))
      yield* Traced.round
      yield* Effect.log(`authorization: Bearer ${Traced.secrets.collector}`)
      const run = (yield* Traced.spansWith("the run", isRun)).find(isRun)
      yield* eventually("the line without its secret", Traced.Collector.lines, (found) =>
        found.some(({ body }) => body === "authorization: Bearer …")
      )
      const line = (yield* Traced.Collector.lines).find(({ attributes }) => attributes["idempotency_key"] === "logged")
      assert.deepStrictEqual([line?.severityText, line?.traceId, line?.spanId], ["Info", run?.traceId, run?.spanId])
      assert.strictEqual(line?.resource["service.name"], "practice-data")
    })
  )
})
