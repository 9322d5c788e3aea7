/** What operators changed, who did it, from where and when. What is changed and its entry are one transaction. */
import { userInfo } from "node:os"
import { Array, Effect, Order, Schema } from "effect"
import { SqlSchema } from "effect/sql"
import { CredentialDatabase, type Database, isSameDatabase, TaskDatabase } from "../database/Database.ts"
import { isoTime } from "../database/Time.ts"

/** Who changes something. */
export interface Actor {
  /** The name that was given, or the user of the operating system. */
  readonly name: string
  /** The address of a browser, or `command line`. */
  readonly source: string
}

/** What is changed. */
export type Action = "key.create" | "key.revoke" | "secret.add" | "secret.revoke" | "task.replay"

/** What became of it. `target`: the id of a key, a secret or a task. Nothing of this may be a secret. */
export interface Change {
  readonly organization: string
  readonly action: Action
  readonly target: string
  readonly result: string
}

/** An entry. `at`: ISO 8601 in UTC. */
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

const userName = Effect.sync(() => {
  try {
    return userInfo().username
  } catch {
    // The user has no name on this system, as in some containers.
    return `uid ${process.getuid?.() ?? "unknown"}`
  }
})

/** Whoever runs a command. */
export const commandLine: Effect.Effect<Actor> = Effect.map(userName, (name) => ({ name, source: "command line" }))

/**
 * Changes something and writes down that it was changed, in one transaction.
 *
 * @param sql the database of what is changed
 * @param changeOf what the result changed; undefined where it changed nothing
 */
export const audited = <A, E, R>(
  sql: Database,
  actor: Actor,
  change: Effect.Effect<A, E, R>,
  changeOf: (result: A) => Change | undefined
) =>
  sql.withTransaction(
    Effect.gen(function* () {
      const result = yield* change
      const changed = changeOf(result)
      if (changed === undefined) return result
      const { action, organization, target, result: outcome } = changed
      yield* sql`insert into audit_log ${sql.insert({
        organization_id: organization,
        actor: actor.name,
        source: actor.source,
        action,
        target,
        result: outcome
      })}`
      return result
    })
  )

/** The columns of an entry. */
export const columns = `organization_id, id, ${isoTime("at")}, actor, source, action, target, result`

const byTime = Order.flip(Order.mapInput(Order.String, ({ at, id }: Entry) => `${at} ${id}`))

/** Entries of several databases, the latest first. */
export const latestFirst = <E extends Entry>(entries: ReadonlyArray<E>): ReadonlyArray<E> => Array.sort(entries, byTime)

/** The latest entries, of the databases of tasks and of API keys. */
export const list = Effect.fn("AuditLog.list")(function* (limit: number) {
  const [tasks, credentials] = [yield* TaskDatabase, yield* CredentialDatabase]
  const databases = isSameDatabase(tasks, credentials) ? [tasks] : [tasks, credentials]
  const entries = yield* Effect.forEach(databases, (sql) => {
    const find = SqlSchema.findAll({
      Request: Schema.Void,
      Result: Entry,
      execute: () => sql`
        select ${sql.literal(columns)} from audit_log a order by a.at desc, a.id desc limit ${limit}`
    })
    return find(undefined)
  })
  return latestFirst(entries.flat()).slice(0, limit)
})
