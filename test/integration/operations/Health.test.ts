/** `GET /api/v1/health` and readiness, over databases that answer, refuse, hang, or are empty; and the probes of them. */
import { assert, it as test, layer } from "@effect/vitest"
import { Clock, Context, DateTime, Effect, Fiber, Layer, Record } from "effect"
import { TestClock } from "effect/testing"
import packageJson from "../../../package.json" with { type: "json" }
import * as Database from "../../../src/database/Database.ts"
import type { Role } from "../../../src/operations/Settings.ts"
import { HealthChecks } from "../../../src/operations/HealthChecks.ts"
import { PspClient } from "../../../src/psp/PspClient.ts"
import { ClinicAccounts, PspReads } from "../../../src/psp/PspReads.ts"
import { Sweep } from "../../../src/deletions/Sweep.ts"
import { ChangeClock, type FeedState } from "../../../src/changes/ChangeClock.ts"
import { send } from "../../support/inProcess.ts"
import { layerIntake, layerMemory } from "../../support/deletions/intake.ts"
import { inItsOwnTime, onDatabase } from "../../support/deletions/tasks.ts"
import * as TcpProxy from "../../support/TcpProxy.ts"
import { clientOf, loginOf, migratedDatabase, newLogin, TestDatabase } from "../../support/TestDatabase.ts"

const get = (path: string) => send({ path: `/api/v1${path}`, method: "GET", headers: { authorization: undefined } })

const loginsOf = { "data-api": "api", intake: "intake", worker: "worker" } as const

/** `reading`: it refuses writes, as with a full disk. Of a role: with the login of it. `older` lacks a migration. */
type Place = "up" | "refusing" | "silent" | "empty" | "older" | "forbidden" | "reading" | Role

const options = {
  maxConnections: 2,
  statementTimeout: "5 seconds",
  // A function of the test takes the place of the system's clock.
  settings: { search_path: "public, pg_catalog" }
} as const

/** The URL of a database that lacks a migration. */
class Older extends Context.Service<Older, string>()("practice-data/test/integration/operations/Health/Older") {
  static readonly layer = Layer.effect(
    Older,
    Effect.tap(migratedDatabase, (url) =>
      Effect.flatMap(clientOf(url), (sql) => sql`delete from migrations where name = '00004_access'`)
    )
  )
}

const databaseAt = Effect.fnUntraced(function* (place: Place) {
  const url = new URL((yield* TestDatabase).url)
  switch (place) {
    case "refusing":
      return yield* clientOf(Object.assign(url, { port: "1" }).href, options)
    case "empty":
      return yield* clientOf(Object.assign(url, { pathname: "postgres" }).href, options)
    case "older":
      return yield* clientOf(yield* Older, options)
    case "reading": {
      const settings = { ...options.settings, default_transaction_read_only: "on" }
      return yield* clientOf(url.href, { ...options, settings })
    }
    case "forbidden":
      return yield* loginOf("writer")
    case "data-api":
    case "intake":
    case "worker":
      return yield* loginOf(loginsOf[place])
    default: {
      const { proxy, url: proxied } = yield* TcpProxy.through(url.href)
      const database = yield* clientOf(proxied, options)
      // Its connection is open: no time of the test passes until then.
      yield* database`select 1`
      if (place === "up") return database
      yield* proxy.cut("swallow")
      // Before the connections are closed, which would wait for their statements.
      yield* Effect.addFinalizer(() => proxy.cut("reset"))
      return database
    }
  }
})

interface Given {
  readonly records?: Place
  readonly credentials?: Place
  readonly tasks?: Place
  readonly changes?: FeedState
  readonly processor?: "up" | "down" | "none"
  /** The seconds since the worker last swept. */
  readonly unswept?: number
  /** The seconds that the databases' clock is behind this machine's. */
  readonly behind?: number
}

/** The checks over any databases. */
const checksOf = ({ changes: state = "Served", processor = "up", unswept = 0 }: Given, roles: ReadonlyArray<Role>) => {
  const changes = Layer.effect(
    ChangeClock,
    ChangeClock.useSync((clock) => ChangeClock.of({ ...clock, state: Effect.succeed(state) }))
  ).pipe(Layer.provide(ChangeClock.layer))
  const psp = Layer.effect(
    PspReads,
    PspReads.useSync((reads) => PspReads.of({ ...reads, state: Effect.succeed(processor) }))
  ).pipe(Layer.provide(PspReads.layer), Layer.provide([ClinicAccounts.layerMemory(), PspClient.layerNotConfigured]))
  const sweep = Layer.succeed(Sweep, Sweep.of({ run: Effect.never, unswept: Effect.succeed(unswept) }))
  return HealthChecks.layer(roles).pipe(Layer.provide([changes, psp, sweep]))
}

