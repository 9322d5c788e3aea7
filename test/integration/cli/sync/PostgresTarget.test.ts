/** The sessions of a Postgres target: their end, their locks, their timeouts. */
import { assert, it as test, layer } from "@effect/vitest"
import { DateTime, Effect, Redacted } from "effect"
import * as Session from "../../../../src/cli/PostgresSession.ts"
import * as PostgresTarget from "../../../../src/cli/sync/PostgresTarget.ts"
import * as TcpProxy from "../../../support/TcpProxy.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { charge, inQuarters, opening, page, syncWith } from "./fixture.ts"

test.each([
  ["EPIPE", "Unavailable"],
  ["ECONNRESET", "Unavailable"],
  ["57P01", "Unavailable"],
  ["42501", "Refused"]
])("the failure %s is %s", (code, tag) => {
  assert.strictEqual(Session.failureOf("db")(Object.assign(new Error("It failed"), { code }))._tag, tag)
})

const requestedAt = DateTime.makeUnsafe(0)

layer(TestDatabase.layer, { excludeTestServices: true })("a Postgres target", (it) => {
  it.effect("is unavailable when its server ends the session, and has nothing of the page", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      const settings = { url: Redacted.make(url), database: "postgres://db", schema: "ended", softDelete: false }
      const target = PostgresTarget.make(settings)
      yield* syncWith(target, () => page(1, [charge("a", "1")]), { resources: ["charges"] })
      yield* sql`create function end_session() returns trigger language plpgsql
        as $$ begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$`
      yield* sql`create trigger ends before insert on ended.charges for each row execute function end_session()`
      const applied = Effect.flatMap(target.open(opening), (copy) =>
        copy.apply({ ...page(2, [charge("b", "1")]), resources: ["charges"], requestedAt })
      )
      const error = yield* Effect.flip(Effect.scoped(applied))
      assert.strictEqual(error._tag, "Unavailable", error.message)
      yield* sql`drop trigger ends on ended.charges`
      const state = yield* Effect.scoped(Effect.flatMap(target.open(opening), (copy) => copy.state))
      assert.deepStrictEqual(state, { cursor: "1", resources: ["charges"] })
      assert.deepStrictEqual(yield* sql`select id from ended.charges`, [{ id: "a" }])
    })
  )

  it.effect("may be published as a whole, which refuses changes of tables without a key", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      yield* sql`create schema published`
      yield* sql`create publication everything for tables in schema published`
      const settings = { url: Redacted.make(url), database: "postgres://db", schema: "published", softDelete: false }
      const sync = syncWith(PostgresTarget.make(settings), (at) => page(at + 1, [charge(`${at}`, "1")]))
      yield* sync
      yield* sync
      assert.lengthOf(yield* sql`select id from published.charges`, 2)
    })
  )

  it.effect("behind a pooler leaves no lock, and of two runs the one that was overtaken ends", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      const settings = { database: "postgres://db", schema: "pooled", softDelete: false }
      const pooled = PostgresTarget.make({ ...settings, url: Redacted.make(yield* TcpProxy.poolerOf(url)) })
      const direct = PostgresTarget.make({ ...settings, url: Redacted.make(url) })
      const [one, two] = yield* Effect.all([pooled.open(opening), pooled.open(opening)], { concurrency: 2 })
      const next = { ...page(1, [charge("a", "1")]), resources: ["charges"], requestedAt }
      yield* one.apply(next)
      assert.include((yield* Effect.flip(two.apply(next))).message, "Another process changed the copy")
      const locks = sql`select 1 from pg_locks where locktype = 'advisory' and database = (
        select oid from pg_database where datname = current_database())`
      assert.deepStrictEqual(yield* locks, [])
      yield* direct.open(opening)
      assert.lengthOf(yield* locks, 1)
      const { message } = (yield* inQuarters(Effect.flip(pooled.open(opening)))).found
      assert.include(message, "Another process is syncing the copy")
    })
  )

  it.effect("has timeouts of its own in place of those of the database, and loses its lock soon after its host", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      yield* sql`create schema slow`
      yield* sql`create function slow.sleeps() returns event_trigger language plpgsql as $$ begin perform pg_sleep(0.4); end $$`
      yield* sql`create event trigger sleeps on ddl_command_end execute function slow.sleeps()`
      for (const name of ["statement_timeout", "lock_timeout"]) {
        yield* sql`do $$ begin execute format('alter database %I set ${sql.literal(name)} = 300', current_database()); end $$`
      }
      const target = PostgresTarget.make({
        url: Redacted.make(url),
        database: "postgres://db",
        schema: "slow",
        softDelete: false
      })
      yield* syncWith(target, () => page(1, [charge("a", "1")]), { resources: ["charges"] })
      yield* sql`drop event trigger sleeps`
      const { run } = yield* Session.open(Redacted.make(url), "db", "test")
      assert.deepStrictEqual(yield* run("select current_setting('tcp_keepalives_idle') as idle"), [{ idle: "30" }])
    })
  )
})
