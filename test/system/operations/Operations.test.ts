/**
 * The operators' listener of the program, beside the service and never on its port, and what /metrics says while its
 * databases break, one at a time.
 *
 * @module-tag long
 */
import { spawnSync } from "node:child_process"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import * as Server from "../../../src/app/Server.ts"
import { metrics } from "../../../src/observability/Metrics.ts"
import { namesOf, samplesOf } from "../../support/metrics.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { eventually } from "../../support/eventually.ts"
import * as Process from "../../support/Process.ts"
import * as Program from "../../support/Program.ts"
import * as Client from "../../support/Client.ts"
import * as TcpProxy from "../../support/TcpProxy.ts"
import { inTime } from "../../support/inTime.ts"

/** Metrics that such a program has no series of. */
const notHere: ReadonlyArray<string> = [
  "practice_data_organization_requests_total",
  "practice_data_processor_circuit_open",
  "practice_data_processor_account_circuits_open"
]

const hostile = ['/api/v3/charges/search"}', "/api/v3/charges/search%0Apractice_data_ready%201", "/\\"]

const paths = ["/ops", "/ops/deletions", "/ops/keys", "/ops/secrets", "/ops/audit"]

const operatorsPage = /Operators' page:? (http:\/\/[^/\s"\\]+)\/ops/

/** Fails if `promtool check metrics`, where there is one, complains about a text. */
const promtool = (input: string) => {
  const { error, stderr, stdout } = spawnSync("promtool", ["check", "metrics"], { input, encoding: "utf8" })
  if (error === undefined) assert.strictEqual(stdout + stderr, "")
}

type Samples = Readonly<Record<string, number>>

/** A running program, its operators' listener, and its samples, which come within a second whatever is broken. */
const scraped = Effect.fnUntraced(function* (environment: Process.Environment) {
  const program = yield* Program.start({ OPERATIONS_PORT: "0", DELETION_DELAY: "0s", ...environment })
  yield* eventually("the operators' listener", () => operatorsPage.test(program.output()))
  const operators = yield* Client.make(operatorsPage.exec(program.output())?.[1] ?? "", 2)
  const scrape = operators.call({ path: "/metrics", method: "GET", headers: {} })
  const read = Effect.map(Effect.timed(scrape), ([took, { status, text }]) => {
    assert.strictEqual(status, 200)
    assert.isBelow(Duration.toSeconds(took), inTime(1.3))
    return samplesOf(text)
  })
  const untilSamples = (what: string, isSo: (samples: Samples) => boolean) =>
    eventually(what, Effect.delay(Effect.map(read, isSo), "50 millis"))
  return { client: program.client, operators, program, read, scrape, untilSamples }
})

const statusOf = ({ call }: Client.Client, path: string) =>
  Effect.map(call({ path, method: "GET", headers: {} }), ({ status }) => status)

it.live("The operators' listener has metrics, health and the page, which the public port has not", () =>
  Effect.gen(function* () {
    const { url } = yield* TestDatabase
    const { client, operators, scrape } = yield* scraped({ DATABASE_URL: url })
    for (const path of [...paths, "/metrics", "/health"]) {
      // On a busy machine a page has no answer in time.
      yield* eventually(path, statusOf(operators, path), (status) => status === 200)
      assert.strictEqual(yield* statusOf(client, path), 404, path)
    }
    for (const path of ["/api/v1/health", "/api/v3/openapi.json"])
      assert.deepStrictEqual([yield* statusOf(operators, path), yield* statusOf(client, path)], [404, 200], path)
    yield* client.ask("/charges/search")
    for (const path of hostile) yield* client.call({ path, body: "{}" })
    const expected = Object.keys(metrics).filter((name) => !notHere.includes(name))
    // A program that has just started has not counted its tasks yet.
    yield* eventually("a series of each metric", scrape, ({ text }) => namesOf(text).length === expected.length)
    const { text } = yield* scrape
    assert.sameMembers([...namesOf(text)], expected)
    assert.strictEqual(samplesOf(text)["practice_data_http_requests_lane_total"], 1)
    const endpoints = Object.keys(samplesOf(text)).flatMap((key) => /endpoint="([^"]*)"/.exec(key)?.[1] ?? [])
    assert.sameMembers([...new Set(endpoints)], [...Server.endpointsOf({ dataApi: true }), "other"])
    promtool(text)
  }).pipe(Effect.provide(Layer.fresh(TestDatabase.layer)))
)

const ownDatabase = Layer.fresh(TestDatabase.layerDemo)

const isUp = (samples: Samples, dependency: string) =>
  samples[`practice_data_dependency_up{dependency="${dependency}"}`] === 1

const taskNames = [
  'practice_data_tasks{state="scheduled"}',
  "practice_data_task_oldest_due_age_seconds",
  "practice_data_clock_offset_seconds"
]

const knowsTasks = (samples: Samples) => taskNames.every((name) => name in samples)
const knowsNoTasks = (samples: Samples) => taskNames.every((name) => !(name in samples))

/** The response to a key that nobody has. */
const unknownKey = ({ call }: Client.Client) =>
  call({
    path: "/api/v3/charges/search",
    headers: { ...Client.headersOf("oakridge"), authorization: "Bearer pda_demo_none" },
    body: "{}"
  })

describe("/metrics", () => {
  it.live("says which database is not there, whose reads are 503, never 401, and back within 2 seconds", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const through = TcpProxy.through(url)
      const stores = { records: yield* through, credentials: yield* through, tasks: yield* through }
      const { client, read, untilSamples } = yield* scraped({
        DATABASE_URL: stores.tasks.url,
        READ_DATABASE_URL: stores.records.url,
        CREDENTIALS_DATABASE_URL: stores.credentials.url
      })
      yield* untilSamples("tasks that are counted", knowsTasks)
      for (const name of ["records", "credentials", "tasks"] as const) {
        const cut = name === "credentials" ? "refuse" : "swallow"
        const { proxy } = stores[name]
        const outages = `practice_data_dependency_outages_total{dependency="${name}"}`
        const before = yield* read
        // Nobody asks for anything: the service looks by itself.
        yield* proxy.cut(cut)
        yield* untilSamples(`${name} that is seen to be down (${cut})`, (samples) => !isUp(samples, name))
        const during = yield* read
        for (const other of Object.keys(stores)) assert.strictEqual(isUp(during, other), other !== name, other)
        assert.strictEqual(during[outages], (before[outages] ?? 0) + 1)
        // A key is looked up in a store of its own.
        const answers = yield* Effect.all([client.ask("/charges/search"), unknownKey(client)])
        assert.deepStrictEqual(
          answers.map(({ status }) => status),
          { records: [503, 401], credentials: [503, 503], tasks: [200, 401] }[name]
        )
        for (const { headers, status } of answers)
          if (status === 503) assert.match(String(headers["retry-after"]), /^[1-9]/)
        if (name === "tasks") yield* untilSamples("tasks of which nothing is known", knowsNoTasks)
        assert.isAbove((yield* read)["practice_data_tasks_read_timestamp_seconds"] ?? 0, 0)
        yield* proxy.mend
        const recovery = eventually("a read", client.ask("/charges/search"), ({ status }) => status === 200)
        assert.isBelow(yield* Program.secondsOf(recovery), inTime(2))
        yield* untilSamples(`${name} that is back`, (samples) => isUp(samples, name))
        if (name === "tasks") yield* untilSamples("tasks that are counted again", knowsTasks)
      }
    }).pipe(Effect.provide(ownDatabase))
  )
})
