/**
 * Distribution of the tables over several servers, which the extension Citus does. All rows of an organization are on one
 * server, so that each statement about it runs there, joins and transactions included.
 */
import type { PgClient } from "@effect/sql-pg"
import { Array, Duration, Effect, Exit, MutableRef, References, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Constructor } from "effect/sql/Statement"
import { unnoted } from "../observability/RequestFacts.ts"
import * as Time from "../observability/Time.ts"
import { decodeRows, decodeTexts } from "./Columns.ts"
import { recordedPrefix } from "./Migrations.ts"
import { lasting } from "./SqlFailure.ts"
import type { Store } from "./Store.ts"

/**
 * The distribution of a database. It is queried while the service runs, since the database may be down at the start, and
 * may be distributed at any time. Statements for a distributed database are correct on any other too, and slower there. So
 * they are used until the database has responded.
 */
export interface Distribution {
  /** True if the tables are distributed; undefined until the database has responded. Costs nothing. */
  readonly isDistributed: () => boolean | undefined
  /** Queries the database, unless that was a while ago. Without a response, nothing changes. */
  readonly refresh: Effect.Effect<void>
}

export const single: Distribution = { isDistributed: () => false, refresh: Effect.void }

export const distributed: Distribution = { isDistributed: () => true, refresh: Effect.void }

/** The longest time until a distribution is noticed. */
const fresh = Duration.seconds(10)

/** `h` is the method of a distributed table, `n` that of a reference table or a local one. */
const Placement = Schema.Struct({ name: Schema.String, method: Schema.String })

const hasCitus = (sql: Constructor) =>
  Effect.map(sql`select where to_regclass('pg_dist_partition') is not null`, (rows) => rows.length > 0)

/** The tables that Citus knows. Only a database with the extension has its catalog. */
const placed = Effect.fnUntraced(function* (sql: Constructor) {
  if (!(yield* hasCitus(sql))) return []
  return yield* decodeRows(Placement)(sql`
    select c.relname as name, p.partmethod::text as method from pg_dist_partition p join pg_class c on c.oid = p.logicalrelid
    where c.relnamespace = quote_ident(current_schema())::regnamespace`)
})

/** True if any table is distributed. */
export const hasDistributedTable = (sql: Constructor) =>
  Effect.map(
    placed(sql),
    Array.some(({ method }) => method === "h")
  )

/** The distribution that a database reports. Callers that refresh at once share a query. */
export const make = Effect.fnUntraced(function* (sql: Constructor, { run }: Store) {
  const known = MutableRef.make<boolean | undefined>(undefined)
  const request = { key: "the distribution", within: Duration.seconds(2), unavailable: () => "no answer" as const }
  const query = run(request, hasDistributedTable(sql)).pipe(
    Effect.map((answer) => MutableRef.set(known, answer)),
    unnoted,
    Effect.provideService(References.TracerEnabled, false)
  )
  const shared = yield* Time.cachedFor(query, (exit) => (Exit.isSuccess(exit) ? fresh : Duration.zero))
  return { isDistributed: () => known.current, refresh: Effect.ignore(shared) }
})

/** The tables whose rows belong to an organization each: those of the records, and others. */
export const byOrganization = (records: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...records,
  "deletion_tasks",
  "deletions",
  "deletions_unsettled",
  "intake_secrets",
  "audit_log"
]

/** The tables that each server has a copy of: keys are looked up before the organization is known. */
export const references: ReadonlyArray<string> = ["api_keys", "migrations"]

/** The table that the others are kept with. */
const anchor = "organizations"

/**
 * Settings of each server's sessions. Rows are read in the order of an index, and never gathered and sorted: the settings
 * of the service's own sessions do not reach those between the servers. No delivery may be lost in a crash, which a trigger
 * sees to elsewhere. With the last one, a trigger on a shard reads and writes the shards of its organization.
 */
export const settings = {
  enable_bitmapscan: "off",
  enable_seqscan: "off",
  synchronous_commit: "on",
  "citus.enable_unsafe_triggers": "on"
} as const

/** The message has the reason, and the remedy. */
export class CannotDistribute extends Schema.TaggedError<CannotDistribute>()("CannotDistribute", {
  message: Schema.String
}) {}

