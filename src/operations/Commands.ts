/** The changes that operators can make, and the audit log of them. A change and its entry are one transaction. */
import { userInfo } from "node:os"
import { Array, type Context, Effect, Option, Order, Schema } from "effect"
import { isoTime, rowsOf } from "../database/Columns.ts"
import { CredentialDatabase, type Database, isSameDatabase, TaskDatabase } from "../database/Database.ts"
import * as Facts from "../deletions/Facts.ts"
import * as Tasks from "../deletions/OperatorTasks.ts"
import * as ApiKeys from "../keys/ApiKeys.ts"
import * as SigningSecrets from "../keys/SigningSecrets.ts"

export interface Actor {
  /** The given name, or the user of the operating system. */
  readonly name: string
  /** The address of a browser, or `command line`. */
  readonly source: string
}

export const commandLine: Effect.Effect<Actor> = Effect.try(() => userInfo().username).pipe(
  // The user has no name on some systems, such as some containers.
  Effect.orElseSucceed(() => `uid ${process.getuid?.() ?? "unknown"}`),
  Effect.map((name) => ({ name, source: "command line" }))
)

const line = /^(?!\s)[^\p{Cc}\p{Cs}]{1,128}(?<!\s)$/u

/** The id of an organization, or the name of a key. */
export const Line = (what: string) => {
  const message = `Expected ${what}: 1 to 128 characters on one line, without white space around them`
  return Schema.String.check(Schema.isPattern(line, { message }))
}

/** An entry. `at`: ISO 8601 in UTC. `source`: the address of a browser, or `command line`. */
export const Entry = Schema.Struct({
  organization_id: Schema.String,
  id: Schema.String,
  at: Schema.String,
  actor: Schema.String,
  source: Schema.String,
  action: Schema.String,
  target: Schema.String,
  result: Schema.String
})
export type Entry = typeof Entry.Type

/** The entries about an organization, and about a key, a secret or a task of it; of all by default. */
export interface EntryFilter {
  readonly organization?: string | undefined
  readonly target?: string | undefined
}

const columns = `a.organization_id, a.id, ${isoTime("a.at")}, a.actor, a.source, a.action, a.target, a.result`

export const entries = (sql: Database, { organization, target }: EntryFilter, limit: number) =>
  rowsOf(Entry)(
    sql`
      select ${sql.literal(columns)} from audit_log a
      where ${organization === undefined ? sql`true` : sql`a.organization_id = ${organization}`}
        and ${target === undefined ? sql`true` : sql`a.target = ${target}`}
      order by a.at desc, a.id desc limit ${sql.literal(String(limit))}`.unprepared
  )

export const latestOf = (lists: ReadonlyArray<ReadonlyArray<Entry>>, limit: number): ReadonlyArray<Entry> =>
  Array.sortWith(lists.flat(), ({ at, id }) => `${at} ${id}`, Order.flip(Order.String)).slice(0, limit)

/** The latest entries in the databases of tasks and of API keys. */
export const auditLog = Effect.fn("Commands.auditLog")(function* (limit: number) {
  const [tasks, credentials] = [yield* TaskDatabase, yield* CredentialDatabase]
  const databases = isSameDatabase(tasks, credentials) ? [tasks] : [tasks, credentials]
  return latestOf(yield* Effect.forEach(databases, (sql) => entries(sql, {}, limit)), limit)
})

/** Organization, target (the id of a key, a secret, a task or a record) and result. None may hold a secret. */
type Change = readonly [organization: string, target: string, result: string]

/** Adds an entry to the audit log of a database. */
export const log = (
  sql: Database,
  { name, source }: Actor,
  action: string,
  [organization_id, target, result]: Change
) => sql`insert into audit_log ${sql.insert({ organization_id, actor: name, source, action, target, result })}`

/** Makes a change in a database and logs it there, unless nothing changed. */
export const audited = <I, Given extends ReadonlyArray<unknown>, A, E, R>(
  database: Context.Key<I, Database>,
  action: string,
  change: (...given: Given) => Effect.Effect<A, E, R>,
  changeOf: (made: A, ...given: Given) => Change | undefined
) =>
  Effect.fn("Commands.audited")(function* (actor: Actor, ...given: Given) {
    const sql = yield* database
    return yield* sql.withTransaction(
      Effect.gen(function* () {
        const made = yield* change(...given)
        const logged = changeOf(made, ...given)
        if (logged !== undefined) yield* log(sql, actor, action, logged)
        return made
      })
    )
  })

export const createKey = audited(CredentialDatabase, "key.create", ApiKeys.create, ({ id }, { organization }) => [
  organization,
  id,
  "created"
])

export const revokeKey = audited(CredentialDatabase, "key.revoke", ApiKeys.revoke, (organization, id) =>
  Option.isNone(organization) ? undefined : [organization.value, id, "revoked"]
)

export const addSecret = audited(TaskDatabase, "secret.add", SigningSecrets.create, ({ id }, organization) => [
  organization,
  id,
  "created"
])

export const revokeSecret = audited(TaskDatabase, "secret.revoke", SigningSecrets.revoke, (revoked, id) =>
  Option.isNone(revoked) ? undefined : [revoked.value.organization, id, "revoked"]
)

export const allowUnsigned = audited(
  TaskDatabase,
  "secret.allow_unsigned",
  SigningSecrets.allowUnsigned,
  (isDone, organization) => (isDone ? [organization, organization, "unsigned deliveries allowed"] : undefined)
)

export const replayTask = audited(TaskDatabase, "task.replay", Tasks.replay, (replay, { id }) =>
  replay._tag === "Replayed" ? [replay.organization, id, "replayed"] : undefined
)

/** A replay of the dead tasks of all organizations is logged with the organization `*`. */
export const replayDead = audited(TaskDatabase, "tasks.replay", Tasks.replayDead, (count, filter) =>
  count === 0 ? undefined : [filter.organization ?? "*", Tasks.boundsText(filter), `${count} replayed`]
)

export const cancelTask = audited(TaskDatabase, "task.cancel", Facts.cancel, (cancel, { id }) =>
  cancel._tag === "Cancelled" ? [cancel.organization, id, "cancelled"] : undefined
)

export const undoDeletions = audited(TaskDatabase, "deletions.undo", Facts.undo, (count, target) =>
  count === 0
    ? undefined
    : [target.organization, "task" in target ? target.task : `${target.kind} ${target.id}`, `${count} undone`]
)
