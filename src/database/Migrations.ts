/**
 * The migrations: numbered, forward only, each in a file of its own. A new one takes the next number, since the migrator
 * applies only numbers above the highest recorded one.
 */
import type { PgClient } from "@effect/sql-pg"
import { Duration, Effect, Predicate, Schedule, Schema } from "effect"
import { Migrator, SqlClient } from "effect/sql"
import { invocation } from "../process/Package.ts"
import { rowsOf, textsOf } from "./Columns.ts"
import type { Database } from "./Database.ts"
import records from "./migrations/00001_records.ts"
import deletionTasks from "./migrations/00002_deletion_tasks.ts"
import processorAccounts from "./migrations/00003_processor_accounts.ts"
import workerColumns from "./migrations/00004_worker_columns.ts"
import changes from "./migrations/00005_changes.ts"
import taskReads from "./migrations/00006_task_reads.ts"
import taskOrder from "./migrations/00007_task_order.ts"
import trackChanges from "./migrations/00008_track_changes.ts"
import operations from "./migrations/00009_operations.ts"
import deadTasks from "./migrations/00010_dead_tasks.ts"
import lessForWrites from "./migrations/00011_less_for_writes.ts"
import marksOfRuns from "./migrations/00012_marks_of_runs.ts"
import searchPaths from "./migrations/00013_search_paths.ts"
import fairIntake from "./migrations/00014_fair_intake.ts"
import removalsOrder from "./migrations/00015_removals_order.ts"
import roles from "./migrations/00016_roles.ts"
import halfRecords from "./migrations/00017_half_records.ts"
import ids from "./migrations/00018_ids.ts"
import type { AddFieldError } from "./migrations/addField.ts"
import { codeOf } from "./SqlFailure.ts"

type Statements = Effect.Effect<void, AddFieldError, SqlClient.SqlClient>

/**
 * A migration, which runs in a transaction unless it is online. An online one runs until it has succeeded once, maybe in
 * several processes.
 */
export type Migration = Statements | { readonly online: Statements }

type Migrations = Readonly<Record<string, Migration>>

/** The migrations by their files. */
export const all: Migrations = {
  "00001_records": records,
  "00002_deletion_tasks": deletionTasks,
  "00003_processor_accounts": processorAccounts,
  "00004_worker_columns": workerColumns,
  "00005_changes": changes,
  "00006_task_reads": taskReads,
  "00007_task_order": taskOrder,
  "00008_track_changes": trackChanges,
  "00009_operations": operations,
  "00010_dead_tasks": deadTasks,
  "00011_less_for_writes": lessForWrites,
  "00012_marks_of_runs": marksOfRuns,
  "00013_search_paths": searchPaths,
  "00014_fair_intake": fairIntake,
  "00015_removals_order": removalsOrder,
  "00016_roles": roles,
  "00017_half_records": halfRecords,
  "00018_ids": ids
}

const lock = 7_240_618_273

/** Fails if the role cannot make tables. The migrator's own error would hide that. */
const requireCreate = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const [refusal] = yield* textsOf(sql`
    select format('The role %I may not create tables in %I. As a superuser, run: alter database %I owner to %1$I',
      current_user, coalesce(current_schema(), 'public'), current_database()) as text
    where has_schema_privilege(current_schema(), 'CREATE') is not true`)
  if (refusal !== undefined) return yield* new Migrator.MigrationError({ kind: "Failed", message: refusal })
})

/** Applies migrations in one transaction, and records them. Online ones are only recorded. */
const apply = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  migrations: ReadonlyArray<readonly [file: string, migration: Migration]>
) {
  const loader = Migrator.fromRecord(
    Object.fromEntries(migrations.map(([file, migration]) => [file, "online" in migration ? Effect.void : migration]))
  )
  const run = Effect.provideService(Migrator.make({})({ loader, table: "migrations" }), SqlClient.SqlClient, sql)
  const applied = yield* sql.withTransaction(Effect.andThen(sql`select pg_advisory_xact_lock(${lock})`, run))
  return applied.map(([id, name]) => `${String(id).padStart(5, "0")}_${name}`)
})

