/**
 * The operators' listener of the program, beside the service and never on its port.
 *
 * @module-tag long
 */
import { spawnSync } from "node:child_process"
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Server from "../../../src/app/Server.ts"
import { metrics } from "../../../src/observability/Metrics.ts"
import { samplesOf } from "../../support/metrics.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { eventually } from "../../support/eventually.ts"
import * as Program from "../../support/Program.ts"
import * as Client from "../../support/Client.ts"

const hostile = ['/api/v3/charges/search"}', "/api/v3/charges/search%0Apractice_data_ready%201", "/\\"]

const operatorsPage = /Operators' page:? (http:\/\/[^/\s"\\]+)\/ops/

/** Fails if `promtool check metrics`, where there is one, complains about a text. */
const promtool = (input: string) => {
  const { error, stderr, stdout } = spawnSync("promtool", ["check", "metrics"], { input, encoding: "utf8" })
  if (error === undefined) assert.strictEqual(stdout + stderr, "")
}

/** The names of the metrics that a text describes. */
const namesOf = (text: string) => [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name = ""]) => name)

const statusOf = ({ call }: Client.Client, path: string) =>
  Effect.map(call({ path, method: "GET", headers: {} }), ({ status }) => status)

it.live("The operators' listener has metrics and the page, which the public port has not", () =>
  Effect.gen(function* () {
    const { url } = yield* TestDatabase
    const { client, output } = yield* Program.start({ OPERATIONS_PORT: "0", DELETION_DELAY: "0s", DATABASE_URL: url })
    yield* eventually("the operators' listener", () => operatorsPage.test(output()))
    const operators = yield* Client.make(operatorsPage.exec(output())?.[1] ?? "", 2)
    const scrape = operators.call({ path: "/metrics", method: "GET", headers: {} })
    for (const path of ["/ops", "/metrics"]) {
      // On a busy machine a page has no answer in time.
      yield* eventually(path, statusOf(operators, path), (status) => status === 200)
      assert.strictEqual(yield* statusOf(client, path), 404, path)
    }
    for (const path of ["/api/v1/health", "/api/v3/openapi.json"])
      assert.deepStrictEqual([yield* statusOf(operators, path), yield* statusOf(client, path)], [404, 200], path)
    yield* client.ask("/charges/search")
    for (const path of hostile) yield* client.call({ path, body: "{}" })
    const expected = Object.keys(metrics)
    // A program that has just started has not counted its tasks yet.
    yield* eventually("a series of each metric", scrape, ({ text }) => namesOf(text).length === expected.length)
    const { text } = yield* scrape
    assert.sameMembers(namesOf(text), expected)
    assert.strictEqual(samplesOf(text)["practice_data_http_requests_lane_total"], 1)
    const endpoints = Object.keys(samplesOf(text)).flatMap((key) => /endpoint="([^"]*)"/.exec(key)?.[1] ?? [])
    assert.sameMembers([...new Set(endpoints)], [...Server.endpointsOf({ dataApi: true }), "other"])
    promtool(text)
  }).pipe(Effect.provide(Layer.fresh(TestDatabase.layer)))
)
