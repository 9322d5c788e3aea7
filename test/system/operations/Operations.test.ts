/**
 * The operators' listener of the program: beside the service, and never on its port.
 *
 * @module-tag long
 */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer, Schema } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { cli } from "../../support/cli.ts"
import { makeDead } from "../../support/deletions/taskFixture.ts"
import { inTime } from "../../support/inTime.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { eventually } from "../../support/eventually.ts"
import * as Process from "../../support/Process.ts"
import * as TcpProxy from "../../support/TcpProxy.ts"
import { startUsed } from "../../support/usedFolder.ts"

const token = "correct-horse-battery"

const paths = ["/ops", "/ops/requests", "/ops/deletions", "/ops/keys", "/ops/changes", "/ops/audit"]

/** Starts the program with an operators' listener, and returns the addresses of both. */
const started = Effect.fnUntraced(function* (environment: Process.Environment) {
  const program = yield* startUsed({ OPERATIONS_PORT: "0", OPERATIONS_TOKEN: token, ...environment })
  const address = yield* program.address
  const page = () => /Operators' page: (http:\/\/\S+?)\/ops/.exec(program.output())?.[1]
  yield* eventually(
    "where the operators' page is",
    Effect.sync(() => page() !== undefined)
  )
  return { ...program, address, operators: page() ?? "" }
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
      const { address, operators } = yield* started({})
      for (const path of [...paths, "/metrics", "/health"]) {
        assert.strictEqual((yield* get(`${operators}${path}`)).status, 200, path)
        assert.strictEqual((yield* get(`${address}${path}`)).status, 404, path)
      }
      for (const path of ["/api/v1/health", "/api/v3/openapi.json", "/api/v3/docs"]) {
        assert.strictEqual((yield* get(`${operators}${path}`)).status, 404, path)
        assert.strictEqual((yield* get(`${address}${path}`)).status, 200, path)
      }
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )

  it.live("is there only where it is asked for, on a Postgres", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const { address, output } = yield* Process.start({ DATABASE_URL: url })
      yield* address
      assert.notInclude(output(), "Operators")
    }).pipe(Effect.provide(services))
  )

  it.live("shows all processes, replays a dead deletion, and writes it to the audit log", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const id = yield* makeDead("org_a", "replayed on the page")
      const { operators } = yield* started({ DATABASE_URL: url, PROCESSES: "2", ROLES: "data-api,intake" })
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

  it.live("shows each page in time while the database hangs, and says that it does", () =>
    Effect.gen(function* () {
      const { hostname, port } = new URL((yield* TestDatabase).url)
      const proxy = yield* TcpProxy.make({ host: hostname, port: Number(port) })
      const url = new URL((yield* TestDatabase).url)
      url.port = String(proxy.port)
      const { operators } = yield* started({ DATABASE_URL: url.href })
      yield* proxy.cut("swallow")
      for (const path of paths) {
        const [took, { status, text }] = yield* Effect.timed(get(`${operators}${path}`))
        assert.strictEqual(status, 200, path)
        assert.isBelow(Duration.toSeconds(took), inTime(2), path)
        if (path !== "/ops/requests") assert.match(text, /does not answer|cannot be reached|no answer in time/i, path)
      }
    }).pipe(Effect.provide(services))
  )

  it.live("for a port in use names OPERATIONS_PORT", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const { port } = new URL(url)
      const { code, output } = yield* Process.startToEnd({ DATABASE_URL: url, OPERATIONS_PORT: port })
      assert.strictEqual(code, 1)
      assert.include(output, "OPERATIONS_PORT")
      assert.include(output, port)
      assert.strictEqual(output.trim().split("\n").length, 1, output)
    }).pipe(Effect.provide(services))
  )
})
