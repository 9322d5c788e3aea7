/**
 * One Postgres for all tests: the one that TEST_DATABASE_URL names, or one of our own; or the servers of a Citus, of which
 * TEST_CITUS_URL names a database that has them. It gets a migrated template, of which each test file that asks for a
 * database has a copy.
 */
import { Clock, Config, Effect, Option } from "effect"
import type { TestProject } from "vitest/node"
import { resources } from "../../src/api/records/index.ts"
import type { Database } from "../../src/database/Database.ts"
import { distribute } from "../../src/database/Distribution.ts"
import { migrate } from "../../src/database/Migrations.ts"
import * as LocalPostgres from "./LocalPostgres.ts"
import { clientOf } from "./TestDatabase.ts"

declare module "vitest" {
  interface ProvidedContext {
    /** A URL of the server, whose database is the template's name. */
    readonly templateUrl: string
    /** The URLs of all servers, the first of which has the template's tables. */
    readonly servers: ReadonlyArray<string>
  }
}

// What a crash loses is not missed, and nobody looks at the tables in the background while plans are tested.
const settings = {
  fsync: "off",
  full_page_writes: "off",
  wal_level: "minimal",
  max_wal_senders: 0,
  autovacuum: "off",
  max_connections: 300,
  max_prepared_transactions: 50
}

const inDatabase = (server: string, name: string) => Object.assign(new URL(server), { pathname: name }).href

/** Distributes a database over its servers. */
const distributed = Effect.fnUntraced(function* (sql: Database, servers: ReadonlyArray<string>) {
  const [first, ...others] = servers.map((server) => new URL(server))
  yield* sql`select citus_set_coordinator_host(${first?.hostname}, ${first?.port}::integer)`
  for (const { hostname, port } of others) yield* sql`select citus_add_node(${hostname}, ${port}::integer)`
  yield* migrate(sql)
  const tables = resources.map(({ table }) => table)
  yield* distribute(sql, tables)
})

const makeTemplate = Effect.fnUntraced(function* (servers: ReadonlyArray<string>, template: string) {
  const isDistributed = servers.length > 1
  for (const server of servers) {
    yield* Effect.flatMap(clientOf(server), (sql) => sql.unsafe(`create database ${template}`))
    const sql = yield* clientOf(inDatabase(server, template))
    if (isDistributed) yield* sql.unsafe("create extension citus")
  }
  const sql = yield* clientOf(inDatabase(servers[0] ?? "", template))
  yield* isDistributed ? distributed(sql, servers) : migrate(sql)
}, Effect.scoped)

/**
 * Drops the databases of a run, at its end. It may fail: DROP DATABASE waits for every session of the server, and one
 * whose client does not read keeps it waiting.
 */
const dropAll = (url: string, template: string) =>
  Effect.gen(function* () {
    const server = yield* clientOf(inDatabase(url, "postgres"))
    const databases = yield* server<{ name: string }>`
      select datname as name from pg_database where starts_with(datname || '_', ${`${template}_`})`
    yield* Effect.forEach(databases, ({ name }) => server.unsafe(`drop database ${name} with (force)`))
  }).pipe(
    Effect.scoped,
    Effect.timeout("1 minute"),
    Effect.catchCause((cause) => Effect.logWarning(`Databases ${template}... may be left behind`, cause))
  )

const given = (name: string) => Effect.map(Config.option(Config.NonEmptyString(name)), Option.getOrUndefined)

/** The servers of the Citus that has a database. */
const citus = Effect.fnUntraced(function* (url: string) {
  const sql = yield* clientOf(url)
  const workers = yield* sql<{ host: string; port: number }>`
    select nodename as host, nodeport as port from pg_dist_node where groupid <> 0 order by nodeid`
  const at = ({ host, port }: (typeof workers)[number]) => Object.assign(new URL(url), { hostname: host, port }).href
  return [url, ...workers.map(at)]
}, Effect.scoped)

/** Hashes the password once and not 4,096 times, which is half of what a connection costs. Postgres 15 cannot. */
const cheapPassword = `
  do $$ begin
    if current_setting('server_version_num')::int < 160000 then return; end if;
    set scram_iterations = 1;
    alter role postgres password 'postgres';
  end $$`

/** A server of our own takes its databases with it. */
const own = Effect.gen(function* () {
  const server = yield* LocalPostgres.open({ settings, inMemory: true })
  const sql = yield* clientOf(server.url)
  yield* sql.unsafe(cheapPassword)
  return server
}).pipe(Effect.scoped)

const open = Effect.fnUntraced(function* (template: string) {
  const [several, one] = [yield* given("TEST_CITUS_URL"), yield* given("TEST_DATABASE_URL")]
  const servers = several === undefined ? (one === undefined ? [] : [one]) : yield* citus(several)
  if (servers.length === 0) return yield* Effect.map(own, ({ stop, url }) => ({ servers: [url], stop }))
  return { servers, stop: Effect.forEach(servers, (url) => dropAll(url, template), { discard: true }) }
})

const provideTemplate = Effect.fnUntraced(function* (project: TestProject) {
  const template = `practice_data_test_${process.pid}_${(yield* Clock.currentTimeMillis).toString(36)}`
  const { servers, stop } = yield* open(template)
  yield* makeTemplate(servers, template)
  const urls = servers.map((server) => inDatabase(server, "postgres"))
  project.provide("servers", urls)
  project.provide("templateUrl", inDatabase(urls[0] ?? "", template))
  return { stop }
})

const stopping =
  ({ stop }: { readonly stop: Effect.Effect<void> }) =>
  () =>
    Effect.runPromise(stop)

export default (project: TestProject) => Effect.runPromise(provideTemplate(project)).then(stopping)
