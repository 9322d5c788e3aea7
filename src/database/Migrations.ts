/**
 * The migrations, and running them. Numbered, forward only, each in a file of its own; a new one takes the next number,
 * since the migrator applies only what is above the highest number that it has recorded.
 */
import type { PgClient } from "@effect/sql-pg"
import { Duration, Effect, Predicate, Ref, Schedule, Schema } from "effect"
import { Migrator, SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import type { Database } from "./Database.ts"
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

/** What a migration is called, as its file is. */
export const nameOf = (id: number, name: string) => `${String(id).padStart(5, "0")}_${name}`

const unmigrated = "42P01"

const hasNoTable = ({ reason: { cause } }: SqlError) =>
  Predicate.hasProperty(cause, "code") && cause.code === unmigrated

/** The migrations that a database lacks, oldest first. */
export const missing = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const known = yield* loader
  const rows = yield* sql<{ latest: number | null }>`select max(migration_id) as latest from migrations`.pipe(
    Effect.catchIf(
      (error) => Predicate.isTagged(error, "SqlError") && hasNoTable(error),
      () => Effect.succeed([])
    )
  )
  const latest = rows[0]?.latest ?? 0
  return {
    isEmpty: latest === 0,
    names: known.filter(([id]) => id > latest).map(([id, name]) => nameOf(id, name))
  }
})

/** Whether every migration has been applied. */
export const isMigrated = (sql: PgClient.PgClient) => Effect.map(missing(sql), ({ names }) => names.length === 0)

/** A database lacks migrations. */
export class NotMigrated extends Schema.TaggedError<NotMigrated>()("NotMigrated", { message: Schema.String }) {}

/**
 * Fails unless every migration has been applied. A role that may not look at them goes on without knowing.
 *
 * @param name what the database is called, to begin a sentence with
 */
export const requireMigrated = Effect.fnUntraced(function* (name: string, sql: PgClient.PgClient) {
  const { isEmpty, names } = yield* missing(sql).pipe(
    Effect.catchIf(
      (error) => Predicate.isTagged(error, "SqlError") && error.reason._tag === "AuthorizationError",
      () => Effect.succeed({ isEmpty: false, names: [] })
    )
  )
  if (names.length === 0) return
  const what = isEmpty ? "is not migrated" : `lacks the migrations ${names.join(", ")}`
  return yield* new NotMigrated({ message: `${name} ${what}. Run: npm run cli -- migrate` })
})

/**
 * Waits until every migration has been applied, also while the database is down. Says once that some are missing, and
 * once that they are no more.
 *
 * @param name as in `requireMigrated`
 */
export const untilMigrated = Effect.fnUntraced(function* (name: string, database: Database) {
  const hasSaid = yield* Ref.make(false)
  const said = (message: string) =>
    Effect.flatMap(Ref.getAndSet(hasSaid, true), (before) => (before ? Effect.void : Effect.logWarning(message)))
  const asking = {
    key: "the migrations",
    within: Duration.seconds(5),
    unavailable: () => "no answer" as const
  }
  const isDone = database.run(asking, requireMigrated(name, database)).pipe(
    Effect.as(true),
    Effect.catchIf(Predicate.isString, () => Effect.succeed(false)),
    Effect.catchTag("NotMigrated", ({ message }) => Effect.as(said(message), false))
  )
  yield* Effect.repeat(isDone, { until: (done) => done, schedule: Schedule.spaced("500 millis") })
  if (yield* Ref.get(hasSaid)) yield* Effect.log(`${name} is migrated`)
})
