/**
 * The metrics of the service: what updates a metric, the documentation, the alerts and the dashboard are all checked
 * against this list. Names and units follow Prometheus: seconds, bytes, and `_total` for counters. Their series are in the
 * registry of `effect`, which /metrics and OTLP read.
 */
import { Context, Effect, Function, Metric } from "effect"

/** The labels of a metric, each with its values, or their description. Each combination of values is a series. */
type Labels = Readonly<Record<string, ReadonlyArray<string> | string>>

export interface Definition {
  readonly kind: "counter" | "gauge" | "histogram"
  /** The text of `# HELP`. */
  readonly help: string
  readonly labels: Labels
  /** The upper bounds of a histogram's buckets, in its unit; one more has no bound. */
  readonly buckets?: ReadonlyArray<number>
}

const upToTenSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10]

const counter = <const L extends Labels>(help: string, labels: L) => ({ kind: "counter", help, labels }) as const

const gauge = <const L extends Labels>(help: string, labels: L) => ({ kind: "gauge", help, labels }) as const

const histogram = <const L extends Labels>(help: string, labels: L, buckets: ReadonlyArray<number> = upToTenSeconds) =>
  ({ kind: "histogram", help, labels, buckets }) as const

/** A served path, however many processes and roles there are, or `other`. */
const endpoint = "a known path, or `other`"

/** Classes of statuses; 499 is a client that left before its response was sent. */
export const statuses = ["2xx", "4xx", "5xx", "499"] as const

export const refusals = [
  "key",
  "signature",
  "limit",
  "load",
  "outage",
  "processor",
  "too_large",
  "invalid",
  "protocol",
  "timeout",
  "bug"
] as const

/** Outcomes of a delivery. */
export const deliveries = [
  "scheduled",
  "duplicate",
  "key_reused",
  "full",
  "unavailable",
  "invalid",
  "unsigned"
] as const

/** Pools of connections. The embedded database has one connection for everything. */
export const pools = ["records", "changes", "credentials", "tasks", "embedded"] as const
export type Pool = (typeof pools)[number]

export const processorOutcomes = [
  "success",
  "rate_limited",
  "unavailable",
  "interrupted",
  "refused",
  "account_failed",
  "account_disconnected",
  "cursor_unknown"
] as const

/** A process has the series of its roles and its configuration. */
export const metrics = {
  practice_data_http_requests_total: counter("Requests; 499 is a client that left.", { endpoint, status: statuses }),
  practice_data_http_requests_lane_total: counter("Requests handled by the lane, without the router.", {}),
  practice_data_http_request_duration_seconds: histogram(
    "Time from request headers to response. Changes requests include their `wait`.",
    { endpoint }
  ),
  practice_data_http_requests_in_flight: gauge("Requests in flight.", {}),
  practice_data_http_requests_refused_total: counter(
    "Requests refused for: limit (RATE_LIMIT, or too much pending), load (too much at once), outage (of a store), " +
      "processor (its outage), invalid (content), protocol (not HTTP), timeout (arrived too slowly), bug (500).",
    { reason: refusals }
  ),
  practice_data_http_connections: gauge("Open connections of clients.", {}),
  practice_data_http_connections_refused_total: counter("Connections refused at the limit of MAX_CONNECTIONS.", {}),
  practice_data_pool_connections: gauge("Maximum size of a pool.", { pool: pools }),
  practice_data_pool_connections_busy: gauge("Connections in use.", { pool: pools }),
  practice_data_pool_wait_seconds: histogram("Time that a statement waited for a connection.", { pool: pools }),
  practice_data_statements_total: counter(
    "Statements, by outcome; interrupted ones by their caller. The log has the reasons of those that failed.",
    { pool: pools, outcome: ["success", "failed", "interrupted"] }
  ),
  practice_data_statement_duration_seconds: histogram("Time that a statement held its connection.", { pool: pools }),
  practice_data_dependency_up: gauge(
    "1 if a database is reachable (probed every 5 seconds), or the processor's circuit breaker is closed.",
    { dependency: [...pools, "processor"] }
  ),
  practice_data_tasks: gauge(
    "Open deletion tasks by state, counted every 5 seconds, at most 10,000 each. Absent in an outage of the task store.",
    { state: ["scheduled", "running", "dead"] }
  ),
  practice_data_task_oldest_due_age_seconds: gauge(
    "Age of the oldest due deletion task since its due time; 0 if none is due. Absent in an outage of the task store.",
    {}
  ),
  practice_data_deletions_unsettled_seconds: gauge(
    "Age of the oldest deletion or undo that waits for open transactions; 0 if none. Absent in an outage.",
    {}
  ),
  practice_data_deletions_unswept_seconds: gauge(
    "Time since this worker last swept: applied deletions again to rows that open transactions brought.",
    {}
  ),
  practice_data_tasks_read_timestamp_seconds: gauge(
    "Unix time of the last count of deletion tasks, in seconds; 0 if never counted.",
    {}
  ),
  practice_data_clock_offset_seconds: gauge(
    "Offset of the process's clock from the task store's; positive if ahead. Absent in an outage of the task store.",
    {}
  ),
  practice_data_task_runs_total: counter(
    "Finished attempts: failed (to be retried), dead (the last), superseded, released (an outage).",
    { outcome: ["completed", "failed", "dead", "superseded", "released"] }
  ),
  practice_data_task_delay_seconds: histogram(
    "Time from the due time of a deletion task to its completion.",
    {},
    [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 86_400]
  ),
  practice_data_deliveries_total: counter(
    "Deliveries: key_reused (with another payload), full (503: too much pending), unavailable (503), invalid, unsigned.",
    { outcome: deliveries }
  ),
  practice_data_processor_requests_total: counter(
    "Calls to the processor, by outcome: interrupted (timeout, or the caller disconnected), refused (our request).",
    { outcome: processorOutcomes }
  ),
  practice_data_processor_request_duration_seconds: histogram("Duration of a call to the processor.", {}),
  practice_data_ready: gauge(
    "1 if the process is ready: its databases are migrated and grant access, and it is not stopping.",
    {}
  ),
  practice_data_stopping: gauge("1 if the process is stopping: not ready, but still serving requests.", {}),
  practice_data_build_info: gauge("Always 1: the version of the service and of Node, and its roles.", {
    version: "the version of the service",
    node: "the version of Node",
    roles: "the roles, separated by commas"
  }),
  practice_data_log_lines_dropped_total: counter("Log lines dropped because the reader was too slow.", {}),
  process_resident_memory_bytes: gauge("Memory of the process.", {}),
  process_memory_limit_bytes: gauge("Memory limit of the process: that of the machine or container.", {}),
  process_cpu_seconds_total: counter("CPU time of the process, in user and system mode.", {}),
  nodejs_heap_size_used_bytes: gauge("JavaScript heap in use.", {}),
  nodejs_heap_size_limit_bytes: gauge("JavaScript heap limit; the process exits beyond it.", {})
} satisfies Readonly<Record<string, Definition>>

