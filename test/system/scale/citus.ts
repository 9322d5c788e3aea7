/** A coordinator of Citus with two other servers, where this machine has a Postgres with Citus. */
import { Effect, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { connect, type Database } from "../../../src/database/Database.ts"
import * as Tools from "../../support/Tools.ts"
import * as LocalPostgres from "../../support/LocalPostgres.ts"

// Where PostgreSQL's own packages, and Debian's, have the libraries of a version.
const binaries = Tools.folderWith("lib/citus.so")

/** Whether there is a Citus here. */
export const isInstalled = binaries !== undefined

/** The name of a test that needs Citus: with why it is skipped, where it is. */
export const named = (name: string) => (isInstalled ? name : `${name} (skipped: there is no Citus here)`)

const settings = {
  shared_preload_libraries: "citus",
  // For shards that are moved while they are written.
  wal_level: "logical",
  max_prepared_transactions: 100,
  // Without TLS here; the default requires it.
  "citus.node_conninfo": "sslmode=disable"
}

const database = "practice"

const urlOf = ({ url }: LocalPostgres.LocalPostgres, name = database) =>
  Object.assign(new URL(url), { pathname: name }).href

/** A client of a URL. */
export const open = (url: string) =>
  connect({
    url: Redacted.make(url),
    applicationName: "practice-data-test",
    maxConnections: 2,
    statementTimeout: "1 minute"
  }).pipe(Effect.provide(Reactivity.layer))

/** The password of every login. Servers let each other in by it, too. */
const password = "postgres"

const letIn = (sql: Database, login: string) =>
  sql`insert into pg_dist_authinfo (nodeid, rolename, authinfo) values (0, ${login}::text, ${`password=${password}`}::text)`

/** A server that has shards. */
export interface Server extends LocalPostgres.LocalPostgres {
  readonly port: number
}

/** Starts them. They are gone when the scope closes. */
export const start = Effect.gen(function* () {
  const make = Effect.map(
    LocalPostgres.make({ settings, ...(binaries === undefined ? {} : { binaries }) }),
    (postgres): Server => ({ ...postgres, port: Number(new URL(postgres.url).port) })
  )
  const [coordinator, ...workers] = yield* Effect.all([make, make, make], { concurrency: "unbounded" })
  for (const server of [coordinator, ...workers]) {
    yield* Effect.scoped(Effect.flatMap(open(server.url), (sql) => sql.unsafe(`create database ${database}`)))
    const sql = yield* open(urlOf(server))
    yield* sql`create extension citus`
    yield* letIn(sql, "postgres")
  }
  const url = urlOf(coordinator)
  const sql = yield* open(url)
  yield* sql`select citus_set_coordinator_host('127.0.0.1', ${coordinator.port}::int)`
  for (const { port } of workers) yield* sql`select citus_add_node('127.0.0.1', ${port}::int)`
  return {
    /** Its URL, as a superuser. */
    url,
    sql,
    workers,
    /** The URL for a new login that is a member of a role. */
    login: Effect.fnUntraced(function* (role: string) {
      const name = `login_of_${role}`
      yield* sql.unsafe(`create role ${name} login password '${password}' in role ${role}`)
      for (const server of [coordinator, ...workers]) {
        yield* Effect.scoped(Effect.flatMap(open(urlOf(server)), (each) => letIn(each, name)))
      }
      return Object.assign(new URL(url), { username: name, password }).href
    }),
    /** The server that has the rows of an organization. */
    serverOf: Effect.fnUntraced(function* (organization: string) {
      const [found] = yield* sql<{ port: number; shard: number }>`
        select nodeport::int as port, shardid::int as shard from citus_shards
        where shardid = get_shard_id_for_distribution_column('charges', ${organization}::text)`
      return found ?? { port: 0, shard: 0 }
    })
  }
})
