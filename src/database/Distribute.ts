/**
 * Distributes the tables of a migrated database over the servers of Citus, by organization: all rows of an organization
 * are on one server, so that each statement about it runs there, joins and transactions included.
 */
import type { PgClient } from "@effect/sql-pg"
import { Array, Effect, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { resources } from "../api/records/index.ts"

/** The tables whose rows belong to an organization each. */
export const byOrganization: ReadonlyArray<string> = [
  ...resources.map(({ table }) => table),
  "deletion_tasks",
  "intake_secrets",
  "audit_log"
]

/** The tables that each server has a copy of: keys are looked up before the organization is known. */
export const references: ReadonlyArray<string> = ["api_keys", "migrations"]

/** The tables that stay where they are: those of the order of changes, which a distributed database has not. */
export const local: ReadonlyArray<string> = ["change_feeds", "change_marks", "removals"]

/**
 * The functions that the bodies of others call, which render and stamp rows: Citus takes the functions of a table to the
 * other servers, and not what stands in their text.
 */
const called = [
  "change_base",
  "change_position",
  "api_tiny",
  // Where a trigger fills the column, since a field was added, instead of the column's own expression.
  ...resources.map(({ table }) => `${table}_record`)
]

/** What tables of an organization are kept with. */
const anchor = "organizations"

/**
 * What each server's sessions are to have. Rows are read in the order of an index, and never gathered and sorted: what
 * the service asks of its own sessions does not reach those between the servers. The triggers that are left touch nothing
 * but their row, and Citus allows those only with this setting.
 */
export const settings = {
  enable_bitmapscan: "off",
  enable_seqscan: "off",
  "citus.enable_unsafe_triggers": "on"
} as const

/** The database cannot be distributed; the message says why, and what to do. */
export class CannotDistribute extends Schema.TaggedError<CannotDistribute>()("CannotDistribute", {
  message: Schema.String
}) {}

/** What was done. A second run does nothing. */
export interface Done {
  /** The tables that were distributed by organization now. */
  readonly distributed: ReadonlyArray<string>
  /** The tables of which each server got a copy now. */
  readonly copied: ReadonlyArray<string>
  /** The privileges that were granted now, as GRANT has them. */
  readonly granted: ReadonlyArray<string>
  /** The servers that were told the settings now, as HOST:PORT; the coordinator is always told. */
  readonly configured: ReadonlyArray<string>
  /** The servers that did not take the settings, and why. */
  readonly refused: ReadonlyArray<string>
}

interface Placed {
  readonly name: string
  readonly method: string
  readonly column: string | null
  readonly colocation: number
}

interface Reply {
  readonly server: string
  readonly success: boolean
  readonly result: string
}

const requireCitus = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const [found] = yield* sql<{ has: boolean }>`select to_regclass('pg_dist_partition') is not null as has`
  if (found?.has === true) return
  return yield* new CannotDistribute({
    message:
      "The database has no extension citus. Install Citus on each server, name it in shared_preload_libraries, run `create extension citus` in this database on each of them, and add the workers on this one: select citus_add_node('HOST', 5432)."
  })
})

const placed = (sql: PgClient.PgClient) => sql<Placed>`
  select c.relname as name, p.partmethod::text as method, p.colocationid::int as colocation,
    column_to_column_name(p.logicalrelid, p.partkey::text) as column
  from pg_dist_partition p join pg_class c on c.oid = p.logicalrelid
  where c.relnamespace = current_schema()::regnamespace`

/** Fails where a table is distributed in another way than it has to be. */
const check = (found: ReadonlyArray<Placed>) => {
  const anchored = found.find(({ name }) => name === anchor)
  const problems = found.flatMap(({ colocation, column, method, name }) => {
    if (references.includes(name)) return method === "n" ? [] : [`${name} is distributed, and each server needs a copy`]
    if (local.includes(name)) return method === "n" ? [] : [`${name} is distributed, and has to stay on this server`]
    if (!byOrganization.includes(name)) return []
    if (method !== "h" || column !== "organization_id") return [`${name} is not distributed by organization_id`]
    return anchored === undefined || colocation === anchored.colocation ? [] : [`${name} is not kept with ${anchor}`]
  })
  return problems.length === 0
    ? Effect.void
    : Effect.fail(
        new CannotDistribute({
          message: `Some tables are distributed in another way: ${problems.join("; ")}. Undo that: select undistribute_table('TABLE').`
        })
      )
}

/**
 * Drops the triggers of the order of changes that write into other tables, which a trigger on a distributed table must
 * not do, or stamp each inserted row. That which gives an UPDATE its time stays.
 */