type Metrics = typeof metrics
type Name = keyof Metrics

type NameOf<Kind extends Definition["kind"]> = {
  readonly [Each in Name]: Metrics[Each]["kind"] extends Kind ? Each : never
}[Name]

type ValueOf<Values> = Values extends ReadonlyArray<infer Value extends string> ? Value : string

/** The labels of a metric as an argument, each with one of its values: none where the metric has none. */
type LabelArgument<Each extends Name> = keyof Metrics[Each]["labels"] extends never
  ? []
  : [labels: { readonly [Label in keyof Metrics[Each]["labels"]]: ValueOf<Metrics[Each]["labels"][Label]> }]

interface Gauge {
  /** Sets it to a number. Undefined: no series. */
  readonly set: (value: number | undefined) => void
}

/** The options of a metric of `effect`. Its labels are in the order of the list: another order is another series. */
const metricOptions = (name: Name, [labels = {}]: ReadonlyArray<Readonly<Record<string, string>>>) => {
  const definition: Definition = metrics[name]
  return {
    description: definition.help,
    attributes: Object.fromEntries(Object.keys(definition.labels).map((label) => [label, labels[label] ?? ""])),
    boundaries: definition.buckets ?? [],
    incremental: true
  }
}

const make = (registry: Metric.MetricRegistry) => {
  const context = Context.make(Metric.MetricRegistry, registry)
  const register = <Input, State>(metric: Metric.Metric<Input, State>, get: () => State) =>
    Metric.registerUnsafe(metric, context, { get, update: () => {}, modify: () => {} })

  /** Updates a metric, whose series is there from now on. Its hooks are kept: effect looks them up at each update. */
  const updating = <State>(metric: Metric.Metric<number, State>) => {
    const made: Metric.MetricRegistry = new Map()
    metric.valueUnsafe(Context.make(Metric.MetricRegistry, made))
    const [series] = Array.from(made, ([key, own]) => registry.get(key) ?? registry.set(key, own).get(key))
    return (value: number): void => series?.hooks.update(value, context)
  }

  return {
    /** The counter of these labels. Exposed at 0 from this call on. */
    counter: <Each extends NameOf<"counter">>(name: Each, ...labels: LabelArgument<Each>) => {
      const update = updating(Metric.counter(name, metricOptions(name, labels)))
      return { add: (amount = 1) => update(amount) }
    },
    /** The histogram of these labels. It is there, empty, from this call on. */
    histogram: <Each extends NameOf<"histogram">>(name: Each, ...labels: LabelArgument<Each>) => ({
      observe: updating(Metric.histogram(name, metricOptions(name, labels)))
    }),
    /** The gauge of these labels. There is no series until it is set. */
    gauge: <Each extends NameOf<"gauge">>(name: Each, ...labels: LabelArgument<Each>): Gauge => {
      const metric = Metric.gauge(name, metricOptions(name, labels))
      return {
        set: (value) => {
          if (value === undefined) Metric.removeUnsafe(metric, context)
          else register(metric, () => ({ value }))
        }
      }
    },
    /** A series whose value a quick function computes when the metrics are read, until the scope closes. */
    read: <Each extends NameOf<"counter" | "gauge">>(name: Each, read: () => number, ...labels: LabelArgument<Each>) =>
      Effect.acquireRelease(
        Effect.sync(() =>
          metrics[name].kind === "counter"
            ? register(Metric.counter(name, metricOptions(name, labels)), () => ({ count: read(), incremental: true }))
            : register(Metric.gauge(name, metricOptions(name, labels)), () => ({ value: read() }))
        ),
        (registration) => Effect.sync(() => registration.remove())
      )
  }
}

export type Series = ReturnType<typeof make>

/** The series of the current registry, which is the one of `effect` unless another is provided. */
export const series = Effect.map(Metric.MetricRegistry, Function.memoize(make))
