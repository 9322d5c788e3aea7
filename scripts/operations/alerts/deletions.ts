/** Alerts on the intake of deletions and on what runs them. */
import { type Alert, grew } from "../Alert.ts"

// Every process reads the same tasks.
const ofDatabase = (gauge: string) => `max without (instance, process) (${gauge})`

const deliveries = (outcome: string) => grew(`practice_data_deliveries_total{outcome="${outcome}"}`)

export const deletions: ReadonlyArray<Alert> = [
  {
    name: "PracticeDataDeletionsLate",
    severity: "ticket",
    expression: `${ofDatabase("practice_data_task_oldest_due_age_seconds")} > 5`,
    for: 0,
    summary: "A deletion has been due for {{ $value | humanizeDuration }}",
    means:
      "Workers begin a task within a second when they can. They are gone, all busy with a bulk of tasks, or held up by locks.",
    act: "Is there a process with the role `worker`? `/ops` shows how many tasks are due: if they become fewer, wait."
  },
  {
    name: "PracticeDataDeletionsOverdue",
    severity: "page",
    expression: `${ofDatabase("practice_data_task_oldest_due_age_seconds")} > 60`,
    for: 0,
    summary: "A deletion has been due for {{ $value | humanizeDuration }}",
    means: "What customers deleted is still served.",
    act: "Start a process with the role `worker`. If there is one: its log and PracticeDataDatabaseBusy say what holds it up. More than it can do: start more workers."
  },
  {
    name: "PracticeDataDeletionsDead",
    severity: "page",
    expression: `${ofDatabase('practice_data_tasks{state="dead"}')} > 0`,
    for: 0,
    summary: "{{ $value }} deletions failed 8 times and were given up",
    means: "They do not happen until somebody replays them.",
    act: "`npm run cli -- tasks list --state dead`, and `tasks show ID` for the reason. Repair it (a trigger of yours, a constraint), then `tasks replay ID`."
  },
  {
    name: "PracticeDataDeletionAttemptsFail",
    severity: "ticket",
    expression: `${grew('practice_data_task_runs_total{outcome="failed"}')} > 0`,
    for: 0,
    summary: "Attempts of deletions fail on {{ $labels.instance }}",
    means: "Each is tried 8 times, 1 second to 5 minutes apart, before it is dead.",
    act: "The log has a line for each attempt with the SQLSTATE, constraint and table. Repair it before they are dead."
  },
  {
    name: "PracticeDataTakeovers",
    severity: "ticket",
    expression: `${grew("practice_data_task_takeovers_total")} > 0`,
    for: 0,
    summary:
      "{{ $labels.instance }} took over about {{ $value | printf `%.0f` }} deletions from a worker that died or was paused",
    means: "A worker did not renew its lease of 0.9 seconds. Nothing is lost, and nothing runs twice.",
    act: "Find the worker that died (PracticeDataDown, PracticeDataProcessEnded). If none did: a process that stands still (PracticeDataEventLoopBlocked) or clocks that differ (PracticeDataClockOff)."
  },
  {
    name: "PracticeDataDeletionsMatchNothing",
    severity: "ticket",
    expression:
      'sum without (process, kind, verdict) (increase(practice_data_task_items_total{verdict!="deleted"}[1h])) / sum without (process, kind, verdict) (increase(practice_data_task_items_total[1h])) > 0.5 and sum without (process, kind, verdict) (increase(practice_data_task_items_total[1h])) > 20',
    for: 0,
    summary:
      "{{ $value | humanizePercentage }} of what deletions of the last hour named on {{ $labels.instance }} was not there or did not fit",
    means: "A sender names records of another organization or clinic, or records that are not loaded yet.",
    act: "`npm run cli -- tasks show ID` has the counts by reason. Tell the sender, and send what is missing again with a new key."
  },
  {
    name: "PracticeDataTasksNotCounted",
    severity: "ticket",
    expression:
      "min without (process) (time() - practice_data_tasks_read_timestamp_seconds) > 60 and on (instance) time() - process_start_time_seconds > 60 unless on (instance) practice_data_dependency_up == 0 unless on (instance) practice_data_ready == 0",
    for: 0,
    summary: "{{ $labels.instance }} has not counted the deletion tasks for {{ $value | humanizeDuration }}",
    means: "The other alerts on deletions say nothing now: the statement fails or takes too long.",
    act: "The log says why. Does the login of the process have its role (`npm run cli -- doctor`)?"
  },
  {
    name: "PracticeDataUnsignedDeliveries",
    severity: "ticket",
    expression: `${deliveries("unsigned")} > 3`,
    for: 0,
    summary: "{{ $labels.instance }} refused about {{ $value | printf `%.0f` }} deliveries for their signature",
    means:
      "A sender signs with an old secret, not at all, or with a clock that is 5 minutes off; or somebody else sends. These deletions do not happen.",
    act: "The log names the organization and the header. `npm run cli -- secrets list` shows its secrets (see Rotate). Ask the sender to send again."
  },
  {
    name: "PracticeDataKeysReused",
    severity: "ticket",
    expression: `${deliveries("key_reused")} > 0`,
    for: 0,
    summary:
      "{{ $labels.instance }} refused about {{ $value | printf `%.0f` }} deliveries whose Idempotency-Key was used with another payload",
    means: "A sender uses keys twice. The second deletion is not stored.",
    act: "The access log has organization and key. The sender has to send it again with a key of its own."
  },
  {
    name: "PracticeDataDeliveriesInvalid",
    severity: "ticket",
    expression: `${deliveries("invalid")} > 10`,
    for: 0,
    summary: "{{ $labels.instance }} refused about {{ $value | printf `%.0f` }} deliveries for what they say",
    means: "A sender sends what the intake does not take. These deletions do not happen.",
    act: "The access log has the organization. The response (422) named each fault."
  }
]
