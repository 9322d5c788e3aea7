/**
 * One Postgres for all tests: the one that TEST_DATABASE_URL names, or one of our own. It gets a migrated template, of
 * which each test file that asks for a database has a copy.
 */
import { Clock, Config, Effect, Option } from "effect"
import type { TestProject } from "vitest/node"
import { migrate } from "../../src/database/Migrations.ts"
import * as LocalPostgres from "./LocalPostgres.ts"
import { clientOf } from "./TestDatabase.ts"

declare module "vitest" {
  interface ProvidedContext {
    /** A URL of the server, whose database is the template's name. */
    readonly templateUrl: string
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

const makeTemplate = Effect.fnUntraced(function* (url: string, template: string) {
  const server = yield* clientOf(url)
  yield* server.unsafe(`create database ${template}`)
  const templateUrl = new URL(url)
  templateUrl.pathname = template
  yield* Effect.flatMap(clientOf(templateUrl.href), migrate)
  return templateUrl.href
}, Effect.scoped)

/**
 * Drops the databases of a run, at its end. It may fail: DROP DATABASE waits for every session of the server, and one
 * whose client does not read keeps it waiting.
 */
const dropAll = (url: string, template: string) =>
  Effect.gen(function* () {
    const server = yield* clientOf(url)
    const databases = yield* server<{ name: string }>`
      select datname as name from pg_database where starts_with(datname || '_', ${`${template}_`})`
    yield* Effect.forEach(databases, ({ name }) => server.unsafe(`drop database ${name} with (force)`))
  }).pipe(
    Effect.scoped,
    Effect.timeout("1 minute"),
    Effect.catchCause((cause) => Effect.logWarning(`Databases ${template}... may be left behind`, cause))
  )

const given = Effect.map(Config.option(Config.NonEmptyString("TEST_DATABASE_URL")), Option.getOrUndefined)

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
  const url = yield* given
  return url === undefined ? yield* own : { url, stop: dropAll(url, template) }
})

const provideTemplate = Effect.fnUntraced(function* (project: TestProject) {
  const template = `practice_data_test_${process.pid}_${(yield* Clock.currentTimeMillis).toString(36)}`
  const server = yield* open(template)
  project.provide("templateUrl", yield* makeTemplate(server.url, template))
  return server
})

export default (project: TestProject) =>
  Effect.runPromise(provideTemplate(project)).then(
    ({ stop }) =>
      () =>
        Effect.runPromise(stop)
  )
