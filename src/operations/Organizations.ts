/**
 * The organizations: their list, and the changes by operators. A deletion has two phases, each in short steps that may be
 * cut short and run again. The first one closes the intake and deletes the records; readers see the removals. The second
 * one revokes the keys and deletes what is left.
 */
import { Array, Effect, Number, Schema } from "effect"
import { searchable } from "../api/records/index.ts"
import { isoTime, rowsOf, textsOf, unionAll } from "../database/Columns.ts"
import { CredentialDatabase, type Database, TaskDatabase } from "../database/Database.ts"
import * as ApiKeys from "../keys/ApiKeys.ts"
import { type Actor, audited, log, revokeKey } from "./Commands.ts"
import { type Counts, deleteRecords, deleteRest, forEachBatch } from "./Erasure.ts"

type Named = Readonly<Record<"id" | "name", string>>

/** Makes the record of an organization, unless it has one, and opens its intake. Returns what was done, if anything. */
export const create = audited(
  TaskDatabase,
  "organization.create",
  Effect.fnUntraced(function* ({ id, name }: Named) {
    const sql = yield* TaskDatabase
    const row = { organization_id: id, id, name }
    const made = yield* sql`insert into organizations ${sql.insert(row)} on conflict do nothing returning id`
    const opened = yield* sql`delete from closed_organizations where organization_id = ${id} returning 1`
    return made.length > 0 ? "created" : opened.length > 0 ? "intake opened" : undefined
  }),
  (result, { id }) => (result === undefined ? undefined : [id, id, result])
)

/** Renames an organization. False if there is none. */
export const rename = audited(
  TaskDatabase,
  "organization.rename",
  Effect.fnUntraced(function* ({ id, name }: Named) {
    const sql = yield* TaskDatabase
    const renamed = yield* sql`
      update organizations set name = ${name}, updated_at = now() where organization_id = ${id} and id = ${id} returning id`
    return renamed.length > 0
  }),
  (isRenamed, { id }) => (isRenamed ? [id, id, "renamed"] : undefined)
)

const Organization = Schema.Struct({
  id: Schema.String,
  name: Schema.NullOr(Schema.String),
  created_at: Schema.String
})

const countsOf = rowsOf(Schema.Struct({ id: Schema.String, count: Schema.Int }))

/** Lists organizations by their id, with the numbers of their valid keys and secrets, and the time of a deletion. */
export const list = Effect.fn("Organizations.list")(function* (limit: number) {
  const [sql, credentials] = [yield* TaskDatabase, yield* CredentialDatabase]
  const rows = yield* rowsOf(Organization)(
    sql`
      select id, left(name, 400) as name, ${sql.literal(isoTime("created_at"))} from organizations
      order by organization_id limit ${sql.literal(String(limit))}`.unprepared
  )
  const ids = rows.map(({ id }) => id)
  const valid = (database: Database, table: "api_keys" | "intake_secrets") =>
    Effect.map(
      countsOf(database`
        select organization_id as id, count(*)::integer as count from ${database(table)}
        where organization_id = any (${ids}::text[]) and revoked_at is null group by organization_id`),
      (counts) => new Map(counts.map(({ count, id }) => [id, count]))
    )
  const [keys, secrets] = [yield* valid(credentials, "api_keys"), yield* valid(sql, "intake_secrets")]
  const closed = yield* rowsOf(Schema.Struct({ id: Schema.String, closed_at: Schema.String }))(sql`
    select organization_id as id, ${sql.literal(isoTime("closed_at"))} from closed_organizations
    where organization_id = any (${ids}::text[])`)
  return rows.map((each) => ({
    ...each,
    keys: keys.get(each.id) ?? 0,
    secrets: secrets.get(each.id) ?? 0,
    closed_at: closed.find(({ id }) => id === each.id)?.closed_at ?? null
  }))
})

// Those that refer to others come before these.
const tables = Array.reverse(searchable).map(({ table }) => table)

export const mostCounted = 1_000_000

/** Counts the records of an organization by their table, up to `mostCounted` of each. Tables without any are left out. */
export const countRecords = Effect.fn("Organizations.countRecords")(function* (id: string) {
  const sql = yield* TaskDatabase
  const counts = tables.map(
    (table) => sql`
      select ${table}::text as id, count(*)::integer as count from (
        select from ${sql(table)} where organization_id = ${id} limit ${sql.literal(String(mostCounted))}
      ) t`
  )
  const rows = yield* countsOf(sql`${unionAll(counts)}`)
  return Object.fromEntries(rows.filter(({ count }) => count > 0).map((each) => [each.id, each.count]))
})