const dropTriggers = Effect.fnUntraced(function* (sql: PgClient.PgClient, table: string) {
  const triggers = yield* sql<{ name: string }>`
    select t.tgname as name from pg_trigger t join pg_proc p on p.oid = t.tgfoid
    where t.tgrelid = ${table}::regclass and not t.tgisinternal
      and (p.proname in ('record_removed', 'records_truncated') or (p.proname = 'record_changed' and t.tgtype & 4 <> 0))`
  for (const { name } of triggers) yield* sql`drop trigger ${sql(name)} on ${sql(table)}`
})

/** Makes the functions that others call on each server. */
const copyFunctions = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  for (const name of called) {
    yield* sql`
      select create_distributed_function(oid::regprocedure) from pg_proc
      where proname = ${name} and pronamespace = current_schema()::regnamespace`
  }
})

/**
 * The grants that roles lack. Citus sends an INSERT to a shard with all columns that have a default, so that a role that
 * may insert some columns of a table has to have these among them.
 */
export const lackingGrants = (sql: PgClient.PgClient): Effect.Effect<ReadonlyArray<string>, SqlError> =>
  Effect.map(
    sql<{ grant: string }>`
      select format('insert (%s) on %I to %I', string_agg(quote_ident(a.attname), ', ' order by a.attnum), c.relname, r.rolname)
        as grant
      from pg_class c join pg_attribute a on a.attrelid = c.oid cross join pg_roles r
      where c.relnamespace = current_schema()::regnamespace and ${sql.in("c.relname", byOrganization)}
        and starts_with(r.rolname, 'practice_data_') and has_any_column_privilege(r.oid, c.oid, 'INSERT')
        and a.attnum > 0 and a.atthasdef and a.attgenerated = '' and not a.attisdropped
        and not has_column_privilege(r.oid, c.oid, a.attnum, 'INSERT')
      group by c.relname, r.rolname order by c.relname, r.rolname`,
    (rows) => rows.map(({ grant }) => grant)
  )

const grant = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const granted = yield* lackingGrants(sql)
  for (const privileges of granted) yield* sql.unsafe(`grant ${privileges}`)
  return granted
})

/** Runs in a transaction that may move many rows, table after table. */
const moving = <A, E, R>(sql: PgClient.PgClient, statements: Effect.Effect<A, E, R>) =>
  sql.withTransaction(
    Effect.andThen(
      Effect.all([
        sql`set local statement_timeout = 0`,
        sql`set local citus.multi_shard_modify_mode = 'sequential'`,
        sql`set local citus.enable_unsafe_triggers = on`
      ]),
      statements
    )
  )

const commands = (database: string) =>
  Object.entries(settings).map(([name, value]) => `alter database ${database} set ${name} = '${value}'`)

/** The servers beside this one whose sessions lack a setting. */
const lacking = (sql: PgClient.PgClient) => {
  const wanted = Object.entries(settings).map(([name, value]) => `'${name}=${value}'`)
  const asked = `select count(*) from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase
    where d.datname = current_database() and s.setrole = 0 and s.setconfig @> array[${wanted.join(", ")}]`
  return Effect.map(
    sql<Reply>`select nodename || ':' || nodeport as server, success, result from run_command_on_workers(${asked})`,
    (replies) => replies.filter(({ result, success }) => !success || result !== "1").map(({ server }) => server)
  )
}

/** Gives the sessions of each server their settings: this one's first, which newer versions of Citus pass on. */
const configure = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const [self] = yield* sql<{ name: string }>`select quote_ident(current_database()) as name`
  const all = commands(self?.name ?? "")
  for (const command of all) yield* sql.unsafe(command)
  const configured = yield* lacking(sql)
  const refused: Array<string> = []
  if (configured.length > 0) {
    for (const command of all) {
      const replies = yield* sql<Reply>`
        select nodename || ':' || nodeport as server, success, result from run_command_on_workers(${command})`
      for (const { result, server, success } of replies) if (!success) refused.push(`${server}: ${result}`)
    }
  }
  return { configured, refused: Array.dedupe(refused) }
})

/** Distributes what is not distributed yet. It can be cut short and run again. */
export const distribute = Effect.fn("Distribute.distribute")(function* (
  sql: PgClient.PgClient
): Effect.fn.Return<Done, CannotDistribute | SqlError> {
  yield* requireCitus(sql)
  const found = yield* placed(sql)
  yield* check(found)
  const isLeft = (table: string) => !found.some(({ name }) => name === table)
  const distributed = byOrganization.filter(isLeft)
  const copied = references.filter(isLeft)
  if (distributed.length > 0) yield* copyFunctions(sql)
  for (const table of copied) yield* moving(sql, sql`select create_reference_table(${table})`)
  for (const table of distributed) {
    const keptWith = table === anchor ? "none" : anchor
    yield* moving(
      sql,
      Effect.andThen(
        dropTriggers(sql, table),
        sql`select create_distributed_table(${table}, 'organization_id', colocate_with => ${keptWith})`
      )
    )
  }
  return { distributed, copied, granted: yield* grant(sql), ...(yield* configure(sql)) }
})