/** Drops the triggers of a table but the one that renders records: those of the order of changes, which has no place there. */
const dropTriggers = Effect.fnUntraced(function* (sql: PgClient.PgClient, table: string) {
  const triggers = yield* decodeTexts(sql`
    select tgname as text from pg_trigger
    where tgrelid = ${table}::regclass and not tgisinternal and tgname <> 'zz_written'`)
  for (const trigger of triggers) yield* sql`drop trigger ${sql(trigger)} on ${sql(table)}`
})

const moving = (sql: PgClient.PgClient, ...statements: ReadonlyArray<Effect.Effect<unknown, SqlError>>) =>
  sql.withTransaction(
    Effect.all([
      lasting(sql),
      sql`set local citus.multi_shard_modify_mode = 'sequential'`,
      sql`set local citus.enable_unsafe_triggers = on`,
      ...statements
    ])
  )

/** Gives the sessions of each server their settings: Citus passes them on to the others. */
export const configure = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const commands = yield* decodeTexts(sql`
    select format('alter database %I set %s = %L', current_database(), key, value) as text
    from unnest(${Object.keys(settings)}::text[], ${Object.values(settings)}::text[]) given (key, value)`)
  for (const command of commands) yield* sql.unsafe(command)
})

/**
 * Distributes the tables that are not distributed yet. It can be cut short and run again. Returns the tables that were
 * distributed or copied.
 */
export const distribute = Effect.fn("Distribution.distribute")(function* (
  sql: PgClient.PgClient,
  records: ReadonlyArray<string>
) {
  if (!(yield* hasCitus(sql))) {
    return yield* new CannotDistribute({
      message:
        "The database has no extension citus. Install Citus on each server, name it in shared_preload_libraries, run `create extension citus` in this database on each of them, and add the workers on this one: select citus_add_node('HOST', 5432)."
    })
  }
  const tables = yield* placed(sql)
  const distributable = byOrganization(records)
  const isLeft = (table: string) => !tables.some(({ name }) => name === table)
  const [left, copied] = [distributable.filter(isLeft), references.filter(isLeft)]
  const functions = sql`pg_proc p where p.pronamespace = quote_ident(current_schema())::regnamespace and p.prokind = 'f'`
  if (left.length > 0) {
    // Citus itself copies only the functions that a table or a trigger refers to, and not those that their bodies call.
    yield* sql`
      select create_distributed_function(p.oid::regprocedure) from ${functions} and not exists (
        select from pg_depend d where d.objid = p.oid and (d.deptype = 'e' or d.refclassid = 'pg_class'::regclass)
      )`
  }
  for (const table of copied) yield* moving(sql, sql`select create_reference_table(${table})`)
  for (const table of left) {
    const keptWith = table === anchor ? "none" : anchor
    const create = sql`select create_distributed_table(${table}, 'organization_id', colocate_with => ${keptWith})`
    yield* moving(sql, dropTriggers(sql, table), create)
  }
  // Views that were made before their tables were distributed are on this server alone.
  const views = yield* decodeTexts(sql`
    select format('create or replace view %I as %s', viewname, definition) as text from pg_views
    where schemaname = current_schema() and viewname in ('deletion_rows', 'deletion_work')
    order by viewname`)
  for (const view of views) yield* sql.unsafe(view)
  const prefix = yield* recordedPrefix(sql)
  yield* sql`grant select on deletion_rows, deletion_work to ${sql(`${prefix}_worker`)}`
  // The worker's functions run beside the rows of their organization.
  yield* sql`
    select create_distributed_function(p.oid::regprocedure, 'organization', colocate_with => ${anchor})
    from ${functions} and p.proargnames[1] = 'organization'`
  // A transaction of another server has no place in the order of this one: the sweep gives it one.
  yield* sql`alter table deletions_unsettled alter column written_by set default '18446744073709551615'`
  // Citus sends an INSERT to a shard with all columns that have a default, and the intake may insert only some.
  yield* sql`grant insert (state, attempts) on deletion_tasks to ${sql(`${prefix}_intake`)}`
  yield* configure(sql)
  return { distributed: left, copied }
})
