/** The audit log: each change of an operator. A change and its entry are one transaction. */
import { userInfo } from "node:os"
import { Array, Effect, Order, Schema, Struct } from "effect"
import type { Fragment } from "effect/sql/Statement"
import { CredentialDatabase, type Database, isSameDatabase, TaskDatabase } from "../database/Database.ts"
import { isoTime, rowsOf } from "../database/Columns.ts"

/** The author of a change. */
export interface Actor {
  /** The given name, or the user of the operating system. */
  readonly name: string
  /** The address of a browser, or `command line`. */
  readonly source: string
}

/** A change. `target`: the id of a key, a secret or a task. No field may hold a secret. */
export interface Change {
  readonly organization: string
  readonly action: "key.create" | "key.revoke" | "secret.add" | "secret.revoke" | "task.replay"
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

/** The user of the command line. */
export const commandLine: Effect.Effect<Actor> = Effect.map(userName, (name) => ({ name, source: "command line" }))

/**
 * Makes a change and logs it, in one transaction.
 *
 * @param sql the database of the change
 * @param changeOf the change of a result; undefined where nothing changed
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

const columns = `a.organization_id, a.id, ${isoTime("a.at")}, a.actor, a.source, a.action, a.target, a.result,
  a.at::text as position`

const placed = rowsOf(Schema.Struct({ ...Entry.fields, position: Schema.String }))

/** The entries of a database that fulfil a condition, newest first, with their position for a cursor. */
export const entries = (sql: Database, condition: Fragment, limit: number) =>
  placed(
    sql`
      select ${sql.literal(columns)} from audit_log a where ${condition}
      order by a.at desc, a.id desc limit ${sql.literal(String(limit))}`.unprepared
  )

const byTime = Order.flip(Order.mapInput(Order.String, ({ at, id }: Entry) => `${at} ${id}`))

/** Merges the entries of several databases, newest first. */
export const latestFirst = <E extends Entry>(all: ReadonlyArray<E>): ReadonlyArray<E> => Array.sort(all, byTime)

/** The latest entries, of the databases of tasks and of API keys. */
export const list = Effect.fn("AuditLog.list")(function* (limit: number) {
  const [tasks, credentials] = [yield* TaskDatabase, yield* CredentialDatabase]
  const databases = isSameDatabase(tasks, credentials) ? [tasks] : [tasks, credentials]
  const found = yield* Effect.forEach(databases, (sql) => entries(sql, sql`true`, limit))
  return latestFirst(found.flat().map(Struct.omit(["position"]))).slice(0, limit)
})
