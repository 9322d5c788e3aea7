/** The metrics of a pool of connections, of its database, and of the statements that went through it. */
import { Effect } from "effect"
import { type Pool, statementOutcomes } from "./Metrics.ts"
import * as Series from "./Series.ts"

export type Outcome = (typeof statementOutcomes)[number]

/** Measures a pool until the scope closes. */
export const make = Effect.fnUntraced(function* (
  pool: Pool,
  gauges: Readonly<Record<"connections" | "busy" | "waiting" | "up", () => number>>
) {
  const series = yield* Series.current
  yield* series.read("practice_data_pool_connections", gauges.connections, { pool })
  yield* series.read("practice_data_pool_connections_busy", gauges.busy, { pool })
  yield* series.read("practice_data_pool_waiting", gauges.waiting, { pool })
  yield* series.read("practice_data_dependency_up", gauges.up, { dependency: pool })
  const outages = series.counter("practice_data_dependency_outages_total", { dependency: pool })
  const waits = series.histogram("practice_data_pool_wait_seconds", { pool })
  const durations = series.histogram("practice_data_statement_duration_seconds", { pool })
  const counters = new Map(
    statementOutcomes.map((outcome) => [outcome, series.counter("practice_data_statements_total", { pool, outcome })])
  )
  return {
    /** Times are in milliseconds; `took` is undefined if a statement never had a connection. */
    ended: (outcome: Outcome, waited: number, took: number | undefined) => {
      counters.get(outcome)?.add()
      waits.observe(waited / 1000)
      if (took !== undefined) durations.observe(took / 1000)
    },
    outageBegan: () => outages.add()
  }
})

export type Meter = Effect.Success<ReturnType<typeof make>>
