/**
 * One Postgres for all tests: the one that TEST_DATABASE_URL names, or one of our own. It gets a migrated template, of
 * which each test file that asks for a database has a copy.
 */
import { Config, Effect, Option, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import type { TestProject } from "vitest/node"
import { connect } from "../../src/database/Database.ts"
import { migrate } from "../../src/database/Migrations.ts"
import * as LocalPostgres from "./LocalPostgres.ts"

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
  max_connections: 300
}

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

const given = Effect.map(Config.option(Config.NonEmptyString("TEST_DATABASE_URL")), Option.getOrUndefined)

const provideTemplate = Effect.fnUntraced(function* (project: TestProject) {
  const url = yield* given
  const server = url === undefined ? yield* LocalPostgres.open({ settings }) : { url, stop: Effect.void }
  project.provide("templateUrl", yield* makeTemplate(server.url, `practice_data_test_${process.pid}`))
  return server
})

export default (project: TestProject) =>
  Effect.runPromise(provideTemplate(project)).then(
    ({ stop }) =>
      () =>
        Effect.runPromise(stop)
  )
