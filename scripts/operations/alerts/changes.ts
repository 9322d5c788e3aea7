/** Alerts on what keeps copies of the records from being in step. */
import type { Alert } from "../Alert.ts"

const replicaLag = "max without (instance, process) (practice_data_replica_lag_seconds) > 60"

export const changes: ReadonlyArray<Alert> = [
  {
    name: "PracticeDataChangesHeldBack",
    severity: "ticket",
    expression: `max without (instance, process) (practice_data_changes_lag_seconds) > 60 unless ${replicaLag}`,
    for: 0,
    summary: "An open transaction has held changes back for {{ $value | humanizeDuration }}",
    means:
      "A transaction that has written, or is prepared, is open. Copies do not see what was committed after it began, and lose nothing.",
    act: 'The SQL in scripts/operations, "Changes", names it. End it (`pg_terminate_backend`), or `rollback prepared`.'
  },
  {
    name: "PracticeDataReplicaBehind",
    severity: "ticket",
    expression: replicaLag,
    for: 0,
    summary: "The replica of READ_DATABASE_URL is {{ $value | humanizeDuration }} behind",
    means: "Searches and changes show older states. Nothing is lost.",
    act: "Look at `pg_stat_replication` of the primary and at the load of the replica. Until it is in step, unset `READ_DATABASE_URL` and restart, one process after the other."
  }
]
