/** For each alert a fault, as the metrics tell it, that fires it and no other. */
import { Array } from "effect"
import type { Series } from "../../support/Series.ts"
import { healthySeries, type Told, type Values } from "./healthySeries.ts"

/** What the series of a metric become, where they have these labels. */
interface Change {
  readonly metric: string
  readonly labels?: Readonly<Record<string, string>>
  readonly values: (before: Values) => Values
}

export interface Case {
  readonly fault: string
  /** The alerts that fire at the end, each with a part of its summary; none of a healthy service. */
  readonly fires: Readonly<Record<string, string>>
  readonly changes: ReadonlyArray<Change>
  /** Series that there are beside the healthy ones. */
  readonly more?: ReadonlyArray<Told>
  /** How long it is watched, in seconds, of which the last minute has the fault; and how often. */
  readonly seconds?: number
  readonly step?: number
}

const begin = 120

/** From its beginning on the fault sets a value. */
const becomes =
  (value: number | undefined, since = begin) =>
  (before: Values): Values =>
  (seconds) =>
    seconds > since ? value : before(seconds)

/** From its beginning on the fault adds to a counter each second. */
const grows =
  (rate: number, since = begin) =>
  (before: Values): Values =>
  (seconds) => {
    const value = before(seconds)
    return value === undefined ? undefined : value + Math.max(0, seconds - since) * rate
  }

/** A gauge that grows with the time. */
const ages =
  (start: number) =>
  (before: Values): Values =>
  (seconds) =>
    seconds > begin ? start + seconds - begin : before(seconds)

const nothing: Values = () => undefined

/** Nothing falls into the buckets up to a bound any more. */
const slower = (name: string, bounds: ReadonlyArray<string>, labels: Readonly<Record<string, string>> = {}) =>
  bounds.map((le): Change => ({
    metric: `${name}_bucket`,
    labels: { ...labels, le },
    values: (before) => (seconds) => before(Math.min(seconds, begin))
  }))

const charges = { endpoint: "/api/v3/charges/search" }
const upToOneSecond = ["0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1"]

const refused = (reason: string, rate: number): ReadonlyArray<Change> => [
  { metric: "practice_data_http_requests_refused_total", labels: { reason }, values: grows(rate) }
]

const responses = (status: string, rate: number): Change => ({
  metric: "practice_data_http_requests_total",
  labels: { ...charges, status },
  values: grows(rate)
})

const deliveries = (outcome: string): ReadonlyArray<Change> => [
  { metric: "practice_data_deliveries_total", labels: { outcome }, values: grows(1) }
]

const processorOutcome = (outcome: string): ReadonlyArray<Change> => [
  { metric: "practice_data_processor_requests_total", labels: { outcome }, values: grows(1) }
]

const target = { job: "practice-data", instance: "10.0.0.1:9464" }

