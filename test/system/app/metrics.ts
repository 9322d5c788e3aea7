/** What /metrics says, held against the list of metrics. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { metrics } from "../../../src/observability/Metrics.ts"
import * as Server from "../../../src/app/Server.ts"
import { namesOf, samplesOf } from "../../support/metrics.ts"
import { eventually } from "../../support/eventually.ts"
import { hasPromtool, promtool, scraper } from "../../support/scraper.ts"
import { Service, type Tests } from "../../support/Service.ts"

/** Those of which the demo has no series. */
const notInTheDemo: ReadonlyArray<string> = [
  "practice_data_organization_requests_total",
  "practice_data_replica_lag_seconds",
  "practice_data_telemetry_export_failures_total"
]

const hostile = [
  '/api/v3/charges/search"}',
  "/api/v3/charges/search%0Apractice_data_ready%201",
  "/\\",
  `/${"x".repeat(9000)}`
]

export const metricsRule = (it: Tests) => {
  it.effect("the metrics are those of the list, each of them, and no others, whatever was requested", () =>
    Effect.gen(function* () {
      const { ask, call, process } = yield* Service
      yield* ask("/charges/search")
      for (const path of hostile) yield* call({ path, body: "{}" })
      const { scrape } = yield* scraper(process)
      const expected = Object.keys(metrics).filter((name) => !notInTheDemo.includes(name))
      // A program that has just started has not counted its tasks yet.
      yield* eventually(
        "a series of each metric",
        Effect.map(scrape, ({ text }) => expected.every((name) => text.includes(`# TYPE ${name} `)))
      )
      const { headers, status, text } = yield* scrape
      assert.strictEqual(status, 200)
      assert.strictEqual(headers["content-type"], "text/plain; version=0.0.4; charset=utf-8")
      assert.sameMembers([...namesOf(text)], expected)
      const endpoints = Object.keys(samplesOf(text)).flatMap((key) => /endpoint="([^"]*)"/.exec(key)?.[1] ?? [])
      assert.sameMembers([...new Set(endpoints)], [...Server.endpointsOf({ dataApi: true }), "other"])
    })
  )

  it.effect.skipIf(!hasPromtool)("Prometheus takes the metrics, and has nothing to say against them", () =>
    Effect.gen(function* () {
      const { scrape } = yield* scraper((yield* Service).process)
      assert.strictEqual(promtool((yield* scrape).text), "")
    })
  )
}
