/**
 * A start on a Postgres that lacks migrations: it says so once, and goes on by itself when they are there.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { connect } from "../../../src/database/Database.ts"
import { migrate } from "../../../src/database/Migrations.ts"
import { emptyDatabase, TestDatabase } from "../../support/TestDatabase.ts"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import * as Process from "../../support/Process.ts"

const clientOf = (url: string) =>
  connect({
    url: Redacted.make(url),
    applicationName: "practice-data-test",
    maxConnections: 1,
    statementTimeout: "1 minute"
  }).pipe(Effect.provide(Reactivity.layer))

layer(TestDatabase.layerDatabases, { excludeTestServices: true })("A program on a Postgres", (it) => {
  it.effect("that is not migrated says so once and is not ready, until it is migrated", () =>
    Effect.gen(function* () {
      const url = yield* emptyDatabase
      const { address, output } = yield* Process.start({ DATABASE_URL: url, DELETION_DELAY: "0 seconds" })
      const client = yield* Client.make(yield* address)
      const isReady = Effect.map(
        client.call({ method: "GET", path: "/api/v1/health/ready" }),
        ({ status }) => status === 200
      )
      const lines = (text: string) =>
        output()
          .split("\n")
          .filter((line) => line.includes(text)).length
      yield* eventually(
        "it says so",
        Effect.sync(() => lines("npm run cli -- migrate") > 0)
      )
      yield* Effect.sleep("2 seconds")
      assert.isFalse(yield* isReady)
      assert.strictEqual(lines("The database of DATABASE_URL is not migrated. Run: npm run cli -- migrate"), 1)
      assert.strictEqual(lines("WARN") - lines("runs as root"), 1, output())

      const sql = yield* clientOf(url)
      yield* migrate(sql)
      yield* eventually("it is ready", isReady)
      yield* eventually(
        "it says so too",
        Effect.sync(() => lines("The database of DATABASE_URL is migrated") === 1)
      )
      yield* sql`
        insert into deletion_tasks (organization_id, id, idempotency_key, fingerprint, payload, invoices_count,
          invoice_lines_count, received_at, scheduled_for, due_at)
        values ('org_a', gen_random_uuid(), 'key', '\\x00', '{"invoices":[],"invoice_lines":[]}', 0, 0, now(), now(), now())`
      yield* eventually(
        "the worker runs tasks",
        Effect.map(sql`select from deletion_tasks where state = 'completed'`, (rows) => rows.length === 1)
      )
    }).pipe(Effect.scoped)
  )
})
