/** The counts of requests, the series in the registry that /metrics and OTLP read, and the text of /metrics. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Server from "../../../src/app/Server.ts"
import * as RequestFacts from "../../../src/observability/RequestFacts.ts"
import * as Series from "../../../src/observability/Series.ts"
import { samples, withRegistry } from "../../support/metrics.ts"

const charges = "/api/v3/charges/search"

const options: Parameters<typeof RequestFacts.counting>[1] = {
  endpoints: [charges, Server.intakePath],
  intake: Server.intakePath
}

const client = { userAgent: undefined, address: undefined }
const others = { status: 200, bytes: 0, duration: 0, database: 0, waited: 0, trace: undefined }
const request = { id: "id", method: "POST", path: charges, endpoint: charges, ...client }

const observing = (changed: Partial<typeof options> = {}) =>
  Effect.map(Series.current, (series) => {
    const observe = RequestFacts.counting(series, { ...options, ...changed })
    return (facts: Partial<RequestFacts.RequestFacts>) => observe({ ...request, ...others, ...facts })
  })

/** The samples of a metric that are not 0, without its name. */
const counted = Effect.fnUntraced(function* (name: string) {
  const found = Object.entries(yield* samples).filter(([key, value]) => value !== 0 && key.startsWith(`${name}{`))
  return Object.fromEntries(found.map(([key, value]) => [key.slice(name.length), value]))
})

/** The samples of a metric that are not 0 after some requests. */
const countedAfter = Effect.fnUntraced(function* (
  name: string,
  ...requests: ReadonlyArray<Partial<RequestFacts.RequestFacts>>
) {
  requests.forEach(yield* observing())
  return yield* counted(name)
})

describe("requests", () => {
  it.effect("are counted by path and class of status, which are there at 0 before", () =>
    Effect.gen(function* () {
      const observe = yield* observing()
      const before = yield* samples
      for (const endpoint of [charges, Server.intakePath, "other"]) {
        for (const status of ["2xx", "4xx", "5xx", "499"]) {
          assert.strictEqual(before[`practice_data_http_requests_total{endpoint="${endpoint}",status="${status}"}`], 0)
        }
      }
      for (const status of [200, 202, 304, 404, 422, 499, 500, 503]) observe({ status })
      assert.deepStrictEqual(yield* counted("practice_data_http_requests_total"), {
        [`{endpoint="${charges}",status="2xx"}`]: 2,
        [`{endpoint="${charges}",status="3xx"}`]: 1,
        [`{endpoint="${charges}",status="4xx"}`]: 2,
        [`{endpoint="${charges}",status="499"}`]: 1,
        [`{endpoint="${charges}",status="5xx"}`]: 2
      })
    }).pipe(withRegistry)
  )

  it.effect("take as long as the service did, without the time that they chose to wait", () =>
    Effect.gen(function* () {
      const observe = yield* observing()
      observe({ duration: 4 })
      const found = yield* samples
      const label = `{endpoint="${charges}"}`
      assert.closeTo(found[`practice_data_http_request_duration_seconds_sum${label}`] ?? 0, 0.004, 1e-9)
    }).pipe(withRegistry)
  )

  it.effect("that are refused are counted by the reason", () =>
    Effect.gen(function* () {
      // 499: a client that left; 404 and 410: records that there are not, or not any more.
      const statuses = [400, 401, 405, 415, 422, 500, 200, 404, 410, 499].map((status) => ({ status }))
      const noted = [
        { status: 503, refusal: "load" },
        { status: 503, refusal: "processor" }
      ] as const
      const found = yield* countedAfter("practice_data_http_requests_refused_total", ...noted, ...statuses)
      assert.deepStrictEqual(found, {
        '{reason="key"}': 1,
        '{reason="load"}': 1,
        '{reason="processor"}': 1,
        '{reason="invalid"}': 4,
        '{reason="bug"}': 1
      })
    }).pipe(withRegistry)
  )

  it.effect("to the intake are counted by what became of the delivery", () =>
    Effect.gen(function* () {
      const deliveries: ReadonlyArray<Partial<RequestFacts.RequestFacts>> = [
        { status: 202, outcome: "scheduled" },
        ...[401, 503, 413, 422, 499].map((status) => ({ status })),
        { status: 405, method: "GET" }
      ]
      const atIntake = deliveries.map((facts) => ({ endpoint: Server.intakePath, ...facts }))
      assert.deepStrictEqual(yield* countedAfter("practice_data_deliveries_total", ...atIntake), {
        '{outcome="scheduled"}': 1,
        '{outcome="unsigned"}': 1,
        '{outcome="unavailable"}': 1,
        '{outcome="invalid"}': 2
      })
    }).pipe(withRegistry)
  )
})

describe("a series", () => {
  it.effect("of a counter exists at 0 once it is requested, and is the same one each time", () =>
    Effect.gen(function* () {
      const { counter } = yield* Series.current
      const labels = { pool: "records", outcome: "success" } as const
      counter("practice_data_statements_total", labels)
      const name = 'practice_data_statements_total{pool="records",outcome="success"}'
      assert.deepStrictEqual(yield* samples, { [name]: 0 })
      counter("practice_data_statements_total", { outcome: "success", pool: "records" }).add()
      assert.deepStrictEqual(yield* samples, { [name]: 1 })
    }).pipe(withRegistry)
  )
})
