/** The effects of the settings of a start, over a Postgres: `unit/operations/Settings` has their values and defaults. */
import { createServer } from "node:net"
import { assert, layer } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Metric } from "effect"
import * as App from "../../../src/app/App.ts"
import { OrgResolver } from "../../../src/keys/OrgResolver.ts"
import { PspClient } from "../../../src/psp/PspClient.ts"
import { decodeTexts } from "../../../src/database/Columns.ts"
import { path as intake } from "../../support/deletions/intake.ts"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import { InProcess, send } from "../../support/inProcess.ts"
import * as Listening from "../../support/Listening.ts"
import { live } from "../../support/tries.ts"
import { clientOf, emptyDatabase, TestDatabase } from "../../support/TestDatabase.ts"

/** A client of the service, which runs in this process until the scope closes. */
const started = Effect.fnUntraced(function* (settings: Readonly<Record<string, string>>) {
  const { url } = yield* TestDatabase
  const { port } = yield* Effect.scoped(Listening.on(createServer()))
  const env = { DATABASE_URL: url, HOST: "127.0.0.1", PORT: `${port}`, LOG_LEVEL: "None", DRAIN: "0s", ...settings }
  yield* Layer.build(App.layer).pipe(Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env }))))
  return yield* Client.make(`http://127.0.0.1:${port}`)
})

const headers = Client.headersOf("oakridge")
const clinic = `{"clinic":"clinic_oakridge_01"}`
const search = { path: "/api/v3/charges/search", headers, body: "{}" }
const delivery = {
  path: intake,
  headers: { "content-type": "application/json", "idempotency-key": "k", "x-organization-id": "org_a" },
  body: `{"invoices":[{"invoice_id":"i"}]}`
}

/** The statuses of eight requests in a row. */
const statusesOf = <E>(request: Effect.Effect<Client.Answer, E>) =>
  Effect.map(Effect.replicateEffect(request, 8), (found) => [...new Set(found.map(({ status }) => status))])

const checksIn = (text: string) => Object.keys(JSON.parse(text).checks)

/** Services of single roles, which their metrics show. */
const families = Effect.map(Metric.snapshot, (all) =>
  ["processor", "task_runs"].filter((family) => all.some(({ id }) => id.startsWith(`practice_data_${family}_`)))
)

layer(TestDatabase.layerDemo, live)("A start", (it) => {
  it.effect("with ROLES=data-api takes no deliveries; a processor and RATE_LIMIT are off by default", () =>
    Effect.gen(function* () {
      const { call } = yield* started({ ROLES: "data-api" })
      assert.strictEqual((yield* call(delivery)).status, 404)
      assert.deepStrictEqual(yield* statusesOf(call(search)), [200])
      const { status, text } = yield* call({ ...search, path: "/api/v3/psp-charges/search", body: clinic })
      assert.deepStrictEqual([status, text], [503, `{"detail":"The payment processor is not configured"}`])
    })
  )

  it.effect("limits the requests of an organization by RATE_LIMIT", () =>
    Effect.gen(function* () {
      const { call } = yield* started({ ROLES: "data-api", RATE_LIMIT: "1" })
      assert.include(yield* statusesOf(call(search)), 429)
    })
  )

  it.effect("with ROLES=intake,worker serves no records, obeys REQUIRE_SIGNATURES and TASK_RETENTION", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const kept = sql`select 1 from deletion_tasks where payload is not null`
      yield* sql`update deletion_tasks set finished_at = now() - interval '2 hours'`
      assert.isNotEmpty(yield* kept)
      const { call } = yield* started({ ROLES: "intake,worker", REQUIRE_SIGNATURES: "true", TASK_RETENTION: "1h" })
      assert.strictEqual((yield* call(search)).status, 404)
      assert.strictEqual((yield* call(delivery)).status, 401)
      yield* eventually("no payload of a completed task", kept, (rows) => rows.length === 0)
    })
  )

  it.effect.each([
    ["intake", ["tasks"], ["tasks"], []],
    ["worker", ["tasks"], ["tasks", "changes"], ["task_runs"]],
    [
      "data-api",
      ["credentials", "records", "tasks"],
      ["records", "credentials", "tasks", "changes", "processor"],
      ["processor"]
    ]
  ] as const)("with ROLES=%s opens the pools %j, checks %j and measures %j alone", ([role, pools, checks, measured]) =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const opened = decodeTexts(sql`
        select distinct substr(application_name, 15) as text from pg_stat_activity
        where datname = current_database() and application_name ~ '^practice-data-(records|credentials|tasks)$'
        order by 1`)
      yield* eventually("no pool of another test", opened, ({ length }) => length === 0)
      const { call } = yield* started({ ROLES: role, STRIPE_SECRET_KEY: "sk_test_none" })
      yield* eventually("the pools of the role", opened, ({ length }) => length === pools.length)
      assert.deepStrictEqual(yield* opened, [...pools])
      const { text } = yield* call({ method: "GET", path: "/api/v1/health" })
      assert.deepStrictEqual(checksIn(text), [...checks])
      yield* eventually("its metrics", families, (found) => String(found) === String(measured))
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map()))
  )

  it.effect("makes the tables of a real database with MIGRATE=true alone", () =>
    Effect.gen(function* () {
      const url = yield* emptyDatabase
      const sql = yield* clientOf(url)
      const tables = sql`select 1 from pg_class where relname = 'charges'`
      yield* started({ DATABASE_URL: url })
      assert.lengthOf(yield* tables, 0)
      yield* started({ DATABASE_URL: url, MIGRATE: "true" })
      assert.lengthOf(yield* tables, 1)
    })
  )
})

const dataApi = App.dataApi.pipe(
  Layer.provide(OrgResolver.layerMemory({ my_key: "org_oakridge" })),
  Layer.provide(App.services),
  Layer.provide([TestDatabase.shared, PspClient.layerNotConfigured])
)

layer(InProcess.layerOf(Layer.provide(dataApi, TestDatabase.layerDemo)), live)("the data API", (it) => {
  it.effect("of a server of others looks keys up with the OrgResolver that it is given", () =>
    Effect.gen(function* () {
      const [own, demo] = yield* Effect.forEach(["my_key", "pda_demo_oakridge"], (key) =>
        send({ headers: { authorization: `Bearer ${key}` } })
      )
      assert.deepStrictEqual([own?.status, demo?.status], [200, 401])
    })
  )
})
