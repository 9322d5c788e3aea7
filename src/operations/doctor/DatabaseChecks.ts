/** Checks of a database, each with the facts that it finds: the server, migrations, privileges, deletions and the feed. */
import { Array, Effect, Schema } from "effect"
import { decodeRows } from "../../database/Columns.ts"
import type { Database } from "../../database/Database.ts"
import * as Distribution from "../../database/Distribution.ts"
import { missing, recordedPrefix } from "../../database/Migrations.ts"
import { counts, mostCounted } from "../TaskCounts.ts"
import { invocation } from "../../process/Package.ts"
import { counted } from "../Format.ts"
import { clockFault, measure } from "../HealthChecks.ts"
import { grantsToOthers, groupSuffix, lacking, type Need, sharedWith } from "../Privileges.ts"

/** A fact, with its remedy unless all is well. */
export interface Fact {
  readonly status: "ok" | "warn" | "fail"
  readonly message: string
  readonly advice?: string
}

export const ok = (message: string): Fact => ({ status: "ok", message })
export const warn = (message: string, advice: string): Fact => ({ status: "warn", message, advice })
export const fail = (message: string, advice: string): Fact => ({ status: "fail", message, advice })

/** The facts whose conditions hold. */
const facts = (...all: ReadonlyArray<Fact | false>): ReadonlyArray<Fact> => all.filter((one) => one !== false)

const listed = (names: ReadonlyArray<string>) =>
  names.length > 4 ? `${names.slice(0, 4).join(", ")} and ${names.length - 4} more` : names.join(", ")

const Server = Schema.Struct({
  version: Schema.String,
  number: Schema.Int,
  login: Schema.String,
  isSuperuser: Schema.Boolean,
  isReplica: Schema.Boolean,
  limit: Schema.Int
})

/** The server: its version, its clock, if it accepts writes, and its room for the connections of a process. */
export const server = Effect.fnUntraced(function* (sql: Database, connections: number, isWritten: boolean) {
  const [row] = yield* decodeRows(Server)(sql`
    select current_setting('server_version') as version, current_setting('server_version_num')::int as number,
      current_user as login, r.rolsuper as "isSuperuser", pg_is_in_recovery() as "isReplica", least(
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int,
        nullif(r.rolconnlimit, -1), nullif(d.datconnlimit, -1)) as limit
    from pg_roles r, pg_database d where r.rolname = current_user and d.datname = current_database()`)
  if (row === undefined) return []
  const measured = yield* measure(sql)
  const clock = clockFault(measured, 500)
  const room = `A process needs ${connections} connections of ${row.limit}.`
  return facts(
    row.number < 150_000
      ? fail(`PostgreSQL ${row.version} is too old.`, "Use PostgreSQL 15 or later.")
      : ok(`PostgreSQL ${row.version}, login ${row.login}; a statement takes ${measured.took} ms.`),
    isWritten && row.isReplica && fail("It is a read-only replica.", "Name the primary."),
    isWritten &&
      !row.isReplica &&
      measured.isReadOnly &&
      fail(
        "It accepts only reads: its sessions have default_transaction_read_only = on.",
        "A managed server sets this when its disk is full: free some space. Otherwise reset it for the login and the database."
      ),
    clock === undefined
      ? ok("Its clock and this machine's agree.")
      : fail(`${clock}.`, "Sync both with the same time server: leases and due times of deletions compare clocks."),
    connections <= row.limit
      ? ok(room)
      : fail(room, "Lower DATABASE_POOL_SIZE, or raise the limit: of the server, the database or the login."),
    row.isSuperuser &&
      warn(
        `The login ${row.login} is a superuser: grants do not restrict it.`,
        "Give the service a login of its own, with the roles that it needs."
      )
  )
})