/**
 * Applies the missing migrations, and returns their files. Any number of processes may do so at once: an advisory lock lets
 * one go first, and the others find nothing left to do.
 */
export const migrate = Effect.fn("Migrations.migrate")(function* (
  sql: PgClient.PgClient,
  migrations: Migrations = all
) {
  const known = Object.entries(migrations)
  const applied: Array<string> = []
  if ((yield* missing(sql, migrations)).files.length > 0) yield* requireCreate(sql)
  for (const [index, [file, migration]] of known.entries()) {
    if (!("online" in migration)) continue
    applied.push(...(yield* apply(sql, known.slice(0, index))))
    if (!(yield* missing(sql, migrations)).files.includes(file)) continue
    yield* migration.online.pipe(
      Effect.provideService(SqlClient.SqlClient, sql),
      Effect.mapError(
        (cause) => new Migrator.MigrationError({ cause, kind: "Failed", message: `Migration "${file}" failed` })
      )
    )
  }
  return [...applied, ...(yield* apply(sql, known))]
})

/** The migrations that a database lacks, oldest first. */
export const missing = Effect.fnUntraced(function* (sql: PgClient.PgClient, migrations: Migrations = all) {
  const rows = Effect.catchIf(
    sql`select coalesce(max(migration_id), 0) as latest from migrations`,
    // An undefined table.
    (error) => codeOf(error) === "42P01",
    () => Effect.succeed([])
  )
  const [{ latest } = { latest: 0 }] = yield* rowsOf(Schema.Struct({ latest: Schema.Int }))(rows)
  return { isEmpty: latest === 0, files: Object.keys(migrations).filter((file) => Number.parseInt(file, 10) > latest) }
})

/** True if every migration has been applied. */
export const isMigrated = (sql: PgClient.PgClient) => Effect.map(missing(sql), ({ files }) => files.length === 0)

/**
 * A warning with its remedy if every login may create objects in the schema of the tables; otherwise undefined. Names are
 * qualified, since such objects could be called here too.
 */
export const openSchema = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const [schema] = yield* textsOf(sql`
    select pg_catalog.quote_ident(schema) as text from pg_catalog.text(pg_catalog.current_schema()) schema
    where pg_catalog.has_schema_privilege('public'::pg_catalog.name, schema, 'CREATE')`)
  if (schema === undefined) return undefined
  const message = `Every login may create objects in the schema ${schema}, such as functions that others call in error.`
  return { message, statement: `revoke create on schema ${schema} from public` }
})

/** A database lacks migrations. */
export class NotMigrated extends Schema.TaggedError<NotMigrated>()("NotMigrated", { message: Schema.String }) {}

/** Fails unless every migration has been applied, or the role may not read them. A sentence begins with the name. */
export const requireMigrated = Effect.fnUntraced(function* (name: string, sql: PgClient.PgClient) {
  const { files, isEmpty } = yield* Effect.catchReason(missing(sql), "SqlError", "AuthorizationError", () =>
    Effect.succeed({ isEmpty: false, files: [] })
  )
  if (files.length === 0) return
  const what = isEmpty ? "is not migrated" : `lacks the migrations ${files.join(", ")}`
  return yield* new NotMigrated({ message: `${name} ${what}. Run: ${invocation("migrate")}` })
})

/** Waits until every migration has been applied, also while the database is down. Logs once that some are missing. */
export const untilMigrated = Effect.fnUntraced(function* (name: string, database: Database) {
  let hasWarned = false
  const request = { key: "the migrations", within: Duration.seconds(5), unavailable: () => "no answer" as const }
  yield* database.run(request, requireMigrated(name, database)).pipe(
    Effect.tapError((error) => {
      if (hasWarned || Predicate.isString(error)) return Effect.void
      hasWarned = true
      return Effect.logWarning(error.message)
    }),
    Effect.retry(Schedule.spaced("500 millis")),
    Effect.orDie
  )
  if (hasWarned) yield* Effect.log(`${name} is migrated`)
})
