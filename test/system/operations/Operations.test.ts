/**
 * The operators' listener of the program: beside the service, and never on its port.
 *
 * @module-tag long
 */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer, Schema } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import * as Server from "../../../src/app/Server.ts"
import { metrics } from "../../../src/observability/Metrics.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { cli } from "../../support/cli.ts"
import { makeDead } from "../../support/deletions/taskFixture.ts"
import { namesOf, samplesOf } from "../../support/metrics.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { eventually } from "../../support/eventually.ts"
import type * as Process from "../../support/Process.ts"
import * as Program from "../../support/Program.ts"
import { hasPromtool, operationsOf, promtool } from "../../support/scraper.ts"

const token = "correct-horse-battery"

/** Metrics that such a program has no series of. */
const notHere: ReadonlyArray<string> = [
  "practice_data_organization_requests_total",
  "practice_data_replica_lag_seconds",
  "practice_data_telemetry_export_failures_total",
  "practice_data_processor_circuit_open",
  "practice_data_processor_account_circuits_open"
]

const hostile = ['/api/v3/charges/search"}', "/api/v3/charges/search%0Apractice_data_ready%201", "/\\"]

const paths = ["/ops", "/ops/requests", "/ops/deletions", "/ops/keys", "/ops/changes", "/ops/audit"]

/** Starts the program with an operators' listener, whose address is `operators`. */
const started = Effect.fnUntraced(function* (environment: Process.Environment) {
  const { url } = yield* TestDatabase
  const program = yield* Program.start({
    DATABASE_URL: url,
    OPERATIONS_PORT: "0",
    OPERATIONS_TOKEN: token,
    ...environment
  })
  return { ...program, operators: yield* operationsOf(program) }
})

const get = (url: string) =>
  Effect.flatMap(HttpClient.get(url), (response) =>
    Effect.map(response.text, (text) => ({ status: response.status, text }))
  )

const Health = Schema.fromJsonString(
  Schema.Struct({ processes: Schema.Array(Schema.Struct({ ready: Schema.Boolean })) })
)

const services = Layer.mergeAll(
  FetchHttpClient.layer,
  Layer.provideMerge(Scheduler.layer(Duration.zero), Layer.fresh(TestDatabase.layerDatabases))
)

describe.concurrent("The operators' listener", () => {
  it.live("has metrics, health and the page, and none of them is on the public port", () =>
    Effect.gen(function* () {
      const { client, operators, url } = yield* started({})
      for (const path of [...paths, "/metrics", "/health"]) {
        assert.strictEqual((yield* get(`${operators}${path}`)).status, 200, path)
        assert.strictEqual((yield* get(`${url}${path}`)).status, 404, path)
      }
      for (const path of ["/api/v1/health", "/api/v3/openapi.json"]) {
        assert.strictEqual((yield* get(`${operators}${path}`)).status, 404, path)
        assert.strictEqual((yield* get(`${url}${path}`)).status, 200, path)
      }
      yield* client.ask("/charges/search")
      for (const path of hostile) yield* client.call({ path, body: "{}" })
      const expected = Object.keys(metrics).filter((name) => !notHere.includes(name))
      // A program that has just started has not counted its tasks yet.
      const lacking = Effect.map(get(`${operators}/metrics`), ({ text }) =>
        expected.filter((name) => !text.includes(`# TYPE ${name} `))
      )
      yield* eventually("a series of each metric", lacking, ({ length }) => length === 0).pipe(
        Effect.timeoutOption("8 seconds")
      )
      assert.deepStrictEqual(yield* lacking, [])
      const { text } = yield* get(`${operators}/metrics`)
      assert.sameMembers([...namesOf(text)], expected)
      const endpoints = Object.keys(samplesOf(text)).flatMap((key) => /endpoint="([^"]*)"/.exec(key)?.[1] ?? [])
      assert.sameMembers([...new Set(endpoints)], [...Server.endpointsOf({ dataApi: true }), "other"])
      if (hasPromtool) assert.strictEqual(promtool(text), "")
    }).pipe(Effect.provide(services))
  )

  it.live("is there only where it is asked for, on a Postgres", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      assert.notInclude((yield* Program.start({ DATABASE_URL: url })).output(), "Operators")
    }).pipe(Effect.provide(services))
  )

  it.live("shows all processes, replays a dead deletion, and writes it to the audit log", () =>
    Effect.gen(function* () {
      const id = yield* makeDead("org_a", "replayed on the page")
      const { operators } = yield* started({ PROCESSES: "2", ROLES: "data-api,intake" })
      const ready = Effect.gen(function* () {
        const { text } = yield* get(`${operators}/health`)
        const { processes } = yield* Schema.decodeEffect(Health)(text)
        return processes.length === 2 && processes.every((one) => one.ready)
      })
      yield* eventually(
        "two processes that are ready",
        Effect.orElseSucceed(ready, () => false)
      )
      const replay = HttpClientRequest.post(`${operators}/ops/task/replay?organization=org_a&id=${id}`)
      const refused = yield* HttpClient.execute(HttpClientRequest.basicAuth(replay, "alice", "wrong"))
      assert.strictEqual(refused.status, 401)
      const done = yield* HttpClient.execute(HttpClientRequest.basicAuth(replay, "alice", token))
      assert.strictEqual(yield* done.text, `Replaying ${id}\n`)
      assert.include((yield* get(`${operators}/ops/audit`)).text, "alice")
      const { stdout } = yield* cli("audit", "list", "--json")
      assert.include(stdout, '"actor":"alice"')
      assert.include(stdout, '"result":"replayed"')
      assert.notInclude(stdout, token)
    }).pipe(Effect.provide(services))
  )
})
