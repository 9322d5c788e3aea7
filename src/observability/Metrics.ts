/**
 * The metrics of the service, the one list of them: what updates a metric, the documentation, the alerts and the dashboard
 * are all held against it. Names and units follow Prometheus: seconds, bytes, and `_total` for what only grows.
 */

/** A label whose values are not known here: what they are, and how many there can be. */
export interface OpenLabel {
  readonly values: string
  readonly atMost: number
}

/** A metric. Each combination of values of its labels is a series. */
export interface Definition {
  readonly kind: "counter" | "gauge" | "histogram"
  /** What it says, as `# HELP` shows it. */
  readonly help: string
  /** The values of each label. */
  readonly labels: Readonly<Record<string, ReadonlyArray<string> | OpenLabel>>
  /** The upper bounds of a histogram's buckets, in its unit; one more has no bound. */
  readonly buckets?: ReadonlyArray<number>
  /** Of a metric that is the same in all processes, because it is about the database: take the maximum, never the sum. */
  readonly isShared?: true
  /** Where there is such a series, if not in every service. */
  readonly when?: string
}

/** A path that is served, however many processes and roles there are, or `other`. */
const endpoint = { values: "a path that is served, or `other`", atMost: 100 } as const

/** Classes of statuses; 499 is a client that left before its response was sent. */
export const statuses = ["2xx", "3xx", "4xx", "5xx", "499"] as const

/** Why a request is refused. */
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

/** What becomes of a delivery. */
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
export const pools = ["records", "credentials", "tasks", "embedded"] as const
export type Pool = (typeof pools)[number]

/** What comes of a statement. */
export const statementOutcomes = [
  "success",
  "timeout",
  "refused",
  "busy",
  "unreachable",
  "failed",
  "interrupted"
] as const

/** What comes of a call of the payment processor. */
export const processorOutcomes = [
  "success",
  "rate_limited",
  "unavailable",
  "interrupted",
  "refused",
  "account_failed",
  "account_unauthorized",
  "account_disconnected",
  "cursor_unknown"
] as const

/** How many organizations have a series of their own. */
export const maximumOrganizations = 1000

const upToTenSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10] as const

