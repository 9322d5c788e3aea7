/** The dashboard for Grafana: rows of panels, each with its queries. */

/** A line of a panel: PromQL, and how its series are called. */
interface Query {
  readonly expression: string
  readonly legend: string
}

interface Panel {
  readonly title: string
  readonly unit: "reqps" | "s" | "short" | "percentunit" | "bytes" | "ops" | "Bps"
  readonly queries: ReadonlyArray<Query>
  /** `stat` shows the newest value alone. */
  readonly kind?: "stat"
}

interface Row {
  readonly title: string
  readonly panels: ReadonlyArray<Panel>
}

const of = '{job="$job",instance=~"$instance"}'

const where = (matchers: string) => `{job="$job",instance=~"$instance",${matchers}}`

const rate = (counter: string, by: string, matchers = of) =>
  `sum by (${by}) (rate(${counter}${matchers}[$__rate_interval]))`

const quantiles = (histogram: string, by: ReadonlyArray<string> = []): ReadonlyArray<Query> =>
  [0.5, 0.95, 0.99].map((q) => ({
    expression: `histogram_quantile(${q}, sum by (${["le", ...by].join(", ")}) (rate(${histogram}_bucket${of}[$__rate_interval])))`,
    legend: [`p${q * 100}`, ...by.map((label) => `{{${label}}}`)].join(" ")
  }))

const gauge = (name: string, legend: string, aggregate = "max", by = "instance"): Query => ({
  expression: `${aggregate} by (${by}) (${name}${of})`,
  legend
})

