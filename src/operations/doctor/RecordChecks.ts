/** Checks of the records: deletions that are not applied, references to nothing, and subscriptions. */
import { Effect, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { PgClient } from "@effect/sql-pg"
import { clients, references } from "../../api/records/index.ts"
import { rowsOf } from "../../database/Columns.ts"
import * as Time from "../../process/Time.ts"
import { type Fact, fail, facts, listed, ok, warn } from "../Check.ts"

/** The milliseconds of a statement: an answer within the time of a check. */
const longest = 5000

/** The planner's settings of a statement that reads whole tables. */
const whole = { enable_seqscan: "on", enable_bitmapscan: "on", jit: "off" } as const

/** Runs a statement with settings of its own; undefined if it takes longer than its milliseconds. */
const bounded = <A, R>(
  sql: PgClient.PgClient,
  millis: number,
  settings: Readonly<Record<string, string>>,
  statement: Effect.Effect<A, SqlError, R>
) => {
  const all = { ...settings, statement_timeout: String(millis) }
  const set = sql`select set_config(key, value, true) from json_each_text(${JSON.stringify(all)}::json)`
  return sql
    .withTransaction(Effect.andThen(set, statement))
    .pipe(Effect.catchReason("SqlError", "StatementTimeoutError", () => Effect.undefined))
}

const Unapplied = Schema.Struct({ count: Schema.Finite, example: Schema.NullOr(Schema.String) })

/** The invoices and lines that are served, although a deletion holds for them. */
export const deletionsApplied = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const rows = yield* bounded(
    sql,
    longest,
    whole,
    rowsOf(Unapplied)(sql`
      select count(distinct example)::float8 as count, min(example) as example from (
        select d.organization_id, d.task_id, 'invoice ' || r.id || ' of ' || d.organization_id as example
        from deletions d join invoices r on r.organization_id = d.organization_id and r.id = d.id
        where d.kind = 'invoice' and d.holds and d.undone_at is null and not r.is_deleted
        union all
        select d.organization_id, d.task_id, 'line ' || r.id || ' of ' || d.organization_id
        from deletions d join invoice_lines r on r.organization_id = d.organization_id and r.id = d.id
        where d.kind = 'line' and d.holds and d.undone_at is null and not r.is_deleted
        union all
        select d.organization_id, d.task_id, 'line ' || r.id || ' of ' || d.organization_id
        from deletions d join invoice_lines r on r.organization_id = d.organization_id and r.invoice = d.id
        where d.kind = 'invoice' and d.holds and d.undone_at is null and not r.is_deleted
      ) served where not exists (
        -- Transactions that were open at the deletion may still end.
        select from deletion_tasks t
        where t.organization_id = served.organization_id and t.id = served.task_id and t.unsettled_since is not null
      )`)
  )
  if (rows === undefined) return [ok("Applied deletions were not checked: no response within 5 seconds.")]
  const { count = 0, example = "" } = rows[0] ?? {}
  if (count === 0) return [ok("Every deletion is applied to its records.")]
  return [
    fail(
      `Deleted records are still served: ${count}, such as the ${example}.`,
      "Look for missing or disabled triggers. Then make the worker reapply the deletions: update deletion_tasks set unsettled_since = now() where id in (select task_id from deletions where holds)"
    )
  ]
})

/** The milliseconds that the references may take in sum. */
const longestOfAll = 10_000

const Count = Schema.Struct({ count: Schema.Finite })
const Size = Schema.Struct({ table: Schema.String, rows: Schema.Finite })