export const metrics = {
  practice_data_http_requests_total: {
    kind: "counter",
    help: "Requests that were answered, by path and class of status; 499 is a client that left before.",
    labels: { endpoint, status: statuses }
  },
  practice_data_http_request_duration_seconds: {
    kind: "histogram",
    help: "Time from the headers of a request to its response, without the time that a request for changes chose to wait.",
    labels: { endpoint },
    buckets: upToTenSeconds
  },
  practice_data_http_requests_in_flight: {
    kind: "gauge",
    help: "Requests that are being answered.",
    labels: {}
  },
  practice_data_http_response_bytes_total: {
    kind: "counter",
    help: "Bytes of response bodies.",
    labels: { endpoint }
  },
  practice_data_http_requests_refused_total: {
    kind: "counter",
    help: "Requests that were refused (an answer that there is no such record is none): key (none that is valid), signature (of a delivery), limit (RATE_LIMIT, or too much pending), load (too much at once), outage (a store does not answer), processor (it does not answer), too_large (413), invalid (for what it says), protocol (not HTTP), timeout (it did not arrive in time), bug (500).",
    labels: { reason: refusals }
  },
  practice_data_http_connections: {
    kind: "gauge",
    help: "Connections of clients that are open.",
    labels: {}
  },
  practice_data_http_connections_limit: {
    kind: "gauge",
    help: "MAX_CONNECTIONS: how many may be open.",
    labels: {}
  },
  practice_data_http_connections_refused_total: {
    kind: "counter",
    help: "Connections that were refused because MAX_CONNECTIONS of them were open.",
    labels: {}
  },
  practice_data_organization_requests_total: {
    kind: "counter",
    help: "Requests with a valid key, by organization: the first 1,000 that a process sees, then other.",
    labels: {
      organization: { values: "the id of an organization, or `other`", atMost: maximumOrganizations + 1 },
      status: statuses
    },
    when: "METRICS_BY_ORGANIZATION=true"
  },
  practice_data_pool_connections: {
    kind: "gauge",
    help: "Connections that a pool may open.",
    labels: { pool: pools }
  },
  practice_data_pool_connections_busy: {
    kind: "gauge",
    help: "Connections that are taken.",
    labels: { pool: pools }
  },
  practice_data_pool_waiting: {
    kind: "gauge",
    help: "Statements that wait for a connection.",
    labels: { pool: pools }
  },
  practice_data_pool_wait_seconds: {
    kind: "histogram",
    help: "Time that a statement waited for a connection.",
    labels: { pool: pools },
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1]
  },
  practice_data_statements_total: {
    kind: "counter",
    help: "Statements, by what came of them: timeout (no result in time), refused (no connection in time, or too many wait for one), busy (the database had no room, or a lock was not free), unreachable (the database is down), failed (an error of their own), interrupted (the caller left).",
    labels: {
      pool: pools,
      outcome: statementOutcomes
    }
  },
  practice_data_statement_duration_seconds: {
    kind: "histogram",
    help: "Time that a statement had its connection.",
    labels: { pool: pools },
    buckets: upToTenSeconds
  },
  practice_data_dependency_up: {
    kind: "gauge",
    help: "Whether a database can be reached, or the circuit breaker of the processor is closed (1). What nobody else asks is asked every 5 seconds.",
    labels: { dependency: [...pools, "processor"] }
  },
  practice_data_dependency_outages_total: {
    kind: "counter",
    help: "How often a database could not be reached any more, or the circuit breaker of the processor opened.",
    labels: { dependency: [...pools, "processor"] }
  },
  practice_data_tasks: {
    kind: "gauge",
    help: "Deletion tasks that are not completed, by state, counted every 5 seconds up to 10,000 each. Absent while the task store does not answer.",
    labels: { state: ["scheduled", "running", "dead"] },
    isShared: true,
    when: "the roles intake or worker"
  },
  practice_data_task_oldest_due_age_seconds: {
    kind: "gauge",
    help: "For how long the deletion task has been due that has waited the longest; 0 if none is due. Absent while the task store does not answer.",
    labels: {},
    isShared: true,
    when: "the roles intake or worker"
  },
  practice_data_tasks_read_timestamp_seconds: {
    kind: "gauge",
    help: "When the deletion tasks were last counted, in seconds since 1970; 0 if they never were.",
    labels: {},
    isShared: true,
    when: "the roles intake or worker"
  },
  practice_data_clock_offset_seconds: {
    kind: "gauge",
    help: "How far the clock of the process is ahead of the task store's. Absent while that does not answer.",
    labels: {},
    when: "the roles intake or worker"
  },
  practice_data_task_runs_total: {
    kind: "counter",
    help: "Attempts of deletion tasks that ended, by outcome: failed (another attempt follows), dead (it was the last one), superseded (another worker has the task by now), released (an outage or a stop ended it, and it does not count).",
    labels: { outcome: ["completed", "failed", "dead", "superseded", "released"] },
    when: "the role worker"
  },
  practice_data_task_attempts_total: {
    kind: "counter",
    help: "Attempts of deletion tasks that ended, whatever came of them; not those whose worker was lost.",
    labels: {},
    when: "the role worker"
  },
  practice_data_task_takeovers_total: {
    kind: "counter",
    help: "Attempts of tasks whose worker before did not renew its lease, because it died or was paused.",
    labels: {},
    when: "the role worker"
  },
  practice_data_task_items_total: {
    kind: "counter",
    help: "Invoices and lines that completed deletions named, by verdict; lines_of_invoices are those deleted with their invoice.",
    labels: {
      kind: ["invoices", "invoice_lines", "lines_of_invoices"],
      verdict: ["deleted", "not_found", "clinic_mismatch", "client_mismatch", "invoice_mismatch"]
    },
    when: "the role worker"
  },
  practice_data_task_delay_seconds: {
    kind: "histogram",
    help: "Time from when a deletion task was scheduled for to its completion.",
    labels: {},
    buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 86_400],
    when: "the role worker"
  },
  practice_data_deliveries_total: {
    kind: "counter",
    help: "Deliveries of invoice deletions, by outcome: duplicate (stored before), key_reused (with another payload), full (503: the organization has as much pending as it may), unavailable (503), invalid (refused for what they say), unsigned (without a valid signature where one is required).",
    labels: { outcome: deliveries },
    when: "the role intake"
  },
  practice_data_changes_lag_seconds: {
    kind: "gauge",
    help: "For how long a transaction, or a replica, has held changes back. Absent while the records cannot be read.",
    labels: {},
    isShared: true,
    when: "the roles data-api or worker"
  },
  practice_data_changes_waiting: {
    kind: "gauge",
    help: "Requests that wait for changes.",
    labels: {},
    when: "the roles data-api or worker"
  },
  practice_data_replica_lag_seconds: {
    kind: "gauge",
    help: "How far the replica of READ_DATABASE_URL is behind. Absent while it or its primary does not answer, or it is no replica.",
    labels: {},
    isShared: true,
    when: "a READ_DATABASE_URL of a replica"
  },
  practice_data_processor_requests_total: {
    kind: "counter",
    help: "Calls of the payment processor, by outcome: interrupted (no answer in time, or the caller left), unavailable (it or the way to it failed), refused (our request).",
    labels: {
      outcome: processorOutcomes
    },
    when: "the role data-api"
  },
  practice_data_processor_request_duration_seconds: {
    kind: "histogram",
    help: "Time that a call of the payment processor took.",
    labels: {},
    buckets: [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8],
    when: "the role data-api"
  },
  practice_data_processor_circuit_open: {
    kind: "gauge",
    help: "Whether the circuit breaker of the payment processor is open (1): it is not called, but for a probe.",
    labels: {},
    when: "the role data-api"
  },
  practice_data_processor_account_circuits_open: {
    kind: "gauge",
    help: "Accounts at the payment processor whose circuit breaker is open.",
    labels: {},
    when: "the role data-api"
  },
  practice_data_ready: {
    kind: "gauge",
    help: "Whether the process is ready (1): its database is migrated and it is not stopping.",
    labels: {}
  },
  practice_data_stopping: {
    kind: "gauge",
    help: "Whether the process is stopping (1): it is not ready any more, and still serves what comes.",
    labels: {}
  },
  practice_data_event_loop_delay_seconds: {
    kind: "gauge",
    help: "How late the event loop was in the last 15 to 30 seconds: half of the time, 99 % of the time, and at most.",
    labels: { at: ["p50", "p99", "max"] }
  },
  practice_data_build_info: {
    kind: "gauge",
    help: "Always 1: the version of the service and of Node, and its roles.",
    labels: {
      version: { values: "the version of the service", atMost: 1 },
      node: { values: "the version of Node", atMost: 1 },
      roles: { values: "the roles, separated by commas", atMost: 1 }
    }
  },
  practice_data_log_lines_dropped_total: {
    kind: "counter",
    help: "Lines of the log that were dropped because their reader was too slow.",
    labels: {}
  },
  practice_data_telemetry_export_failures_total: {
    kind: "counter",
    help: "Tries to export over OTLP that failed. An export that is not taken is tried again.",
    labels: { signal: ["traces", "metrics", "logs"] },
    when: "OTEL_EXPORTER_OTLP_ENDPOINT"
  },
  practice_data_processes: {
    kind: "gauge",
    help: "Processes that are to serve: PROCESSES.",
    labels: {}
  },
  practice_data_processes_answered: {
    kind: "gauge",
    help: "Processes that gave their figures within a second, when these were asked for.",
    labels: {}
  },
  practice_data_process_restarts_total: {
    kind: "counter",
    help: "Processes that ended and were replaced.",
    labels: {}
  },
  process_resident_memory_bytes: {
    kind: "gauge",
    help: "Memory of the process.",
    labels: {}
  },
  process_cpu_seconds_total: {
    kind: "counter",
    help: "CPU time of the process, in user and system mode.",
    labels: {}
  },
  process_start_time_seconds: {
    kind: "gauge",
    help: "When the process started, in seconds since 1970.",
    labels: {}
  },
  nodejs_heap_size_used_bytes: {
    kind: "gauge",
    help: "JavaScript heap that is in use.",
    labels: {}
  },
  nodejs_heap_size_total_bytes: {
    kind: "gauge",
    help: "JavaScript heap that is allocated.",
    labels: {}
  },
  nodejs_heap_size_limit_bytes: {
    kind: "gauge",
    help: "JavaScript heap that may be allocated: with more, the process ends.",
    labels: {}
  }
} as const satisfies Readonly<Record<string, Definition>>

type Metrics = typeof metrics

/** The name of a metric. */
export type Name = keyof Metrics

/** The names of the metrics of a kind. */
export type NameOf<Kind extends Definition["kind"]> = {
  readonly [Each in Name]: Metrics[Each]["kind"] extends Kind ? Each : never
}[Name]

type ValueOf<Values> = Values extends ReadonlyArray<infer Value extends string> ? Value : string

/** The labels of a metric, each with one of its values. */
export type LabelsOf<Each extends Name> = {
  readonly [Label in keyof Metrics[Each]["labels"]]: ValueOf<Metrics[Each]["labels"][Label]>
}

/** The labels of a metric as an argument: none where the metric has none. */
export type LabelArgument<Each extends Name> = keyof Metrics[Each]["labels"] extends never
  ? []
  : [labels: LabelsOf<Each>]
