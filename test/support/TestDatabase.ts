/** A database of a test file's own, on the Postgres that all tests share. */
import { Context, Effect, Layer, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { inject } from "vitest"
import { connect, type Database, layerShared } from "../../src/Database/Database.ts"

let created = 0

/** The URL and a client of a database that has the tables and no rows. It is dropped when the scope closes. */
export class TestDatabase extends Context.Service<TestDatabase, { readonly url: string; readonly sql: Database }>()(
  "practice-data/test/support/TestDatabase"
) {
  static readonly layer = Layer.effect(
    TestDatabase,
    Effect.gen(function* () {
      const template = new URL(inject("templateUrl"))
      const name = `${template.pathname.slice(1)}_${process.pid}_${++created}`
      const server = new URL(template)
      server.pathname = "postgres"
      const url = new URL(template)
      url.pathname = name
      const options = { applicationName: "practice-data-test", statementTimeout: "1 minute" } as const
      const admin = yield* connect({ ...options, url: Redacted.make(server.href), maxConnections: 1 })
      yield* Effect.acquireRelease(admin.unsafe(`create database ${name} template ${template.pathname.slice(1)}`), () =>
        Effect.orDie(admin.unsafe(`drop database ${name} with (force)`))
      )
      const sql = yield* connect({ ...options, url: Redacted.make(url.href), maxConnections: 4 })
      return { url: url.href, sql }
    })
  ).pipe(Layer.provide(Reactivity.layer))

  /** Both databases of the service: this one. */
  static readonly layerDatabases = Layer.unwrap(Effect.map(TestDatabase, ({ sql }) => layerShared(sql))).pipe(
    Layer.provideMerge(TestDatabase.layer)
  )
}
