/** The series of a healthy service under a little load: each metric of the list with each value of its labels. */
import { Record } from "effect"
import { type Definition, metrics } from "../../../src/observability/Metrics.ts"
import type { Labels } from "../../support/Series.ts"

/** What a series is at a time in seconds, from 0 on. */
export type Values = (seconds: number) => number | undefined

/** A series that tells its values when it is asked. */
export interface Told {
  readonly labels: Labels
  readonly values: Values
}

const target = { job: "practice-data", instance: "10.0.0.1:9464" }

const examples: Readonly<Record<string, ReadonlyArray<string>>> = {
  endpoint: ["/api/v3/charges/search", "/api/v3/psp-payments/search", "/api/v1/invoice-deletions", "other"],
  organization: ["org_oakridge", "other"],
  version: ["0.1.0"],
  node: ["v24.21.0"],
  roles: ["data-api,intake,worker"]
}

const combinations = (labels: Definition["labels"]): ReadonlyArray<Labels> =>
  Record.toEntries(labels).reduce<ReadonlyArray<Labels>>(
    (all, [name, values]) =>
      all.flatMap((before) =>
        ("atMost" in values ? (examples[name] ?? []) : values).map((value) => ({ ...before, [name]: value }))
      ),
    [{}]
  )

const constant =
  (value: number): Values =>
  () =>
    value

const perSecond =
  (rate: number): Values =>
  (seconds) =>
    1000 + rate * seconds

/** What is not 0, or does not stand still. */
const healthy: Readonly<Record<string, (labels: Labels) => Values>> = {
  practice_data_http_requests_total: ({ status }) => perSecond(status === "2xx" ? 20 : 0),
  practice_data_http_connections: () => constant(20),
  practice_data_http_connections_limit: () => constant(2000),
  practice_data_pool_connections: () => constant(10),
  practice_data_statements_total: ({ outcome }) => perSecond(outcome === "success" ? 20 : 0),
  practice_data_dependency_up: () => constant(1),
  practice_data_tasks: ({ state }) => constant(state === "scheduled" ? 3 : 0),
  practice_data_tasks_read_timestamp_seconds: () => (seconds) => Math.floor(seconds / 5) * 5,
  practice_data_task_runs_total: ({ outcome }) => perSecond(outcome === "completed" ? 1 : 0),
  practice_data_task_attempts_total: () => perSecond(1),
  practice_data_task_items_total: ({ verdict }) => perSecond(verdict === "deleted" ? 3 : 0),
  practice_data_deliveries_total: ({ outcome }) => perSecond(outcome === "scheduled" ? 1 : 0),
  practice_data_changes_lag_seconds: () => constant(0.2),
  practice_data_replica_lag_seconds: () => constant(0.1),
  practice_data_processor_requests_total: ({ outcome }) => perSecond(outcome === "success" ? 2 : 0),
  practice_data_ready: () => constant(1),
  practice_data_event_loop_delay_seconds: () => constant(0.012),
  practice_data_build_info: () => constant(1),
  practice_data_processes: () => constant(1),
  practice_data_processes_answered: () => constant(1),
  process_resident_memory_bytes: () => constant(300e6),
  process_cpu_seconds_total: () => perSecond(0.2),
  process_start_time_seconds: () => constant(-86_400),
  nodejs_heap_size_used_bytes: () => constant(80e6),
  nodejs_heap_size_total_bytes: () => constant(120e6),
  nodejs_heap_size_limit_bytes: () => constant(4e9)
}

const histogram = (name: string, labels: Labels, bounds: ReadonlyArray<number>): ReadonlyArray<Told> => [
  ...[...bounds, "+Inf"].map((bound) => ({
    labels: { ...labels, __name__: `${name}_bucket`, le: String(bound) },
    values: perSecond(20)
  })),
  { labels: { ...labels, __name__: `${name}_sum` }, values: perSecond(0.01) },
  { labels: { ...labels, __name__: `${name}_count` }, values: perSecond(20) }
]

/** All of them, as Prometheus stores them. */
export const healthySeries: ReadonlyArray<Told> = [
  { labels: { ...target, __name__: "up" }, values: constant(1) },
  ...Record.toEntries<string, Definition>(metrics).flatMap(([name, { buckets, kind, labels }]) =>
    combinations(labels).flatMap((combination): ReadonlyArray<Told> => {
      const own = { ...target, ...combination }
      if (buckets !== undefined) return histogram(name, own, buckets)
      const values = healthy[name]?.(combination) ?? constant(kind === "counter" ? 1000 : 0)
      return [{ labels: { ...own, __name__: name }, values }]
    })
  )
]
