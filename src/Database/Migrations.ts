/**
 * The migrations, and running them. Numbered, forward only, each in a file of its own; a new one takes the next number,
 * since the migrator applies only what is above the highest number that it has recorded.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { Migrator, SqlClient } from "effect/sql"
import records from "./migrations/00001_records.ts"
import deletionTasks from "./migrations/00002_deletion_tasks.ts"
import processorAccounts from "./migrations/00003_processor_accounts.ts"
import workerColumns from "./migrations/00004_worker_columns.ts"

const loader = Migrator.fromRecord({
  "00001_records": records,
  "00002_deletion_tasks": deletionTasks,
  "00003_processor_accounts": processorAccounts,
  "00004_worker_columns": workerColumns
})

const lock = 7_240_618_273

/**
 * Applies what is missing, and says what it applied. Any number of processes may do so at once: an advisory lock lets
 * one go first, and the others find nothing left to do.
 */
export const migrate = Effect.fn("Migrations.migrate")(function* (sql: PgClient.PgClient) {
  const run = Migrator.make({})({ loader, table: "migrations" })
  return yield* sql
    .withTransaction(Effect.andThen(sql`select pg_advisory_xact_lock(${lock})`, run))
    .pipe(Effect.provideService(SqlClient.SqlClient, sql))
})

/** Whether every migration has been applied. */
export const isMigrated = (sql: PgClient.PgClient) =>
  Effect.gen(function* () {
    const known = yield* loader
    const rows = yield* sql<{ latest: number | null }>`select max(migration_id) as latest from migrations`
    return (rows[0]?.latest ?? 0) >= Math.max(...known.map(([id]) => id))
  })