const rows: ReadonlyArray<Row> = [
  {
    title: "Now",
    panels: [
      {
        title: "Processes that answer",
        unit: "short",
        kind: "stat",
        queries: [
          { expression: `sum(practice_data_processes_answered${of})`, legend: "answer" },
          { expression: `sum(practice_data_processes${of})`, legend: "of" }
        ]
      },
      {
        title: "Not ready",
        unit: "short",
        kind: "stat",
        queries: [{ expression: `count(practice_data_ready${of} == 0) or vector(0)`, legend: "processes" }]
      },
      {
        title: "Requests",
        unit: "reqps",
        kind: "stat",
        queries: [{ expression: `sum(rate(practice_data_http_requests_total${of}[$__rate_interval]))`, legend: "all" }]
      },
      {
        title: "Oldest due deletion",
        unit: "s",
        kind: "stat",
        queries: [{ expression: `max(practice_data_task_oldest_due_age_seconds${of})`, legend: "age" }]
      },
      {
        title: "Changes held back for",
        unit: "s",
        kind: "stat",
        queries: [{ expression: `max(practice_data_changes_lag_seconds${of})`, legend: "lag" }]
      },
      {
        title: "Dependencies down",
        unit: "short",
        kind: "stat",
        queries: [{ expression: `count(practice_data_dependency_up${of} == 0) or vector(0)`, legend: "down" }]
      }
    ]
  },
  {
    title: "Requests",
    panels: [
      {
        title: "By status",
        unit: "reqps",
        queries: [{ expression: rate("practice_data_http_requests_total", "status"), legend: "{{status}}" }]
      },
      {
        title: "The ten busiest paths",
        unit: "reqps",
        queries: [
          { expression: `topk(10, ${rate("practice_data_http_requests_total", "endpoint")})`, legend: "{{endpoint}}" }
        ]
      },
      {
        title: "Bytes",
        unit: "Bps",
        queries: [{ expression: rate("practice_data_http_response_bytes_total", "instance"), legend: "{{instance}}" }]
      },
      {
        title: "Connections and requests in flight",
        unit: "short",
        queries: [
          gauge("practice_data_http_connections", "connections {{instance}}", "sum"),
          gauge("practice_data_http_connections_limit", "limit {{instance}}", "sum"),
          gauge("practice_data_http_requests_in_flight", "in flight {{instance}}", "sum")
        ]
      }
    ]
  },
  {
    title: "Latency",
    panels: [
      { title: "All requests", unit: "s", queries: quantiles("practice_data_http_request_duration_seconds") },
      {
        title: "The ten slowest paths (95 %)",
        unit: "s",
        queries: [
          {
            expression: `topk(10, histogram_quantile(0.95, sum by (le, endpoint) (rate(practice_data_http_request_duration_seconds_bucket${of}[$__rate_interval]))))`,
            legend: "{{endpoint}}"
          }
        ]
      }
    ]
  },
  {
    title: "Errors and refusals",
    panels: [
      {
        title: "5xx by path",
        unit: "reqps",
        queries: [
          {
            expression: `${rate("practice_data_http_requests_total", "endpoint", where('status="5xx"'))} > 0`,
            legend: "{{endpoint}}"
          }
        ]
      },
      {
        title: "Refused, by reason",
        unit: "reqps",
        queries: [{ expression: rate("practice_data_http_requests_refused_total", "reason"), legend: "{{reason}}" }]
      },
      {
        title: "Connections refused",
        unit: "ops",
        queries: [
          { expression: rate("practice_data_http_connections_refused_total", "instance"), legend: "{{instance}}" }
        ]
      }
    ]
  },
  {
    title: "Databases",
    panels: [
      {
        title: "Answers (1) or not (0)",
        unit: "short",
        queries: [gauge("practice_data_dependency_up", "{{dependency}} {{instance}}", "min", "dependency, instance")]
      },
      {
        title: "Connections taken, of those there are",
        unit: "percentunit",
        queries: [
          {
            expression: `sum by (pool, instance) (practice_data_pool_connections_busy${of}) / sum by (pool, instance) (practice_data_pool_connections${of})`,
            legend: "{{pool}} {{instance}}"
          }
        ]
      },
      {
        title: "Statements that wait",
        unit: "short",
        queries: [gauge("practice_data_pool_waiting", "{{pool}} {{instance}}", "sum", "pool, instance")]
      },
      { title: "Wait for a connection", unit: "s", queries: quantiles("practice_data_pool_wait_seconds", ["pool"]) },
      {
        title: "Statements",
        unit: "ops",
        queries: [
          { expression: rate("practice_data_statements_total", "pool, outcome"), legend: "{{pool}} {{outcome}}" }
        ]
      },
      { title: "Statement", unit: "s", queries: quantiles("practice_data_statement_duration_seconds", ["pool"]) },
      {
        title: "Outages",
        unit: "short",
        queries: [
          {
            expression: `sum by (dependency, instance) (increase(practice_data_dependency_outages_total${of}[$__rate_interval]))`,
            legend: "{{dependency}} {{instance}}"
          }
        ]
      }
    ]
  },
  {
    title: "Deletions",
    panels: [
      {
        title: "Deliveries",
        unit: "ops",
        queries: [{ expression: rate("practice_data_deliveries_total", "outcome"), legend: "{{outcome}}" }]
      },
      {
        title: "Tasks that are not completed",
        unit: "short",
        queries: [{ expression: `max by (state) (practice_data_tasks${of})`, legend: "{{state}}" }]
      },
      {
        title: "Oldest due",
        unit: "s",
        queries: [{ expression: `max(practice_data_task_oldest_due_age_seconds${of})`, legend: "age" }]
      },
      {
        title: "Attempts",
        unit: "ops",
        queries: [
          { expression: rate("practice_data_task_runs_total", "outcome"), legend: "{{outcome}}" },
          { expression: `sum(rate(practice_data_task_attempts_total${of}[$__rate_interval]))`, legend: "begun" },
          { expression: `sum(rate(practice_data_task_takeovers_total${of}[$__rate_interval]))`, legend: "taken over" }
        ]
      },
      { title: "From due to done", unit: "s", queries: quantiles("practice_data_task_delay_seconds") },
      {
        title: "Items, by verdict",
        unit: "ops",
        queries: [
          { expression: rate("practice_data_task_items_total", "kind, verdict"), legend: "{{kind}} {{verdict}}" }
        ]
      }
    ]
  },
  {
    title: "Changes",
    panels: [
      {
        title: "Lag",
        unit: "s",
        queries: [
          { expression: `max(practice_data_changes_lag_seconds${of})`, legend: "held back" },
          { expression: `max(practice_data_replica_lag_seconds${of})`, legend: "replica" }
        ]
      },
      {
        title: "Requests that wait for changes",
        unit: "short",
        queries: [gauge("practice_data_changes_waiting", "{{instance}}", "sum")]
      }
    ]
  },
  {
    title: "Payment processor",
    panels: [
      {
        title: "Calls",
        unit: "ops",
        queries: [{ expression: rate("practice_data_processor_requests_total", "outcome"), legend: "{{outcome}}" }]
      },
      { title: "Call", unit: "s", queries: quantiles("practice_data_processor_request_duration_seconds") },
      {
        title: "Circuit breakers that are open",
        unit: "short",
        queries: [
          gauge("practice_data_processor_circuit_open", "all accounts {{instance}}"),
          gauge("practice_data_processor_account_circuits_open", "accounts {{instance}}")
        ]
      }
    ]
  },
  {
    title: "Processes",
    panels: [
      {
        title: "CPU",
        unit: "percentunit",
        queries: [
          {
            expression: `rate(process_cpu_seconds_total${of}[$__rate_interval])`,
            legend: "{{instance}} {{process}}"
          }
        ]
      },
      {
        title: "Memory",
        unit: "bytes",
        queries: [
          { expression: `process_resident_memory_bytes${of}`, legend: "resident {{instance}} {{process}}" },
          { expression: `nodejs_heap_size_used_bytes${of}`, legend: "heap in use {{instance}} {{process}}" },
          { expression: `nodejs_heap_size_total_bytes${of}`, legend: "heap {{instance}} {{process}}" },
          { expression: `nodejs_heap_size_limit_bytes${of}`, legend: "limit {{instance}} {{process}}" }
        ]
      },
      {
        title: "Event loop delay",
        unit: "s",
        queries: [
          {
            expression: `practice_data_event_loop_delay_seconds${where('at=~"p99|max"')}`,
            legend: "{{at}} {{instance}} {{process}}"
          }
        ]
      },
      {
        title: "Starts and replacements",
        unit: "short",
        queries: [
          {
            expression: `sum by (instance) (changes(process_start_time_seconds${of}[$__rate_interval]))`,
            legend: "starts {{instance}}"
          },
          {
            expression: `sum by (instance) (increase(practice_data_process_restarts_total${of}[$__rate_interval]))`,
            legend: "replaced {{instance}}"
          }
        ]
      },
      {
        title: "Clock, beside that of the database",
        unit: "s",
        queries: [gauge("practice_data_clock_offset_seconds", "{{instance}}")]
      },
      {
        title: "Lost lines of the log, failed exports",
        unit: "short",
        queries: [
          { expression: rate("practice_data_log_lines_dropped_total", "instance"), legend: "lines {{instance}}" },
          {
            expression: rate("practice_data_telemetry_export_failures_total", "signal, instance"),
            legend: "{{signal}} {{instance}}"
          }
        ]
      },
      {
        title: "Versions",
        unit: "short",
        queries: [
          { expression: `count by (version, node) (practice_data_build_info${of})`, legend: "{{version}} on {{node}}" }
        ]
      }
    ]
  }
]

