/** Alerts on requests and connections. */
import { type Alert, grew, quantile, unlessDatabaseDown } from "../Alert.ts"

// The payment processor has alerts of its own, and a health check says 503 on purpose.
const own = 'endpoint!~"/api/v3/psp-.*|/api/v1/health.*"'

const refused = (reasons: string, range = "1m") =>
  `sum without (process, reason) (increase(practice_data_http_requests_refused_total{reason=~"${reasons}"}[${range}]))`

const byEndpoint = (matchers: string) =>
  `sum without (process, status) (rate(practice_data_http_requests_total{${matchers}}[1m]))`

export const requests: ReadonlyArray<Alert> = [
  {
    name: "PracticeDataBug",
    severity: "page",
    expression: `${refused("bug", "2m")} > 0`,
    for: 0,
    summary: "{{ $labels.instance }} answered a request with 500: a bug",
    means: "Something happened that the code does not expect. The caller saw no cause.",
    act: "The log has the cause, `A request failed`, with the `request_id`. Report it. After a roll-out: go back (see Upgrade)."
  },
  {
    name: "PracticeDataErrors",
    severity: "page",
    expression: unlessDatabaseDown(
      `${byEndpoint(`status="5xx",${own}`)} / ${byEndpoint(own)} > 0.05 and ${byEndpoint(`status="5xx",${own}`)} * 60 > 5`
    ),
    for: 0,
    summary:
      "{{ $value | humanizePercentage }} of the requests to {{ $labels.endpoint }} of {{ $labels.instance }} get a 5xx",
    means:
      "More than 5 % of what is asked there is refused with 503 (too busy, too slow, a lock) or fails, though the databases answer.",
    act: "The other alerts that fire now say which. In the access log, `status` and `refusal` of this path."
  },
  {
    name: "PracticeDataOverloaded",
    severity: "ticket",
    expression: unlessDatabaseDown(`${refused("load")} > 30`),
    for: 0,
    summary:
      "{{ $labels.instance }} refused about {{ $value | printf `%.0f` }} requests in a minute because it had too much to do",
    means:
      "Requests waited longer than a second for a connection, or too many waited. They got 503 with `Retry-After`.",
    act: "As PracticeDataPoolWaits: see in `/ops` whether it is one organization or all."
  },
  {
    name: "PracticeDataSlow",
    severity: "ticket",
    expression: unlessDatabaseDown(
      `${quantile(0.95, `practice_data_http_request_duration_seconds{${own}}`)} > 1 and sum without (process) (increase(practice_data_http_request_duration_seconds_count{${own}}[1m])) > 10`
    ),
    for: 0,
    summary: "{{ $labels.endpoint }} of {{ $labels.instance }} takes {{ $value | humanizeDuration }} (95 %)",
    means: "One request in twenty takes longer than a second.",
    act: "The access log says where the time goes: `database_ms`, `wait_ms` (for a connection), or neither: then the process is busy (PracticeDataEventLoopBlocked, PracticeDataCpuSaturated)."
  },
  {
    name: "PracticeDataUnauthorized",
    severity: "ticket",
    expression: `${refused("key")} > 100`,
    for: 0,
    summary: "{{ $labels.instance }} refused about {{ $value | printf `%.0f` }} requests in a minute for their API key",
    means: "A client goes on with a key that was revoked, or somebody tries keys. Keys cannot be guessed.",
    act: "The access log has the addresses and user agents of the 401. Give the client its new key, or block the address in front of the service."
  },
  {
    name: "PracticeDataRateLimited",
    severity: "ticket",
    expression: `${refused("limit")} > 30`,
    for: 0,
    summary: "{{ $labels.instance }} answered about {{ $value | printf `%.0f` }} requests in a minute with 429",
    means: "An organization asks more often than `RATE_LIMIT` allows.",
    act: "`/ops` and the access log name it. Our clients slow down by themselves; talk to whoever does not, or raise the limit."
  },
  {
    name: "PracticeDataBrokenRequests",
    severity: "ticket",
    expression: `${refused("protocol|timeout")} > 50`,
    for: 0,
    summary:
      "{{ $labels.instance }} closed about {{ $value | printf `%.0f` }} connections in a minute whose requests were not HTTP, too long or too slow",
    means:
      "Slow or broken senders, or an attack that keeps connections open. They are cut off in time; others are served.",
    act: "The access log has their addresses (`refusal` is `protocol` or `timeout`). Block them in front of the service if they do not stop."
  },
  {
    name: "PracticeDataInvalidRequests",
    severity: "ticket",
    expression: `${refused("invalid|too_large")} > 300`,
    for: 0,
    summary: "{{ $labels.instance }} refused about {{ $value | printf `%.0f` }} requests in a minute for what they say",
    means: "A client sends what the contract does not allow (400, 404, 405, 413, 415, 422), again and again.",
    act: "The access log has the organization and the path. The response told the client what is wrong."
  },
  {
    name: "PracticeDataClientsLeave",
    severity: "ticket",
    expression:
      'sum without (process, endpoint, status) (increase(practice_data_http_requests_total{status="499"}[1m])) > 50',
    for: 0,
    summary:
      "about {{ $value | printf `%.0f` }} callers of {{ $labels.instance }} hung up in a minute before their response was there",
    means: "Their timeout is shorter than what they ask for takes, or they break off on purpose.",
    act: "Compare with PracticeDataSlow. The access log has who it is (`status` 499) and how long they waited."
  },
  {
    name: "PracticeDataConnectionsRefused",
    severity: "page",
    expression: `${grew("practice_data_http_connections_refused_total", "1m")} > 0`,
    for: 0,
    summary:
      "{{ $labels.instance }} refused about {{ $value | printf `%.0f` }} connections in a minute: MAX_CONNECTIONS are open",
    means: "Nobody else gets in. A client opens a connection for each request and keeps it, or it is an attack.",
    act: "`ss -tn` shows who has them. Raise `MAX_CONNECTIONS`, or lower `IDLE_TIMEOUT`, or block the address."
  },
  {
    name: "PracticeDataConnectionsNearLimit",
    severity: "ticket",
    expression: "practice_data_http_connections / practice_data_http_connections_limit > 0.8",
    for: 30,
    summary: "{{ $labels.instance }} has {{ $value | humanizePercentage }} of MAX_CONNECTIONS open",
    means: "At 100 % further connections are refused.",
    act: "As PracticeDataConnectionsRefused, and there is still time."
  }
]
