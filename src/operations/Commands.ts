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

/** Makes changes in a database, and logs them there. One that describes itself as false has changed nothing. */
const audited = <I>(database: Context.Key<I, Database>) =>
  Effect.fn("Commands.audited")(function* <A, E, R>(
    action: string,
    change: Effect.Effect<A, E, R>,
    describe: (made: A) => Change | false
  ) {
    const [sql, actor] = [yield* database, yield* user]
    return yield* sql.withTransaction(
      Effect.gen(function* () {
        const made = yield* change
        const described = describe(made)
        if (described === false) return made
        const [organization_id, target, result] = described
        const entry = { organization_id, actor, source: "command line", action, target, result }
        yield* sql`insert into audit_log ${sql.insert(entry)}`
        return made
      })
    )
  })

const withKeys = audited(CredentialDatabase)
const withTasks = audited(TaskDatabase)

/** Creates the record of an organization. False if it has one. */
export const createOrganization = Effect.fnUntraced(function* ({ id, name }: Readonly<Record<"id" | "name", string>>) {
  const sql = yield* TaskDatabase
  const row = { organization_id: id, id, name }
  const created = sql`insert into organizations ${sql.insert(row)} on conflict do nothing returning 1`
  const isNew = Effect.map(created, ({ length }) => length > 0)
  return yield* withTasks("organization.create", isNew, (made) => made && [id, id, "created"])
})

export const createKey = (given: Readonly<Record<"organization" | "name", string>>) =>
  withKeys("key.create", ApiKeys.create(given), ({ id }) => [given.organization, id, "created"])

export const revokeKey = (id: string) =>
  withKeys("key.revoke", ApiKeys.revoke(id), (owner) => Option.isSome(owner) && [owner.value, id, "revoked"])

export const addSecret = (organization: string) =>
  withTasks("secret.add", SigningSecrets.create(organization), ({ id }) => [organization, id, "created"])

export const revokeSecret = (id: string) =>
  withTasks("secret.revoke", SigningSecrets.revoke(id), (revoked) => {
    return Option.isSome(revoked) && [revoked.value.organization, id, "revoked"]
  })

export const allowUnsigned = (organization: string) =>
  withTasks("secret.allow_unsigned", SigningSecrets.allowUnsigned(organization), (isDone) => {
    return isDone && [organization, organization, "unsigned deliveries allowed"]
  })

export const replayTask = (task: Tasks.Identity) =>
  withTasks("task.replay", Tasks.replay(task), (organization) => [organization, task.id, "replayed"])

export const replayDead = (organization: string) =>
  withTasks("tasks.replay", Tasks.replayDead(organization), (count) => {
    return count > 0 && [organization, "dead", `${count} replayed`]
  })

export const cancelTask = (task: Tasks.Identity) =>
  withTasks("task.cancel", Facts.cancel(task), ({ organization }) => [organization, task.id, "cancelled"])

export const undoDeletions = (target: Facts.Target) =>
  withTasks("deletions.undo", Facts.undo(target), (count) => {
    const undone = "task" in target ? target.task : `${target.kind} ${target.id}`
    return count > 0 && [target.organization, undone, `${count} undone`]
  })

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
