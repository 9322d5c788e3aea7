/** Alerts on the databases and on the way to them. */
import { type Alert, grew, quantile, unlessDatabaseDown } from "../Alert.ts"

export const databases: ReadonlyArray<Alert> = [
  {
    name: "PracticeDataDatabaseDown",
    severity: "page",
    expression: 'min without (process) (practice_data_dependency_up{dependency!="processor"}) == 0',
    for: 5,
    summary: "The {{ $labels.dependency }} database does not answer {{ $labels.instance }}",
    means:
      "No connection can be made, or nothing comes back. `records`: reads are 503; `credentials`: every call of the data API is 503; `tasks`: deliveries are 503 and senders try again, deletions wait.",
    act: "`npm run cli -- doctor` says what is wrong. From one instance alone: its network. Nothing has to be restarted: the service notices within a second that the database is back."
  },
  {
    name: "PracticeDataDatabaseUnsteady",
    severity: "ticket",
    expression:
      'max without (process) (increase(practice_data_dependency_outages_total{dependency!="processor"}[10m])) > 2.5',
    for: 0,
    summary:
      "The {{ $labels.dependency }} database came and went about {{ $value | printf `%.0f` }} times for {{ $labels.instance }} in 10 minutes",
    means: "It restarts again and again, fails over, or the network to it is bad. Each time requests get 503.",
    act: "Look at the log of Postgres and at the network. The service's log has a line each time it goes and comes back, with the cause."
  },
  {
    name: "PracticeDataPoolWaits",
    severity: "ticket",
    expression: unlessDatabaseDown(`${quantile(0.95, "practice_data_pool_wait_seconds", "30s")} > 0.25`),
    for: 0,
    summary:
      "Statements wait {{ $value | humanizeDuration }} (95 %) for a connection of the pool {{ $labels.pool }} of {{ $labels.instance }}",
    means:
      "More is asked than the pool's connections can do: one API key asks for all that it can, statements are slow, or there is too little room for all.",
    act: "`/ops` shows which organization asks most. One key alone only slows itself down: talk to its owner, or set `RATE_LIMIT`. All of them: raise `DATABASE_POOL_SIZE` where Postgres has room, or add processes."
  },
  {
    name: "PracticeDataStatementTimeouts",
    severity: "ticket",
    expression: unlessDatabaseDown(`${grew('practice_data_statements_total{outcome="timeout"}')} > 3`),
    for: 0,
    summary: "Statements of the pool {{ $labels.pool }} of {{ $labels.instance }} were given up after 5 seconds",
    means:
      "Postgres answers, and some statements take too long: deep offsets, a missing index, a table without statistics, or a disk that is busy.",
    act: "The access log has the slow requests (`database_ms`). Look at `pg_stat_activity`, and run `analyze` after a bulk load."
  },
  {
    name: "PracticeDataDatabaseBusy",
    severity: "ticket",
    expression: unlessDatabaseDown(`${grew('practice_data_statements_total{outcome="busy"}')} > 3`),
    for: 0,
    summary:
      "The database turned statements of the pool {{ $labels.pool }} of {{ $labels.instance }} away: a lock is held, or it has no room",
    means:
      "A statement waited too long for a lock, such as that of a migration or of `lock table`, or Postgres has no connection left.",
    act: "`select * from pg_stat_activity where wait_event_type = 'Lock'` and `pg_blocking_pids(pid)` name who holds it. Compare `max_connections` with the pools of all processes."
  }
]
