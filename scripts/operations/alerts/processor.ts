/** Alerts on the payment processor. */
import { type Alert, grew, quantile } from "../Alert.ts"

const outcome = (name: string) => grew(`practice_data_processor_requests_total{outcome="${name}"}`)

export const processor: ReadonlyArray<Alert> = [
  {
    name: "PracticeDataProcessorDown",
    severity: "page",
    expression: "max without (process) (practice_data_processor_circuit_open) == 1",
    for: 0,
    summary: "The payment processor does not answer {{ $labels.instance }}, or refuses our key",
    means:
      "Five calls in a row failed: no connection, our key refused, or 5xx and nonsense for accounts of several organizations. `psp-*` reads are 503; nothing else is affected.",
    act: "Look at the processor's status page. If it is well: the log has the cause; a refused key: see Rotate. It is tried again each second."
  },
  {
    name: "PracticeDataProcessorAccountFails",
    severity: "ticket",
    expression: "max without (process) (practice_data_processor_account_circuits_open) > 0",
    for: 0,
    summary:
      "{{ $value }} accounts at the payment processor fail for {{ $labels.instance }}; the processor itself answers",
    means: "The account of a clinic is closed, restricted, or hangs. Only reads of that clinic are 503.",
    act: "The log names the organization, the clinic and the processor's request id. The clinic has to look into its account."
  },
  {
    name: "PracticeDataProcessorSlow",
    severity: "ticket",
    expression: `${quantile(0.5, "practice_data_processor_request_duration_seconds")} > 2 unless on (instance) max_over_time(practice_data_processor_account_circuits_open[2m]) > 0 unless on (instance) max_over_time(practice_data_processor_circuit_open[2m]) > 0`,
    for: 0,
    summary:
      "Half of the calls of the payment processor from {{ $labels.instance }} take longer than {{ $value | humanizeDuration }}",
    means: "It answers, and slowly. After 8 seconds a read is 503.",
    act: "Look at the processor's status page, and at the network between it and this host."
  },
  {
    name: "PracticeDataProcessorLimits",
    severity: "ticket",
    expression: `${outcome("rate_limited")} > 5`,
    for: 0,
    summary:
      "The payment processor refused about {{ $value | printf `%.0f` }} calls of {{ $labels.instance }} for their number",
    means: "Partners read more often than the processor allows all of us. They get 503 with its `Retry-After`.",
    act: "`/ops` shows which organization reads `psp-*` most. Set `RATE_LIMIT`, or ask the processor for more."
  },
  {
    name: "PracticeDataProcessorRefuses",
    severity: "ticket",
    expression: `${outcome("refused")} > 0`,
    for: 0,
    summary:
      "The payment processor refused about {{ $value | printf `%.0f` }} calls of {{ $labels.instance }} as wrong",
    means: "It does not understand what we send: a change on its side, or a bug on ours.",
    act: "The log has the code and the processor's request id. Report it."
  }
]