/** The migrations of a database, and the privileges there: of the login for some roles, and of anybody else. */
export const schema = Effect.fnUntraced(function* (sql: Database, needs: ReadonlyArray<Need>) {
  const run = `Run: ${invocation("migrate")}`
  // The privileges that are lacking say so.
  const { isEmpty, names } = yield* Effect.catchReason(missing(sql), "SqlError", "AuthorizationError", () =>
    Effect.succeed({ isEmpty: false, names: [] })
  )
  if (isEmpty) return [fail("It is not migrated.", run)]
  if (names.length > 0) return [fail(`It lacks the migrations ${names.join(", ")}.`, run)]
  const byRole = Map.groupBy(needs, ({ role }) => role)
  const lacks = yield* Effect.forEach(byRole, ([role, same]) =>
    Effect.map(lacking(sql, same), (privileges) => ({ role, privileges }))
  )
  const others = yield* grantsToOthers(sql)
  const shared = yield* sharedWith(sql)
  const prefix = yield* recordedPrefix(sql)
  return facts(
    ok("It has all migrations."),
    ...lacks.map(({ privileges, role }) =>
      privileges.length === 0
        ? ok(`The login has the privileges that ROLES=${role} needs.`)
        : fail(
            `The login lacks ${listed(privileges)}, which ROLES=${role} needs.`,
            `Run: grant ${prefix}${groupSuffix(role)} to the login, as one that has it with ADMIN OPTION. If it has this role, grant the role what it lacks.`
          )
    ),
    ...others.map(({ grantee, objects }) =>
      fail(`${grantee} has privileges on ${listed(objects)}: only the roles of the service may have any.`, run)
    ),
    shared.length > 0 &&
      warn(
        `The roles ${prefix}_... have privileges in other databases of the server too: ${listed(shared)}. The logins of each may use all.`,
        `Unless they are of one service, make new ones with roles of their own: ${invocation("migrate --roles PREFIX")}`
      )
  )
})

/** Deletions that were noted to be applied again more than a minute ago, and whose rows are still served. */
export const served = Effect.fnUntraced(function* (sql: Database) {
  const [{ tasks } = { tasks: 0 }] = yield* decodeRows(Schema.Struct({ tasks: Schema.Int }))(sql`
    select count(*)::integer as tasks
    from (
      select distinct w.organization_id, w.task_id
      from (
        select distinct organization_id, task_id from deletions_unsettled where since < now() - interval '1 minute' limit 1000
      ) n
      join deletion_work w on w.organization_id = n.organization_id and w.task_id = n.task_id
    ) left_over`)
  if (tasks === 0) return [ok("Each deletion is applied.")]
  return [
    fail(
      `Deleted rows have been served for more than a minute: of ${counted(tasks, "deletion")}.`,
      "Run a process with the role worker. If one runs, transactions or triggers of others hold the rows, or refuse their marks: see its log."
    )
  ]
})

/** Late, dead and unsettled deletions. */
export const deletions = Effect.fnUntraced(function* (sql: Database) {
  const { dead, now, oldest_due_at, unsettled_since } = yield* counts(sql)
  const age = (at: string | null) => (at === null ? 0 : Math.round((Date.parse(now) - Date.parse(at)) / 1000))
  const [late, unsettled] = [age(oldest_due_at), age(unsettled_since)]
  const found = facts(
    late > 60 &&
      warn(`A deletion has been due for ${late} seconds.`, "Run a process with the role worker, and check its log."),
    dead > 0 &&
      warn(
        `Dead deletions (every attempt failed): ${dead > mostCounted ? `more than ${mostCounted}` : dead}.`,
        `See why: ${invocation("tasks list --state dead")}. Then: ${invocation("tasks replay TASK-ID")}`
      ),
    unsettled > 60 &&
      warn(
        `A deletion has not been settled for ${unsettled} seconds: rows of open transactions may be served.`,
        "Run a process with the role worker, and end transactions that stay open: see Changes in the operators' guide."
      )
  )
  return Array.isReadonlyArrayNonEmpty(found) ? found : [ok("No deletion is late, dead or unsettled.")]
})

const Feed = Schema.Struct({ table: Schema.String, isWhole: Schema.Boolean })

/** The state of the feed of changes. */
export const feed = Effect.fnUntraced(function* (sql: Database) {
  if (yield* Distribution.hasDistributedTable(sql)) {
    return [ok("Changes are not served (501): the tables are distributed over several servers.")]
  }
  const states = yield* decodeRows(Feed)(sql`
    select table_name as table, is_whole as "isWhole" from change_feed_states() where not is_settled order by 1`)
  const [restarting, broken] = [states.filter(({ isWhole }) => isWhole), states.filter(({ isWhole }) => !isWhole)]
  const names = (some: typeof states) => listed(some.map(({ table }) => table))
  return facts(
    states.length === 0 && ok("The feed of changes is whole."),
    broken.length > 0 &&
      fail(
        `The feed lacks triggers or indexes of ${names(broken)}, or has others: /changes is 503.`,
        "Compare its schema (pg_dump --schema-only) with that of a new database that you migrate, and restore what differs."
      ),
    restarting.length > 0 &&
      warn(
        `The order of changes of ${names(restarting)} must restart: triggers were disabled, or the table was restored.`,
        "A running service restarts it within a second, and its readers start again."
      )
  )
})