/** The state of an organization before a deletion. */
export const stateOf = Effect.fnUntraced(function* (id: string) {
  const sql = yield* TaskDatabase
  const has = (table: string) =>
    Effect.map(sql`select from ${sql(table)} where organization_id = ${id} limit 1`, ({ length }) => length > 0)
  const keys = (yield* ApiKeys.list(id)).filter(({ revoked_at }) => revoked_at === null)
  return {
    isKnown: yield* has("organizations"),
    isClosed: yield* has("closed_organizations"),
    hasRecords: (yield* Effect.filter(tables, has)).length > 0,
    keys
  }
})

const closeIntake = audited(
  TaskDatabase,
  "organization.delete",
  Effect.fnUntraced(function* (id: string) {
    const sql = yield* TaskDatabase
    const closed = yield* sql`
      insert into closed_organizations (organization_id) values (${id}) on conflict do nothing returning 1`
    return closed.length > 0
  }),
  (isClosed, id) => (isClosed ? [id, id, "intake closed"] : undefined)
)

/** The first phase: closes the intake, then deletes the records. Those that a loader adds meanwhile may be left. */
export const deleteAll = Effect.fn("Organizations.deleteAll")(function* (actor: Actor, id: string) {
  const sql = yield* TaskDatabase
  yield* closeIntake(actor, id)
  const deleted: Record<string, number> = {}
  for (const table of tables) {
    yield* forEachBatch(sql, table, sql`t.organization_id = ${id}`, (ids) =>
      Effect.map(deleteRecords(sql, table, id, ids), (count) => (deleted[table] = (deleted[table] ?? 0) + count))
    )
  }
  const count = Number.sumAll(Object.values(deleted))
  if (count > 0) yield* log(sql, actor, "organization.delete", [id, id, `${count} records deleted`])
  return deleted satisfies Counts
})

/**
 * The tables of the second phase, with the key of each. Removals stay for their 31 days: if the organization is created
 * again, a reader that was not in step needs them.
 */
const left = [
  ["organizations", "id"],
  ["deletion_tasks", "id"],
  ["deletion_arrivals", "task_id, kind, item"],
  ["deletions", "task_id, kind, item"],
  ["intake_secrets", "id"]
] as const

/** The second phase: revokes the keys, and deletes what is left but the audit log. Returns the rows by their table. */
export const finish = Effect.fn("Organizations.finish")(function* (actor: Actor, id: string) {
  const sql = yield* TaskDatabase
  for (const key of (yield* stateOf(id)).keys) yield* revokeKey(actor, key.id)
  const deleted: Record<string, number> = {}
  for (const [table, columns] of left) {
    const key = sql.literal(`(${columns})`)
    const rows = sql`
      delete from ${sql(table)} where organization_id = ${id} and ${key} in (
        select ${sql.literal(columns)} from ${sql(table)} where organization_id = ${id} limit 1000
      ) returning 1`
    const count = yield* deleteRest(sql, rows)
    if (count > 0) deleted[table] = count
  }
  if (Number.sumAll(Object.values(deleted)) > 0) yield* log(sql, actor, "organization.delete", [id, id, "finished"])
  return deleted satisfies Counts
})

const lacking = (sql: Database, privilege: string, names: ReadonlyArray<string>) =>
  textsOf(sql`
    select format('The login %I may not %s on %I. Use the role that migrated.', current_user, ${privilege}::text, name) as text
    from unnest(${names}::text[]) as needed (name) where not has_table_privilege(name, ${privilege}::text) limit 1`)

/** The privilege that the login lacks for the commands of this module and of `Erasure`, as a sentence; none if it may. */
export const lackingPrivilege = Effect.gen(function* () {
  const sql = yield* TaskDatabase
  return Array.head([
    ...(yield* lacking(sql, "delete", [...tables, ...left.map(([table]) => table), "closed_organizations"])),
    ...(yield* lacking(sql, "insert", ["audit_log", "closed_organizations"])),
    ...(yield* lacking(sql, "update", ["deletion_tasks"])),
    ...(yield* lacking(yield* CredentialDatabase, "update", ["api_keys"]))
  ])
})