export const cases: ReadonlyArray<Case> = [
  { fault: "nothing", fires: {}, changes: [] },
  {
    fault: "a process is gone",
    fires: { PracticeDataDown: "10.0.0.1:9464 does not answer" },
    changes: Array.dedupe(healthySeries.map(({ labels }) => labels["__name__"] ?? "")).map((metric) => ({
      metric,
      values: becomes(metric === "up" ? 0 : undefined)
    }))
  },
  {
    fault: "a process is restarted in good order with a new version, and is away for 4 seconds",
    fires: {},
    changes: [
      {
        metric: "up",
        values: (before) => (seconds) => (seconds > begin + 8 && seconds <= begin + 12 ? 0 : before(seconds))
      },
      {
        metric: "practice_data_stopping",
        values: (before) => (seconds) => (seconds > begin && seconds < begin + 10 ? 1 : before(seconds))
      },
      {
        metric: "practice_data_ready",
        values: (before) => (seconds) => (seconds > begin && seconds < begin + 10 ? 0 : before(seconds))
      },
      { metric: "process_start_time_seconds", values: becomes(begin + 12, begin + 10) }
    ]
  },
  {
    fault: "a process was stopped in good order 20 seconds ago, and is not there yet",
    fires: {},
    changes: Array.dedupe(healthySeries.map(({ labels }) => labels["__name__"] ?? "")).map((metric) => ({
      metric,
      values: (before) => (seconds) =>
        seconds <= begin
          ? before(seconds)
          : seconds <= begin + 10
            ? metric === "practice_data_stopping"
              ? 1
              : before(seconds)
            : metric === "up"
              ? 0
              : undefined
    })),
    seconds: begin + 30
  },
  {
    fault: "Prometheus has no target",
    fires: { PracticeDataAbsent: "Prometheus knows no process" },
    changes: [{ metric: "up", values: () => nothing }]
  },
  {
    fault: "the database is not migrated",
    fires: { PracticeDataNotReady: "not ready, though its databases answer" },
    changes: [{ metric: "practice_data_ready", values: becomes(0) }]
  },
  {
    fault: "a process stops for longer than a minute",
    fires: {},
    changes: [
      { metric: "practice_data_ready", values: becomes(0) },
      { metric: "practice_data_stopping", values: becomes(1) }
    ]
  },
  {
    fault: "one of two processes hangs",
    fires: { PracticeDataProcessMissing: "Only 1 of the processes" },
    changes: [
      { metric: "practice_data_processes", values: () => () => 2 },
      {
        metric: "practice_data_processes_answered",
        values: (before) => (seconds) => (seconds > begin ? before(seconds) : 2)
      }
    ]
  },
  {
    fault: "one of the processes is killed",
    fires: { PracticeDataProcessEnded: "ended and was replaced" },
    changes: [{ metric: "practice_data_process_restarts_total", values: grows(0.05) }]
  },
  {
    fault: "a process ends again and again",
    fires: { PracticeDataRestarting: "was started" },
    changes: [
      {
        metric: "process_start_time_seconds",
        values: (before) => (seconds) => (seconds > begin ? Math.floor(seconds / 10) * 10 : before(seconds))
      }
    ]
  },
  {
    fault: "a roll-out stops half-way",
    fires: { PracticeDataVersionsDiffer: "2 versions" },
    changes: [],
    more: [
      {
        labels: {
          job: target.job,
          instance: "10.0.0.2:9464",
          __name__: "practice_data_build_info",
          version: "0.2.0",
          node: "v24.21.0",
          roles: "worker"
        },
        values: () => 1
      }
    ],
    seconds: 2400,
    step: 60
  },
  ...["records", "credentials", "tasks", "embedded"].map((dependency): Case => ({
    fault: `the database of the ${dependency} is down`,
    fires: { PracticeDataDatabaseDown: `The ${dependency} database does not answer 10.0.0.1:9464` },
    changes: [
      { metric: "practice_data_dependency_up", labels: { dependency }, values: becomes(0) },
      {
        metric: "practice_data_dependency_outages_total",
        labels: { dependency },
        values: (before) => (seconds) => (before(seconds) ?? 0) + (seconds > begin ? 1 : 0)
      },
      { metric: "practice_data_statements_total", labels: { outcome: "timeout" }, values: grows(5) },
      ...slower("practice_data_http_request_duration_seconds", upToOneSecond),
      ...refused("outage", 50),
      responses("5xx", 50)
    ]
  })),
  {
    fault: "the database was down for 10 seconds, and is back",
    fires: {},
    changes: [
      {
        metric: "practice_data_dependency_up",
        labels: { dependency: "records" },
        values: (before) => (seconds) => (seconds > begin && seconds < begin + 10 ? 0 : before(seconds))
      },
      {
        metric: "practice_data_http_requests_total",
        labels: { ...charges, status: "5xx" },
        values: (before) => (seconds) => (before(seconds) ?? 0) + Math.min(10, Math.max(0, seconds - begin)) * 50
      }
    ]
  },
  {
    fault: "the database comes and goes",
    fires: { PracticeDataDatabaseUnsteady: "The records database came and went" },
    changes: [
      { metric: "practice_data_dependency_outages_total", labels: { dependency: "records" }, values: grows(0.1) }
    ]
  },
  {
    fault: "one key asks for all that it can",
    fires: { PracticeDataPoolWaits: "connection of the pool records" },
    changes: slower("practice_data_pool_wait_seconds", ["0.001", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25"], {
      pool: "records"
    })
  },
  {
    fault: "statements take longer than 5 seconds",
    fires: { PracticeDataStatementTimeouts: "pool records" },
    changes: [
      { metric: "practice_data_statements_total", labels: { pool: "records", outcome: "timeout" }, values: grows(1) }
    ]
  },
  {
    fault: "somebody holds a lock",
    fires: { PracticeDataDatabaseBusy: "a lock is held" },
    changes: [
      { metric: "practice_data_statements_total", labels: { pool: "records", outcome: "busy" }, values: grows(1) }
    ]
  },
  {
    fault: "a bug",
    fires: { PracticeDataBug: "500: a bug" },
    changes: refused("bug", 0.05)
  },
  {
    fault: "one path refuses half of its requests",
    fires: { PracticeDataErrors: "50% of the requests to /api/v3/charges/search" },
    changes: [responses("5xx", 20)]
  },
  {
    fault: "there is too much to do",
    fires: { PracticeDataOverloaded: "because it had too much to do" },
    changes: refused("load", 5)
  },
  {
    fault: "one path is slow",
    fires: { PracticeDataSlow: "/api/v3/charges/search of 10.0.0.1:9464 takes" },
    changes: slower("practice_data_http_request_duration_seconds", upToOneSecond, charges)
  },
  {
    fault: "somebody tries keys",
    fires: { PracticeDataUnauthorized: "for their API key" },
    changes: [...refused("key", 50), responses("4xx", 50)]
  },
  {
    fault: "a client goes on with its old key for a while after a rotation",
    fires: {},
    changes: [...refused("key", 0.2), responses("4xx", 0.2)]
  },
  {
    fault: "an organization asks more than its limit",
    fires: { PracticeDataRateLimited: "with 429" },
    changes: refused("limit", 5)
  },
  { fault: "slow senders", fires: { PracticeDataBrokenRequests: "too slow" }, changes: refused("timeout", 5) },
  { fault: "what is not HTTP", fires: { PracticeDataBrokenRequests: "not HTTP" }, changes: refused("protocol", 5) },
  {
    fault: "hostile bodies",
    fires: { PracticeDataInvalidRequests: "for what they say" },
    changes: refused("invalid", 50)
  },
  {
    fault: "callers hang up",
    fires: { PracticeDataClientsLeave: "callers of 10.0.0.1:9464 hung up" },
    changes: [responses("499", 10)]
  },
  {
    fault: "all connections are taken",
    fires: { PracticeDataConnectionsRefused: "MAX_CONNECTIONS", PracticeDataConnectionsNearLimit: "100%" },
    changes: [
      { metric: "practice_data_http_connections", values: becomes(2000) },
      { metric: "practice_data_http_connections_refused_total", values: grows(3) }
    ]
  },
  {
    fault: "many connections are taken",
    fires: { PracticeDataConnectionsNearLimit: "90%" },
    changes: [{ metric: "practice_data_http_connections", values: becomes(1800) }]
  },
  {
    fault: "no worker for half a minute",
    fires: { PracticeDataDeletionsLate: "A deletion has been due for 30s" },
    changes: [
      {
        metric: "practice_data_task_oldest_due_age_seconds",
        values: (before) => (seconds) => (seconds > begin ? (seconds - begin) / 2 : before(seconds))
      }
    ]
  },
  {
    fault: "no worker",
    fires: { PracticeDataDeletionsLate: "due for", PracticeDataDeletionsOverdue: "due for" },
    changes: [{ metric: "practice_data_task_oldest_due_age_seconds", values: ages(30) }]
  },
  {
    fault: "a deletion cannot be done",
    fires: { PracticeDataDeletionsDead: "1 deletions failed 8 times" },
    changes: [{ metric: "practice_data_tasks", labels: { state: "dead" }, values: becomes(1) }]
  },
  {
    fault: "a deletion fails",
    fires: { PracticeDataDeletionAttemptsFail: "Attempts of deletions fail" },
    changes: [{ metric: "practice_data_task_runs_total", labels: { outcome: "failed" }, values: grows(0.1) }]
  },
  {
    fault: "a worker dies",
    fires: { PracticeDataTakeovers: "took over" },
    changes: [{ metric: "practice_data_task_takeovers_total", values: grows(1) }]
  },
  {
    fault: "a sender names what is not there",
    fires: { PracticeDataDeletionsMatchNothing: "was not there" },
    changes: [
      {
        metric: "practice_data_task_items_total",
        labels: { kind: "invoices", verdict: "not_found" },
        values: grows(50)
      }
    ]
  },
  {
    fault: "the tasks cannot be counted",
    fires: { PracticeDataTasksNotCounted: "has not counted the deletion tasks" },
    changes: [
      { metric: "practice_data_tasks_read_timestamp_seconds", values: () => (seconds) => Math.min(seconds, 100) }
    ]
  },
  {
    fault: "a sender signs wrongly",
    fires: { PracticeDataUnsignedDeliveries: "signature" },
    changes: deliveries("unsigned")
  },
  {
    fault: "a sender uses keys twice",
    fires: { PracticeDataKeysReused: "another payload" },
    changes: deliveries("key_reused")
  },
  {
    fault: "a sender sends nonsense",
    fires: { PracticeDataDeliveriesInvalid: "what they say" },
    changes: deliveries("invalid")
  },
  {
    fault: "a transaction stays open",
    fires: { PracticeDataChangesHeldBack: "An open transaction has held changes back" },
    changes: [{ metric: "practice_data_changes_lag_seconds", values: ages(30) }]
  },
  {
    fault: "the replica stands still",
    fires: { PracticeDataReplicaBehind: "The replica of READ_DATABASE_URL" },
    changes: [
      { metric: "practice_data_changes_lag_seconds", values: ages(30) },
      { metric: "practice_data_replica_lag_seconds", values: ages(30) }
    ]
  },
  {
    fault: "the payment processor is down",
    fires: { PracticeDataProcessorDown: "The payment processor does not answer 10.0.0.1:9464" },
    changes: [
      { metric: "practice_data_processor_circuit_open", values: becomes(1) },
      { metric: "practice_data_dependency_up", labels: { dependency: "processor" }, values: becomes(0) },
      {
        metric: "practice_data_http_requests_total",
        labels: { endpoint: "/api/v3/psp-payments/search", status: "5xx" },
        values: grows(5)
      },
      ...slower("practice_data_processor_request_duration_seconds", [
        "0.025",
        "0.05",
        "0.1",
        "0.25",
        "0.5",
        "1",
        "2",
        "4"
      ]),
      ...refused("processor", 5)
    ]
  },
  {
    fault: "the account of one clinic is broken",
    fires: { PracticeDataProcessorAccountFails: "1 accounts at the payment processor fail" },
    changes: [
      { metric: "practice_data_processor_account_circuits_open", values: becomes(1) },
      {
        metric: "practice_data_http_requests_total",
        labels: { endpoint: "/api/v3/psp-payments/search", status: "5xx" },
        values: grows(5)
      },
      ...slower("practice_data_processor_request_duration_seconds", [
        "0.025",
        "0.05",
        "0.1",
        "0.25",
        "0.5",
        "1",
        "2",
        "4"
      ]),
      ...refused("processor", 5)
    ]
  },
  {
    fault: "the payment processor is slow",
    fires: { PracticeDataProcessorSlow: "Half of the calls" },
    changes: slower("practice_data_processor_request_duration_seconds", [
      "0.025",
      "0.05",
      "0.1",
      "0.25",
      "0.5",
      "1",
      "2"
    ])
  },
  {
    fault: "the payment processor limits us",
    fires: { PracticeDataProcessorLimits: "for their number" },
    changes: processorOutcome("rate_limited")
  },
  {
    fault: "the payment processor does not understand us",
    fires: { PracticeDataProcessorRefuses: "as wrong" },
    changes: processorOutcome("refused")
  },
  {
    fault: "the event loop is blocked",
    fires: { PracticeDataEventLoopBlocked: "is 800ms late" },
    changes: [{ metric: "practice_data_event_loop_delay_seconds", values: becomes(0.8) }]
  },
  {
    fault: "a core is full for some minutes",
    fires: { PracticeDataCpuSaturated: "of a core" },
    changes: [{ metric: "process_cpu_seconds_total", values: grows(0.79) }],
    seconds: 300
  },
  {
    fault: "memory leaks",
    fires: { PracticeDataMemoryGrows: "grew to" },
    changes: [{ metric: "process_resident_memory_bytes", values: () => (seconds) => (seconds < 8100 ? 1e9 : 2e9) }],
    seconds: 10_800,
    step: 60
  },
  {
    fault: "the heap is nearly full",
    fires: { PracticeDataHeapFull: "90% full" },
    changes: [{ metric: "nodejs_heap_size_used_bytes", values: becomes(3.6e9) }]
  },
  {
    fault: "a clock is wrong",
    fires: { PracticeDataClockOff: "is 2s off" },
    changes: [{ metric: "practice_data_clock_offset_seconds", values: becomes(-2) }]
  },
  {
    fault: "nobody reads the log",
    fires: { PracticeDataLogLinesDropped: "of its log" },
    changes: [{ metric: "practice_data_log_lines_dropped_total", values: grows(10) }]
  },
  {
    fault: "the collector is down",
    fires: { PracticeDataTelemetryFails: "cannot export its traces" },
    changes: [
      { metric: "practice_data_telemetry_export_failures_total", labels: { signal: "traces" }, values: grows(0.2) }
    ]
  }
]

const applies = ({ labels = {}, metric }: Change, told: Told) =>
  told.labels["__name__"] === metric && Object.entries(labels).every(([name, value]) => told.labels[name] === value)

/** When a case ends, in seconds, and how far its samples are apart. */
export const spanOf = ({ seconds = begin + 60, step = 5 }: Case) => ({ seconds, step })

/** The series that the metrics of a case tell. */
export const seriesOf = (given: Case): ReadonlyArray<Series> => {
  const { seconds, step } = spanOf(given)
  const times = Array.makeBy(Math.floor(seconds / step) + 1, (index) => index * step)
  return [...healthySeries, ...(given.more ?? [])].map((told) => {
    const values = given.changes
      .filter((change) => applies(change, told))
      .reduce((before, change) => change.values(before), told.values)
    return { labels: told.labels, samples: times.map((time) => ({ time, value: values(time) })) }
  })
}
