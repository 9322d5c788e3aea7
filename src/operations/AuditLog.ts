/** The audit log: each change of an operator. `Commands` writes it. */
import { Array, Effect, Order, Schema, Struct } from "effect"
import type { Fragment } from "effect/sql/Statement"
import { isoTime, rowsOf } from "../database/Columns.ts"
import { CredentialDatabase, type Database, isSameDatabase, TaskDatabase } from "../database/Database.ts"

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
