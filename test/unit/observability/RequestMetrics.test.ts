/** The counts of requests, the series in the registry that /metrics and OTLP read, and the text of /metrics. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Server from "../../../src/app/Server.ts"
import * as RequestFacts from "../../../src/observability/RequestFacts.ts"
import * as Metrics from "../../../src/observability/Metrics.ts"
import { endpoints } from "../../contract/Contract.ts"
import { samples, withRegistry } from "../../support/metrics.ts"

const charges = "/api/v3/charges/search"

const intake = Server.intakePath

const head = { id: "id", method: "POST", path: charges, endpoint: charges, userAgent: undefined, address: undefined }
const request = { ...head, status: 200, bytes: 0, duration: 0, database: 0, waited: 0, trace: undefined }

/** The samples of a metric that are not 0 after some requests, without its name. */
const countedAfter = Effect.fnUntraced(function* (
  name: string,
  ...requests: ReadonlyArray<Partial<RequestFacts.RequestFacts>>
) {
  const observe = RequestFacts.counting(yield* Metrics.series, { endpoints: [charges, intake], intake })
  for (const facts of requests) observe({ ...request, ...facts })
  const found = Object.entries(yield* samples).filter(([key, value]) => value !== 0 && key.startsWith(`${name}{`))
  return Object.fromEntries(found.map(([key, value]) => [key.slice(name.length), value]))
})

it.effect("requests are counted by path and class of status, which are there at 0 before, and timed", () =>
  Effect.gen(function* () {
    const name = "practice_data_http_requests_total"
    assert.deepStrictEqual(yield* countedAfter(name), {})
    const before = yield* samples
    for (const endpoint of [charges, intake, "other"])
      for (const status of ["2xx", "4xx", "5xx", "499"])
        assert.strictEqual(before[`${name}{endpoint="${endpoint}",status="${status}"}`], 0)
    const requests = [200, 202, 404, 422, 499, 500, 503].map((status) => ({ status, duration: 4 }))
    assert.deepStrictEqual(yield* countedAfter(name, ...requests), {
      [`{endpoint="${charges}",status="2xx"}`]: 2,
      [`{endpoint="${charges}",status="4xx"}`]: 2,
      [`{endpoint="${charges}",status="499"}`]: 1,
      [`{endpoint="${charges}",status="5xx"}`]: 2
    })
    const seconds = (yield* samples)[`practice_data_http_request_duration_seconds_sum{endpoint="${charges}"}`]
    assert.closeTo(seconds ?? 0, 0.028, 1e-9)
  }).pipe(withRegistry)
)

it.effect("requests that are refused are counted by the reason", () =>
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

it.effect("requests to the intake are counted by what became of the delivery", () =>
  Effect.gen(function* () {
    const deliveries: ReadonlyArray<Partial<RequestFacts.RequestFacts>> = [
      { status: 202, outcome: "scheduled" },
      ...[401, 503, 413, 422, 499].map((status) => ({ status })),
      { status: 405, method: "GET" }
    ]
    const atIntake = deliveries.map((facts) => ({ endpoint: intake, ...facts }))
    assert.deepStrictEqual(yield* countedAfter("practice_data_deliveries_total", ...atIntake), {
      '{outcome="scheduled"}': 1,
      '{outcome="unsigned"}': 1,
      '{outcome="unavailable"}': 1,
      '{outcome="invalid"}': 2
    })
  }).pipe(withRegistry)
)

it.effect("a counter is there at 0 once it is requested, and is the same one each time", () =>
  Effect.gen(function* () {
    const { counter } = yield* Metrics.series
    const labels = { pool: "records", outcome: "success" } as const
    counter("practice_data_statements_total", labels)
    const name = 'practice_data_statements_total{pool="records",outcome="success"}'
    assert.deepStrictEqual(yield* samples, { [name]: 0 })
    counter("practice_data_statements_total", { outcome: "success", pool: "records" }).add()
    assert.deepStrictEqual(yield* samples, { [name]: 1 })
  }).pipe(withRegistry)
)

it("each endpoint of the data API has figures of its own, in a process that serves it", () => {
  const paths = endpoints.map(({ path }) => `/api/v3${path}`)
  assert.includeMembers(Server.endpointsOf({ dataApi: true }), paths)
  assert.notIncludeMembers(Server.endpointsOf({ dataApi: false }), paths)
})
