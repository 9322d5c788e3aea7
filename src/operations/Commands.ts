/** The changes that operators can make, and the audit log of them. A change and its entry are one transaction. */
import { userInfo } from "node:os"
import { Array, type Context, Effect, Option, Order, Schema } from "effect"
import { isoTime, decodeRows } from "../database/Columns.ts"
import { CredentialDatabase, type Database, isSameDatabase, TaskDatabase } from "../database/Database.ts"
import * as Facts from "../deletions/Facts.ts"
import * as Tasks from "../deletions/OperatorTasks.ts"
import * as ApiKeys from "../keys/ApiKeys.ts"
import * as SigningSecrets from "../keys/SigningSecrets.ts"

const line = /^(?!\s)[^\p{Cc}\p{Cs}]{1,128}(?<!\s)$/u

/** The id of an organization, or the name of a key. */
export const Line = (what: string) => {
  const message = `Expected ${what}: 1 to 128 characters on one line, without white space around them`
  return Schema.String.check(Schema.isPattern(line, { message }))
}

/** An entry. `at`: ISO 8601 in UTC. `source`: `command line`, or `psql` of the scripts for operators. */
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

const newestFirst = Order.mapInput(Order.flip(Order.String), ({ at, id }: Entry) => `${at} ${id}`)

/** The latest entries in the databases of tasks and of API keys. */
export const auditLog = Effect.fn("Commands.auditLog")(function* (limit: number) {
  const [tasks, credentials] = [yield* TaskDatabase, yield* CredentialDatabase]
  const databases = isSameDatabase(tasks, credentials) ? [tasks] : [tasks, credentials]
  const logs = yield* Effect.forEach(databases, (sql) =>
    decodeRows(Entry)(
      sql`
        select organization_id, id, ${sql.literal(isoTime("a.at"))}, actor, source, action, target, result
        from audit_log a
        order by a.at desc, id desc limit ${sql.literal(String(limit))}`.unprepared
    )
  )
  return Array.sort(logs.flat(), newestFirst).slice(0, limit)
})

/** The user of the operating system, who has no name on some systems, such as some containers. */
const user = Effect.orElseSucceed(
  Effect.try(() => userInfo().username),
  () => `uid ${process.getuid?.() ?? "unknown"}`
)

/** Organization, target (the id of a key, a secret, a task or a record) and result. None may hold a secret. */
type Change = readonly [organization: string, target: string, result: string]

/** Makes a change in a database and logs it there, unless nothing changed. */
const audited = <I, Given extends ReadonlyArray<unknown>, A, E, R>(
  database: Context.Key<I, Database>,
  action: string,
  change: (...given: Given) => Effect.Effect<A, E, R>,
  changeOf: (made: A, ...given: Given) => Change | undefined
) =>
  Effect.fn("Commands.audited")(function* (...given: Given) {
    const [sql, actor] = [yield* database, yield* user]
    return yield* sql.withTransaction(
      Effect.gen(function* () {
        const made = yield* change(...given)
        const logged = changeOf(made, ...given)
        if (logged === undefined) return made
        const [organization_id, target, result] = logged
        const entry = { organization_id, actor, source: "command line", action, target, result }
        yield* sql`insert into audit_log ${sql.insert(entry)}`
        return made
      })
    )
  })

/** Creates the record of an organization. False if it has one. */
export const createOrganization = audited(
  TaskDatabase,
  "organization.create",
  Effect.fnUntraced(function* ({ id, name }: Readonly<Record<"id" | "name", string>>) {
    const sql = yield* TaskDatabase
    const row = { organization_id: id, id, name }
    const created = yield* sql`insert into organizations ${sql.insert(row)} on conflict do nothing returning 1`
    return created.length > 0
  }),
  (isNew, { id }) => (isNew ? [id, id, "created"] : undefined)
)

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

export const replayTask = audited(TaskDatabase, "task.replay", Tasks.replay, (organization, { id }) => [
  organization,
  id,
  "replayed"
])

export const replayDead = audited(TaskDatabase, "tasks.replay", Tasks.replayDead, (count, organization) =>
  count === 0 ? undefined : [organization, "dead", `${count} replayed`]
)

export const cancelTask = audited(TaskDatabase, "task.cancel", Facts.cancel, ({ organization }, { id }) => [
  organization,
  id,
  "cancelled"
])

export const undoDeletions = audited(TaskDatabase, "deletions.undo", Facts.undo, (count, target) =>
  count === 0
    ? undefined
    : [target.organization, "task" in target ? target.task : `${target.kind} ${target.id}`, `${count} undone`]
)

const Organization = Schema.Struct({
  id: Schema.String,
  name: Schema.NullOr(Schema.String),
  created_at: Schema.String
})

/** Lists organizations by their id. */
export const listOrganizations = Effect.fn("Commands.listOrganizations")(function* (limit: number) {
  const sql = yield* TaskDatabase
  return yield* decodeRows(Organization)(
    sql`
      select id, left(name, 400) as name, ${sql.literal(isoTime("created_at"))} from organizations
      order by organization_id limit ${sql.literal(String(limit))}`.unprepared
  )
})
