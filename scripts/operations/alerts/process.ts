/** Alerts on the process itself: its event loop, memory, log and telemetry. */
import { type Alert, grew } from "../Alert.ts"

export const process: ReadonlyArray<Alert> = [
  {
    name: "PracticeDataEventLoopBlocked",
    severity: "ticket",
    expression:
      'max without (process, at) (practice_data_event_loop_delay_seconds{at="p99"}) > 0.25 and on (instance) time() - process_start_time_seconds > 30',
    for: 5,
    summary: "The event loop of {{ $labels.instance }} is {{ $value | humanizeDuration }} late",
    means:
      "The process computes, swaps, or gets no CPU, and nothing else goes on meanwhile. Leases of deletions may expire.",
    act: "Is the host busy, or the process (PracticeDataCpuSaturated)? `--cpu-prof` shows on what. Add `PROCESSES` or machines."
  },
  {
    name: "PracticeDataCpuSaturated",
    severity: "ticket",
    expression: "max without (process) (rate(process_cpu_seconds_total[1m])) > 0.95",
    for: 60,
    summary: "A process of {{ $labels.instance }} uses {{ $value | humanizePercentage }} of a core",
    means: "One process uses one core, and it is full: everything waits for it.",
    act: "Add `PROCESSES`, or machines. `/ops` shows who asks most."
  },
  {
    name: "PracticeDataMemoryGrows",
    severity: "ticket",
    expression:
      "min_over_time(process_resident_memory_bytes[15m]) > 1.5 * min_over_time(process_resident_memory_bytes[15m] offset 1h) and min_over_time(process_resident_memory_bytes[15m]) > 1e9 and time() - process_start_time_seconds > 7200",
    for: 0,
    summary: "The memory of {{ $labels.instance }} grew to {{ $value | humanize }}B, by more than half within an hour",
    means: "A leak, or much more load than before.",
    act: "Compare with the requests in the dashboard. Restart it before the host has no memory left, one process after the other; `--heapsnapshot-signal=SIGUSR2` shows what it holds."
  },
  {
    name: "PracticeDataHeapFull",
    severity: "page",
    expression: "max without (process) (nodejs_heap_size_used_bytes / nodejs_heap_size_limit_bytes) > 0.85",
    for: 15,
    summary: "The JavaScript heap of {{ $labels.instance }} is {{ $value | humanizePercentage }} full",
    means: "At 100 % the process ends.",
    act: "Restart it; then as PracticeDataMemoryGrows. It may take two fifths of the memory of the host or container: give that more."
  },
  {
    name: "PracticeDataClockOff",
    severity: "ticket",
    expression: "max without (process) (abs(practice_data_clock_offset_seconds)) > 0.3",
    for: 5,
    summary: "The clock of {{ $labels.instance }} is {{ $value | humanizeDuration }} off that of its database",
    means: "From half a second on, workers take deletions from each other, which costs attempts.",
    act: "Repair the time synchronization (chrony, systemd-timesyncd) of whichever is wrong."
  },
  {
    name: "PracticeDataLogLinesDropped",
    severity: "ticket",
    expression: `${grew("practice_data_log_lines_dropped_total")} > 0`,
    for: 0,
    summary: "{{ $labels.instance }} dropped about {{ $value | printf `%.0f` }} lines of its log",
    means: "Whoever reads its standard output is too slow or hangs. The service goes on; these lines are gone.",
    act: "Look at the log collector and its disk. `ACCESS_LOG=false` writes less."
  },
  {
    name: "PracticeDataTelemetryFails",
    severity: "ticket",
    expression: `${grew("practice_data_telemetry_export_failures_total")} > 2`,
    for: 0,
    summary: "{{ $labels.instance }} cannot export its {{ $labels.signal }}",
    means: "The collector of `OTEL_EXPORTER_OTLP_ENDPOINT` is down or refuses what it gets. The service goes on.",
    act: "Look at the collector. The log has the cause once."
  }
]