/** References to records that are not there, the smallest tables first. */
export const referencesToNothing = Effect.fnUntraced(function* (sql: PgClient.PgClient) {
  const all = references.filter(({ target }) => target !== clients)
  const sizes = yield* rowsOf(Size)(
    sql`select relname::text as table, reltuples::float8 as rows from pg_class where oid = any(${all.map(({ table }) => table)}::regclass[])`
  )
  const rowsIn = (name: string) => sizes.find(({ table }) => table === name)?.rows ?? 0
  const end = (yield* Time.monotonic) + longestOfAll
  const [broken, left]: [Array<string>, Array<string>] = [[], []]
  for (const { column, table, target } of all.toSorted((one, other) => rowsIn(one.table) - rowsIn(other.table))) {
    const rest = end - (yield* Time.monotonic)
    const counted = rowsOf(Count)(sql`
      select count(*)::float8 as count from ${sql(table)} t where t.${sql(column)} is not null and not exists (
        select from ${sql(target)} r where r.organization_id = t.organization_id and r.id = t.${sql(column)}
      )`)
    const rows = rest < 1 ? undefined : yield* bounded(sql, rest, whole, counted)
    if (rows === undefined) left.push(`${table}.${column}`)
    else if (rows.some(({ count }) => count > 0)) broken.push(`${table}.${column} (${rows[0]?.count})`)
  }
  return facts(
    broken.length > 0 &&
      warn(
        `References to missing records: ${broken.join(", ")}.`,
        "Load the missing records, or correct the ids: joins drop these records."
      ),
    broken.length === 0 && left.length < all.length && ok("Every checked reference resolves to a record."),
    left.length > 0 && ok(`References not checked within 10 seconds: ${listed(left)}.`)
  )
})

const Subscription = Schema.Struct({
  name: Schema.String,
  is_enabled: Schema.Boolean,
  has_worker: Schema.Boolean,
  apply_errors: Schema.Finite,
  sync_errors: Schema.Finite,
  /** The tables whose first copy is not complete. */
  copying: Schema.Array(Schema.String)
})

const factOf = ({
  apply_errors,
  copying,
  has_worker,
  is_enabled,
  name,
  sync_errors
}: typeof Subscription.Type): Fact => {
  const subject = `The subscription ${name} of logical replication`
  const log = `The log of this server says why: search it for "${name}" and "logical replication".`
  const reasons =
    "Common causes: a row that violates a constraint or already exists, a missing column, an unreachable publisher, too few max_logical_replication_workers."
  const errors = [
    ...(apply_errors > 0 ? [`${apply_errors} errors applying changes`] : []),
    ...(sync_errors > 0 ? [`${sync_errors} errors in initial copies`] : [])
  ].join(" and ")
  const after = errors === "" ? "" : `, after ${errors}`
  if (!is_enabled) {
    const remedy = `${log} Then: alter subscription ${name} enable, or drop it if it is unused.`
    return warn(`${subject} is disabled${after}.`, remedy)
  }
  if (!has_worker) return fail(`${subject} has no worker${after}.`, `${log} ${reasons}`)
  if (copying.length === 0) return ok(`${subject} runs.`)
  const copies = `${subject} has not copied ${listed(copying)}`
  return sync_errors > 0 ? fail(`${copies}${after}.`, `${log} ${reasons}`) : ok(`${copies} yet.`)
}

/** The subscriptions of the database, and why each stopped. A standby has those of its primary, and runs none. */
export const subscriptions = (sql: PgClient.PgClient) =>
  Effect.map(
    rowsOf(Subscription)(sql`
      select quote_ident(s.subname) as name, s.subenabled as is_enabled,
        exists (select from pg_stat_subscription w where w.subid = s.oid and w.relid is null and w.pid is not null) as has_worker,
        coalesce(e.apply_error_count, 0)::float8 as apply_errors, coalesce(e.sync_error_count, 0)::float8 as sync_errors,
        array(select r.srrelid::regclass::text from pg_subscription_rel r
          where r.srsubid = s.oid and r.srsubstate <> 'r' order by 1) as copying
      from pg_subscription s left join pg_stat_subscription_stats e on e.subid = s.oid
      where s.subdbid = (select oid from pg_database where datname = current_database()) and not pg_is_in_recovery()
      order by 1`),
    (rows) => rows.map(factOf)
  )