/** The checks over databases at these places. */
const checksOver = (given: Given, roles: ReadonlyArray<Role> = ["data-api"]) =>
  checksOf(given, roles).pipe(
    Layer.provide([
      Layer.effect(Database.RecordDatabase, databaseAt(given.records ?? "up")),
      Layer.effect(Database.CredentialDatabase, databaseAt(given.credentials ?? "up")),
      Layer.effect(Database.TaskDatabase, databaseAt(given.tasks ?? "up"))
    ])
  )

const serverOver = Effect.fnUntraced(function* (given: Given) {
  const { sql } = yield* TestDatabase
  const now = DateTime.makeUnsafe((yield* Clock.currentTimeMillis) - (given.behind ?? 0) * 1000)
  yield* sql.unsafe(`create or replace function public.clock_timestamp() returns timestamptz language sql stable
    return timestamptz '${DateTime.formatIso(now)}'`)
  const context = yield* Layer.build(checksOver(given))
  return layerIntake(Layer.merge(layerMemory, Layer.succeedContext(context)))
})

/** The answer to the second of two requests, half a second after both where a database hangs. */
const answered = Effect.fnUntraced(function* (path: string, given: Given) {
  const server = yield* serverOver(given)
  const both = Effect.all([get(path), get(path)], { concurrency: 2 })
  const fiber = yield* Effect.forkScoped(Effect.provide(both, server), { startImmediately: true })
  for (let round = 0; round < 5 && given.records === "silent"; round++) {
    yield* TestClock.withLive(Effect.sleep("10 millis"))
    yield* TestClock.adjust("100 millis")
  }
  // No more of the test's time passes.
  const [, answer] = yield* TestClock.withLive(Effect.timeout(Fiber.join(fiber), "30 seconds"))
  return answer
})

const reach = "Cannot be reached"
const slow = "Does not answer in time"
const held = "Not served: the order of changes waits for triggers, indexes, or a writer"

const behind = "Its clock is 60.1 s behind this machine's"

type Outputs = Readonly<Record<string, string>>

const notServed = "Not served: the database is distributed over several servers"

/** The warnings, and the notes of what passes. */
const cases: ReadonlyArray<readonly [state: string, Given, warnings: Outputs, notes?: Outputs]> = [
  ["all is well", {}, {}],
  ["the keys refuse", { credentials: "refusing" }, { credentials: reach }],
  ["the records hang and the tasks refuse", { records: "silent", tasks: "refusing" }, { records: slow, tasks: reach }],
  ["the records and the keys accept only reads", { records: "reading", credentials: "reading" }, {}],
  ["the tasks accept only reads", { tasks: "reading" }, { tasks: "Accepts only reads" }],
  ["the worker has not swept for a minute", { unswept: 61 }, { tasks: "Deletions are not applied again: see the log" }],
  ["the state of the changes is not known yet", { changes: "Unknown" }, {}],
  ["the order of the changes cannot restart", { changes: "Unsettled" }, { changes: held }],
  ["the processor is down", { processor: "down" }, { processor: reach }],
  ["the databases' clock is 60 seconds behind", { behind: 60 }, {}],
  ["it is behind by more", { behind: 60.1 }, { records: behind, credentials: behind, tasks: behind }],
  ["no changes are served", { changes: "Distributed" }, {}, { changes: notServed }],
  ["there is no processor", { processor: "none" }, {}, { processor: "None" }]
]

const refusals = ["refusing", "empty", "older", "forbidden"] as const

/** Where a role is ready all the same. */
const needs: ReadonlyArray<readonly [Role, "records" | "credentials" | "tasks", ReadonlyArray<Place>]> = [
  ["data-api", "records", []],
  ["data-api", "credentials", []],
  ["data-api", "tasks", ["refusing"]],
  ["intake", "records", refusals],
  ["intake", "credentials", refusals],
  ["intake", "tasks", []],
  ["worker", "records", refusals],
  ["worker", "credentials", refusals],
  ["worker", "tasks", []]
]

