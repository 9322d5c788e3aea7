/** A database of a test file's own, on the Postgres that all tests share. */
import { Context, Effect, Layer, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { Client } from "pg"
import { inject } from "vitest"
import { connect, type Database, layerShared, type PoolOptions } from "../../src/database/Database.ts"
import { configure } from "../../src/database/Distribution.ts"
import { loadDemoData } from "../../src/app/demo/Load.ts"

let created = 0

const options = {
  statementTimeout: "3 minutes",
  // A function of a test takes the place of the system's, such as the clock.
  settings: { search_path: "public, pg_catalog" }
} as const

const urlOf = (name: string) => Object.assign(new URL(inject("templateUrl")), { pathname: name }).href

const emptyTemplate = () => new URL(inject("templateUrl")).pathname.slice(1)

/** True if the database is distributed over several servers. */
export const isDistributed = () => inject("servers").length > 1

/** Runs a statement about a database on each server, once nobody is connected to it: Citus itself is. */
const everywhere = (name: string, statement: string) =>
  Effect.forEach(inject("servers"), (url) =>
    Effect.scoped(
      Effect.gen(function* () {
        const server = yield* clientOf(url)
        yield* server`select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = ${name}`
        yield* server.unsafe(statement)
      })
    )
  )

/** Creates a database by copying files: to log each page, which is the default, takes several times as long. */
const copy = (template: string, name: string) =>
  everywhere(template, `create database ${name} template ${template} strategy file_copy`)

/** The name of a template that has the demo data. Whoever needs it first makes it, while the others wait. */
const demoTemplate = Effect.gen(function* () {
  const admin = yield* clientOf(urlOf("postgres"), options)
  const name = `${emptyTemplate()}_demo`
  yield* Effect.acquireUseRelease(
    admin`select pg_advisory_lock(hashtext(${name}))`,
    () =>
      Effect.gen(function* () {
        if ((yield* admin`select 1 from pg_database where datname = ${name}`).length > 0) return
        const filling = `${name}_filling_${process.pid}_${++created}`
        yield* copy(emptyTemplate(), filling)
        yield* Effect.scoped(Effect.flatMap(clientOf(urlOf(filling), options), loadDemoData))
        yield* everywhere(filling, `alter database ${filling} rename to ${name}`)
      }),
    () => Effect.orDie(admin`select pg_advisory_unlock(hashtext(${name}))`)
  )
  return name
}).pipe(Effect.scoped)

const create = Effect.fnUntraced(function* <E>(template: Effect.Effect<string, E>) {
  const name = `${emptyTemplate()}_${process.pid}_${++created}`
  yield* copy(yield* template, name)
  return urlOf(name)
})

const make = Effect.fnUntraced(function* <E>(template: Effect.Effect<string, E>) {
  const url = yield* create(template)
  // They are of a database, and not of its template.
  if (isDistributed()) yield* Effect.scoped(Effect.flatMap(clientOf(url), configure))
  const sql = yield* clientOf(url, { ...options, maxConnections: 5, isPipelined: true })
  // As it is soon after a start.
  yield* sql.distribution.refresh
  return { url, sql }
})

/** The URL and a client of a database that has the tables and no rows. It is kept until the run ends. */
export class TestDatabase extends Context.Service<TestDatabase, { readonly url: string; readonly sql: Database }>()(
  "practice-data/test/support/TestDatabase"
) {
  static readonly layer = Layer.effect(TestDatabase, make(Effect.sync(emptyTemplate)))

  /** One that has the demo data. */
  static readonly layerDemo = Layer.effect(TestDatabase, make(demoTemplate))

  /** All databases of the service: that of the test. */
  static readonly shared = Layer.unwrap(Effect.map(TestDatabase, ({ sql }) => layerShared(sql)))

  static readonly layerDatabases = Layer.provideMerge(TestDatabase.shared, TestDatabase.layer)
}

/** Runs an effect in a transaction: its result, and the number of rows of a table that it read. */
export const readsOf = Effect.fnUntraced(function* <A, E, R>(table: string, effect: Effect.Effect<A, E, R>) {
  const { sql } = yield* TestDatabase
  const read = Effect.map(
    sql<{ rows: number }>`
      select (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as rows from pg_stat_xact_user_tables where relname = ${table}`,
    ([row]) => row?.rows ?? Infinity
  )
  const [before, result, after] = yield* sql.withTransaction(Effect.all([read, effect, read]))
  return { result, rows: after - before }
})

/** The URL of another database that has the tables and no rows. */
export const migratedDatabase = create(Effect.sync(emptyTemplate))

/** The URL of a database without any tables. It is kept until the run ends. */
export const emptyDatabase = create(Effect.succeed("template0"))

/** A client of its own, of one connection unless it is given otherwise. */
export const clientOf = (url: string, given: Partial<Omit<PoolOptions, "url">> = {}) =>
  connect({
    url: Redacted.make(url),
    applicationName: "practice-data-test",
    maxConnections: 1,
    statementTimeout: "1 minute",
    ...given
  }).pipe(Effect.provide(Reactivity.layer))

/** Runs a text of SQL statements on a connection of its own, as psql does. */
export const asPsql = Effect.fnUntraced(function* (url: string, text: string) {
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => new Client(url)),
    (made) => Effect.promise(() => made.end())
  )
  yield* Effect.promise(() => client.connect().then(() => client.query(text)))
}, Effect.scoped)

/** The name and URL of a new login that has the privileges of a role of the service and no others. */
export const newLogin = Effect.fnUntraced(function* (role: Parameters<typeof loginOf>[0]) {
  const { sql, url } = yield* TestDatabase
  const name = `login_${role}_${process.pid}_${++created}`
  yield* Effect.acquireRelease(
    sql.unsafe(`create role ${name} login password 'secret' in role practice_data_${role}`),
    () => Effect.orDie(Effect.andThen(sql.unsafe(`drop owned by ${name} cascade`), sql.unsafe(`drop role ${name}`)))
  )
  return { name, url: Object.assign(new URL(url), { username: name, password: "secret" }).href }
})

/** A client of a new login. */
export const loginOf = (role: "api" | "intake" | "worker" | "writer") =>
  Effect.flatMap(newLogin(role), ({ url }) => clientOf(url))
