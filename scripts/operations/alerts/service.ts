/** Alerts on processes: whether they are there, ready, and of one version. */
import { type Alert, grew, job } from "../Alert.ts"

export const service: ReadonlyArray<Alert> = [
  {
    name: "PracticeDataDown",
    severity: "page",
    // After a stop in good order that was seen, whoever restarts it has a minute.
    expression: `up{job="${job}"} == 0 unless on (instance) max_over_time(practice_data_stopping[1m]) == 1`,
    for: 5,
    summary: "{{ $labels.instance }} does not answer: it is stopped, hangs, or cannot be reached",
    means: "Prometheus gets no metrics from the operators' port of a process that it knows.",
    act: "Look whether the process runs, and at the end of its log. If it runs and hangs, take a stack with `kill -USR1` and the inspector, then restart it. A host that was taken away on purpose: remove the target. A restart that takes long does not fire it if `DRAIN` is at least 5 seconds."
  },
  {
    name: "PracticeDataAbsent",
    severity: "page",
    expression: `absent(up{job="${job}"})`,
    for: 60,
    summary: "Prometheus knows no process of the service",
    means: "No target has the job `practice-data`, so that no other alert here can fire.",
    act: "Look at the scrape configuration and the service discovery of Prometheus (`/targets`)."
  },
  {
    name: "PracticeDataNotReady",
    severity: "page",
    expression:
      "min without (process) (practice_data_ready) == 0 unless on (instance) practice_data_stopping == 1 unless on (instance) practice_data_dependency_up == 0",
    for: 5,
    summary: "{{ $labels.instance }} is not ready, though its databases answer and it is not stopping",
    means: "`/api/v1/health/ready` is 503, so load balancers send it nothing: its database lacks migrations.",
    act: "`npm run cli -- migrate` with the version that is deployed; the process continues by itself. `/health` on the operators' port says what it waits for."
  },
  {
    name: "PracticeDataProcessMissing",
    severity: "page",
    expression: "practice_data_processes_answered < practice_data_processes",
    for: 5,
    summary: "Only {{ $value }} of the processes of {{ $labels.instance }} answer",
    means: "With `PROCESSES` above 1, one of them hangs in its start, or ends at once each time it is started.",
    act: "`/ops` shows which one is silent, with its process id. If it runs and hangs, `kill -9` it: another one takes its place. If it keeps ending, the log says why."
  },
  {
    name: "PracticeDataProcessEnded",
    severity: "ticket",
    expression: `${grew("practice_data_process_restarts_total")} > 0`,
    for: 0,
    summary: "A process of {{ $labels.instance }} ended and was replaced",
    means: "One of `PROCESSES` was killed or crashed. Requests in its hands were lost; its deletions were taken over.",
    act: "Look in the log for its end, and in the kernel's (`dmesg`) for the OOM killer."
  },
  {
    name: "PracticeDataRestarting",
    severity: "ticket",
    expression: "max without (process) (changes(process_start_time_seconds[15m])) > 3",
    for: 0,
    summary: "{{ $labels.instance }} was started {{ $value }} times within 15 minutes",
    means: "It ends again and again, or somebody deploys often.",
    act: "Look at the end of the log before each start. A wrong variable or a port that is taken stops each start with its name."
  },
  {
    name: "PracticeDataVersionsDiffer",
    severity: "ticket",
    expression:
      "count without (version) (count without (instance, process, node, roles) (practice_data_build_info)) > 1",
    for: 1800,
    summary: "{{ $value }} versions of the service have been running for half an hour",
    means: "A roll-out was not completed. Versions may differ while one is rolled out, and no longer.",
    act: "Complete it, or go back (see Upgrade)."
  }
]
