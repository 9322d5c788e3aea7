/** What is measured of a store: its connections, the statements that went through it, and whether its database is there. */
import { Effect, type Scope } from "effect"
import { type Pool, statementOutcomes } from "../observability/Metrics.ts"
import * as Series from "../observability/Series.ts"
import type { Admission } from "./Admission.ts"
import type { Pipeline } from "./Pipeline.ts"

/** What came of a statement. */
export type Outcome = (typeof statementOutcomes)[number]

/** What is to be measured. */
export interface Options {
  readonly pool: Pool
  readonly connections: number
  readonly admission: Admission
  readonly pipeline: Pipeline
}

export interface StoreMetrics {
  /**
   * Counts a statement that ended. Times are in milliseconds.
   *
   * @param waited how long it waited for a connection
   * @param took how long it had its connection; undefined if it never had one
   */
  readonly ended: (outcome: Outcome, waited: number, took: number | undefined) => void
  /** Counts an outage that began. */
  readonly outageBegan: () => void
  /** Shows whether the database is down. */
  readonly watch: (isDown: () => boolean) => Effect.Effect<void, never, Scope.Scope>
}

/** Measures nothing: a store of commands or of tests. */
export const none: StoreMetrics = { ended: () => {}, outageBegan: () => {}, watch: () => Effect.void }

/** Measures a store until the scope closes. */
export const make = Effect.fnUntraced(function* ({
  admission,
  connections,
  pipeline,
  pool
}: Options): Effect.fn.Return<StoreMetrics, never, Scope.Scope> {
  const series = yield* Series.current
  yield* series.read("practice_data_pool_connections", () => connections + pipeline.size, { pool })
  yield* series.read(
    "practice_data_pool_connections_busy",
    () => connections - admission.stats().free + pipeline.busy(),
    {
      pool
    }
  )
  yield* series.read("practice_data_pool_waiting", () => admission.stats().waiting, { pool })
  const outages = series.counter("practice_data_dependency_outages_total", { dependency: pool })
  const waits = series.histogram("practice_data_pool_wait_seconds", { pool })
  const durations = series.histogram("practice_data_statement_duration_seconds", { pool })
  const counted = (outcome: Outcome) => series.counter("practice_data_statements_total", { pool, outcome })
  const counters = new Map(statementOutcomes.map((outcome) => [outcome, counted(outcome)]))
  return {
    ended: (outcome, waited, took) => {
      counters.get(outcome)?.add()
      waits.observe(waited / 1000)
      if (took !== undefined) durations.observe(took / 1000)
    },
    outageBegan: () => outages.add(),
    watch: (isDown) => series.read("practice_data_dependency_up", () => (isDown() ? 0 : 1), { dependency: pool })
  }
})