/** All queries of the dashboard. */
export const queries: ReadonlyArray<Query> = rows.flatMap(({ panels }) => panels.flatMap((panel) => panel.queries))

const datasource = { type: "prometheus", uid: "${datasource}" } as const

const width = { stat: 4, timeseries: 8 } as const
const height = { stat: 4, timeseries: 8 } as const
const columns = 24

const variable = (name: string, label: string, query: string, more: object) => ({
  type: "query",
  name,
  label,
  datasource,
  definition: query,
  query: { qryType: 1, query, refId: name },
  refresh: 2,
  sort: 1,
  ...more
})

/** Where panels stand: from left to right, and on in the next line. */
const placed = (panels: ReadonlyArray<Panel>, top: number) => {
  let x = 0
  let y = top
  return panels.map((panel) => {
    const kind = panel.kind ?? "timeseries"
    if (x + width[kind] > columns) {
      x = 0
      y += height[kind]
    }
    const gridPos = { x, y, w: width[kind], h: height[kind] }
    x += width[kind]
    return { panel, kind, gridPos }
  })
}

const refId = (index: number) => String.fromCharCode("A".charCodeAt(0) + index)

/** The dashboard as Grafana 11 imports it. */
export const dashboard = () => {
  let id = 0
  let top = 0
  const panels = rows.flatMap((row) => {
    const title = {
      type: "row",
      id: ++id,
      title: row.title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y: top, w: columns, h: 1 }
    }
    const inside = placed(row.panels, top + 1)
    top = Math.max(...inside.map(({ gridPos: { h, y } }) => y + h))
    return [
      title,
      ...inside.map(({ gridPos, kind, panel }) => ({
        type: kind,
        id: ++id,
        title: panel.title,
        datasource,
        gridPos,
        fieldConfig: {
          defaults: {
            unit: panel.unit,
            ...(kind === "timeseries" && { min: 0, custom: { fillOpacity: 8, showPoints: "never" } })
          },
          overrides: []
        },
        options:
          kind === "stat"
            ? { reduceOptions: { calcs: ["lastNotNull"] }, colorMode: "none", graphMode: "area" }
            : { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi", sort: "desc" } },
        targets: panel.queries.map(({ expression, legend }, index) => ({
          refId: refId(index),
          datasource,
          expr: expression,
          legendFormat: legend,
          editorMode: "code",
          range: true
        }))
      }))
    ]
  })
  return {
    uid: "practice-data",
    title: "Practice Data",
    tags: ["practice-data"],
    schemaVersion: 39,
    editable: true,
    refresh: "10s",
    time: { from: "now-1h", to: "now" },
    timezone: "browser",
    graphTooltip: 1,
    annotations: { list: [] },
    templating: {
      list: [
        { type: "datasource", name: "datasource", label: "Data source", query: "prometheus", refresh: 1 },
        variable("job", "Job", "label_values(practice_data_ready, job)", {}),
        variable("instance", "Instance", 'label_values(practice_data_ready{job="$job"}, instance)', {
          multi: true,
          includeAll: true,
          allValue: ".*"
        })
      ]
    },
    panels
  }
}