layer(Layer.merge(Older.layer, TestDatabase.layer), onDatabase)("over databases", (it) => {
  it.effect.each(cases)(
    "health is 200 in half a second, and warns of each problem: %s",
    ([, given, warnings, notes = {}]) =>
      Effect.gen(function* () {
        const { json, status } = yield* answered("/health", given)
        assert.strictEqual(status, 200)
        const pass = { status: "pass" }
        const passes = { records: pass, credentials: pass, tasks: pass, changes: pass, processor: pass }
        const warns = Record.map(warnings, (output) => ({ status: "warn", output }))
        const checks = { ...passes, ...warns, ...Record.map(notes, (output) => ({ ...pass, output })) }
        const isFine = Object.keys(warnings).length === 0
        assert.deepStrictEqual(json, { status: isFine ? "pass" : "warn", version: packageJson.version, checks })
      }).pipe(inItsOwnTime)
  )

  it.effect("readiness over a database that hangs is 503 within half a second", () =>
    Effect.map(answered("/health/ready", { records: "silent" }), ({ json, status }) =>
      assert.deepStrictEqual([status, json], [503, { ready: false }])
    ).pipe(inItsOwnTime)
  )

  it.effect.each(needs)("%s beside the %s: readiness", ([role, database, readyIn]) =>
    Effect.gen(function* () {
      const others = { records: role, credentials: role, tasks: role, processor: "down" } as const
      const readyAt: Array<Place> = []
      for (const place of [role, "refusing", "empty", "older", "forbidden"] as const) {
        const context = yield* Layer.build(Layer.fresh(checksOver({ ...others, [database]: place }, [role])))
        if (yield* Context.get(context, HealthChecks).isReady) readyAt.push(place)
      }
      assert.deepStrictEqual(readyAt, [role, ...readyIn])
    }).pipe(inItsOwnTime)
  )

  it.effect.each([
    ["data-api", "select on pets"],
    ["data-api", "select on api_keys"],
    ["intake", "select on intake_secrets"],
    ["intake", "select on deletion_tasks"],
    ["worker", "update (is_deleted, deleted_at, updated_at) on invoices"],
    ["worker", "delete on deletions"]
  ] as const)("%s: readiness follows `%s`, its role and the migrations, and no outage", ([role, right]) =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const group = `practice_data_${loginsOf[role]}`
      const { name, url } = yield* newLogin(loginsOf[role])
      const { proxy, url: proxied } = yield* TcpProxy.through(url)
      const database = Database.layerShared(yield* clientOf(proxied, { ...options, maxConnections: 1 }))
      const { isReady } = yield* Effect.provide(HealthChecks, Layer.provide(checksOf({}, [role]), database))
      const isReadyAfter = (statement: string) =>
        Effect.andThen(sql.unsafe(statement), Effect.andThen(TestClock.adjust("5 seconds"), isReady))
      assert.isTrue(yield* isReady)
      // The wall clock is set back, which delays no check.
      yield* TestClock.setTime(-600_000)
      for (const [takes, gives] of [
        [`revoke ${right} from ${group}`, `grant ${right} to ${group}`],
        [`revoke ${group} from ${name}`, `grant ${group} to ${name}`],
        [
          "update migrations set name = 'other' where name = '00002_changes'",
          "update migrations set name = '00002_changes' where name = 'other'"
        ]
      ] as const) {
        assert.isFalse(yield* isReadyAfter(takes), takes)
        assert.isTrue(yield* isReadyAfter(gives), gives)
      }
      yield* proxy.cut("reset")
      assert.isTrue(yield* isReadyAfter("select 1"))
    }).pipe(inItsOwnTime)
  )

  it.effect("readiness is 503 once the service is stopping; health is not", () =>
    Effect.gen(function* () {
      const context = yield* Layer.build(checksOver({}))
      const { stop } = yield* Effect.provide(HealthChecks, context)
      const asks = Effect.gen(function* () {
        const before = yield* get("/health/ready")
        yield* stop
        return [before, yield* get("/health/ready"), yield* get("/health")].map(({ status }) => status)
      })
      const server = layerIntake(Layer.merge(layerMemory, Layer.succeedContext(context)))
      assert.deepStrictEqual(yield* Effect.provide(asks, server), [200, 503, 200])
    }).pipe(inItsOwnTime)
  )
})

test.effect("health needs no header, and has its fields in their order", () =>
  Effect.gen(function* () {
    const { text } = yield* get("/health")
    assert.strictEqual(text, `{"status":"pass","version":"${packageJson.version}","checks":{}}`)
    assert.strictEqual((yield* get("/health/ready")).text, '{"ready":true}')
  }).pipe(Effect.provide(layerIntake(layerMemory)))
)
