/** Health and readiness. Decisions: "Invoice deletion intake", `GET /api/v1/health`. */
import { assert, describe, it as test, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted, Schedule, Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { Reactivity } from "effect/reactivity"
import { TestClock } from "effect/testing"
import { OperationsApi } from "../../../src/api/OperationsApi.ts"
import { connect, CredentialDatabase, RecordDatabase, TaskDatabase } from "../../../src/database/Database.ts"
import { ChangeClock } from "../../../src/records/ChangeClock.ts"
import { HealthChecks } from "../../../src/operations/HealthChecks.ts"
import packageJson from "../../../package.json" with { type: "json" }
import { ClinicAccounts } from "../../../src/psp/ClinicAccounts.ts"
import { PspClient } from "../../../src/psp/PspClient.ts"
import { PspReads } from "../../../src/psp/PspReads.ts"
import * as TcpProxy from "../../support/TcpProxy.ts"
import { send } from "../../http/inProcess.ts"
import { layerIntake, layerMemory } from "../../support/deletions/intake.ts"
import { inItsOwnTime, onDatabase } from "../../support/deletions/support.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const get = (path: string) => send({ path: `/api/v1${path}`, method: "GET", headers: { authorization: undefined } })

const pass = { status: "pass" }
const warn = { status: "warn", output: "Cannot be reached" }
const slow = { status: "warn", output: "Does not answer in time" }

type Place = "up" | "refusing" | "silent" | "empty"

/** Where a database may be, by what becomes of who asks it: its URL, and what happens to it once it is known. */
const places = {
  up: Effect.map(TestDatabase, ({ url }) => ({ url, afterwards: Effect.void })),
  refusing: Effect.map(TestDatabase, ({ url }) => ({
    url: Object.assign(new URL(url), { port: "1" }).href,
    afterwards: Effect.void
  })),
  silent: Effect.gen(function* () {
    const url = new URL((yield* TestDatabase).url)
    const proxy = yield* TcpProxy.make({ host: url.hostname, port: Number(url.port) })
    return { url: Object.assign(url, { port: String(proxy.port) }).href, afterwards: proxy.cut("swallow") }
  }),
  empty: Effect.map(TestDatabase, ({ url }) => ({
    url: Object.assign(new URL(url), { pathname: "postgres" }).href,
    afterwards: Effect.void
  }))
}

const databaseAt = (place: Place) =>
  Effect.gen(function* () {
    const { afterwards, url } = yield* places[place]
    const options = { applicationName: "test", maxConnections: 2, statementTimeout: "5 seconds" } as const
    const database = yield* connect({ ...options, url: Redacted.make(url) })
    yield* afterwards
    return database
  }).pipe(Effect.provide(Reactivity.layer))

/** The server over databases at these places, and what it asks of them. */
const serverOver = (records: Place, credentials: Place, tasks: Place = "up", clock = ChangeClock.layer) =>
  HealthChecks.layer.pipe(
    Layer.provide(clock),
    Layer.provide(
      Layer.mergeAll(
        Layer.effect(RecordDatabase, databaseAt(records)),
        Layer.effect(CredentialDatabase, databaseAt(credentials)),
        Layer.effect(TaskDatabase, databaseAt(tasks)),
        PspReads.layer.pipe(Layer.provide([ClinicAccounts.layerMemory(), PspClient.layerNotConfigured]))
      )
    )
  )

/** Asks, and lets so much time pass as may until the answer. */
const answered = Effect.fnUntraced(function* <A, E, R>(asking: Effect.Effect<A, E, R>) {
  const fiber = yield* Effect.forkScoped(asking, { startImmediately: true })
  const poll = Effect.suspend(() =>
    fiber.pollUnsafe() === undefined ? Effect.fail("no answer within half a second" as const) : Effect.void
  ).pipe(Effect.retry({ schedule: Schedule.spaced("5 millis"), times: 40 }), TestClock.withLive)
  // What answers does so by itself; what hangs has half a second.
  yield* Effect.catch(poll, () => Effect.andThen(TestClock.adjust("500 millis"), poll))
  return yield* Fiber.join(fiber)
})

const cases = [
  ["pass while all databases answer", "up", "up", "up", "pass", { records: pass, credentials: pass, tasks: pass }],
  ["warn while the records cannot be reached", "refusing", "up", "up", "warn", { records: warn }],
  ["warn while the keys cannot be reached", "up", "refusing", "up", "warn", { credentials: warn }],
  ["warn while the tasks cannot be reached", "up", "up", "refusing", "warn", { tasks: warn }],
  ["warn while the records hang", "silent", "up", "up", "warn", { records: slow }],
  ["warn while all hang", "silent", "silent", "silent", "warn", { records: slow, credentials: slow, tasks: slow }]
] as const

const readiness = [
  ["is 200 when the database is migrated", "up", 200],
  ["is 503 until the database is migrated", "empty", 503],
  ["is 503 while the database does not say whether it is", "silent", 503]
] as const

layer(
  TestDatabase.layer,
  onDatabase
)((it) => {
  it.effect.each(cases)("health is 200, within half a second: %s", ([, records, credentials, tasks, status, checks]) =>
    Effect.gen(function* () {
      const context = yield* Layer.build(serverOver(records, credentials, tasks))
      const intake = layerIntake(Layer.merge(layerMemory, Layer.succeedContext(context)))
      const answer = yield* answered(Effect.provide(get("/health"), intake))
      assert.strictEqual(answer.status, 200)
      assert.deepStrictEqual(answer.json, {
        status,
        version: packageJson.version,
        checks: { records: pass, credentials: pass, tasks: pass, ...checks, changes: pass, processor: pass }
      })
    }).pipe(inItsOwnTime)
  )

  it.effect.each([
    [60, pass],
    [
      61,
      {
        status: "warn",
        output: "Held back for 61 seconds: a transaction that has written is open, or a replica is behind"
      }
    ]
  ] as const)("health warns when the changes are held back for more than a minute: %i seconds", ([lag, changes]) =>
    Effect.gen(function* () {
      const held = Layer.effect(
        ChangeClock,
        Effect.map(ChangeClock, (clock) => ChangeClock.of({ ...clock, lastLag: Effect.succeed(lag) }))
      ).pipe(Layer.provide(ChangeClock.layer))
      const context = yield* Layer.build(serverOver("up", "up", "up", held))
      const intake = layerIntake(Layer.merge(layerMemory, Layer.succeedContext(context)))
      const { json } = yield* answered(Effect.provide(get("/health"), intake))
      assert.deepInclude(json, { status: changes.status })
      assert.deepNestedInclude(json, { "checks.changes": changes })
    }).pipe(inItsOwnTime)
  )

  it.effect.each(readiness)("readiness %s", ([, place, status]) =>
    Effect.gen(function* () {
      const context = yield* Layer.build(serverOver(place, "up"))
      const intake = layerIntake(Layer.merge(layerMemory, Layer.succeedContext(context)))
      const answer = yield* answered(Effect.provide(get("/health/ready"), intake))
      assert.strictEqual(answer.status, status)
      assert.deepStrictEqual(answer.json, { ready: status === 200 })
    }).pipe(inItsOwnTime)
  )

  it.effect("readiness is 503 once the service is stopping, while health goes on", () =>
    Effect.gen(function* () {
      const context = yield* Layer.build(serverOver("up", "up"))
      const { stop } = yield* Effect.provide(HealthChecks, context)
      const asks = Effect.gen(function* () {
        const before = yield* get("/health/ready")
        yield* stop
        return [before, yield* get("/health/ready"), yield* get("/health")].map(({ status }) => status)
      })
      const intake = layerIntake(Layer.merge(layerMemory, Layer.succeedContext(context)))
      assert.deepStrictEqual(yield* Effect.provide(asks, intake), [200, 503, 200])
    }).pipe(inItsOwnTime)
  )
})

layer(layerIntake(layerMemory))("health", (it) => {
  it.effect("needs no database, no header, and answers fields in their order", () =>
    Effect.gen(function* () {
      const answer = yield* get("/health")
      assert.strictEqual(answer.text, `{"status":"pass","version":"${packageJson.version}","checks":{}}`)
      assert.strictEqual((yield* get("/health/ready")).text, '{"ready":true}')
    })
  )

  it.effect.each(["/health", "/health/ready"])("is a GET or HEAD: another method of %s is 405", (path) =>
    Effect.gen(function* () {
      for (const method of ["POST", "DELETE"]) {
        const answer = yield* send({ path: `/api/v1${path}`, method })
        assert.strictEqual(answer.status, 405)
        assert.strictEqual(answer.headers["allow"], "GET, HEAD")
      }
    })
  )
})

describe("the OpenAPI description of health", () => {
  const { paths } = OpenApi.fromApi(OperationsApi)

  test("has both paths, provisional, with every status that they answer", () => {
    assert.deepStrictEqual(Object.keys(paths), ["/health", "/health/ready"])
    assert.sameMembers(Object.keys(paths["/health"]?.get?.responses ?? {}), ["200"])
    assert.sameMembers(Object.keys(paths["/health/ready"]?.get?.responses ?? {}), ["200", "503"])
    const isProvisional = Schema.is(Schema.Struct({ "x-provisional": Schema.Literal(true) }))
    for (const { get: operation } of Object.values(paths)) assert.isTrue(isProvisional(operation))
  })
})
