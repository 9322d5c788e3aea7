/** The connections of a Postgres target: their end, their locks, their timeouts; and the failures of a target that are waited out. */
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, it as test, layer } from "@effect/vitest"
import { DateTime, Effect, Result } from "effect"
import { postgres, postgresFailure, sqliteFailure } from "../../../../src/cli/sync/Targets.ts"
import { connectionOptions } from "../../../../src/database/ConnectionUrl.ts"
import { temporaryFolder } from "../../../support/Process.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { charge, opening, page, syncWith } from "./fixture.ts"

test.each([
  ["EPIPE", "Unavailable"],
  ["ECONNRESET", "Unavailable"],
  ["57P01", "Unavailable"],
  ["42501", "Refused"]
])("the failure %s is %s", (code, tag) => {
  assert.strictEqual(postgresFailure("db")(Object.assign(new Error("It failed"), { code }))._tag, tag)
})

test.effect("a full disk is waited out", () =>
  Effect.gen(function* () {
    const database = new DatabaseSync(join(yield* temporaryFolder, "copy.db"))
    database.exec("create table copy (text); pragma max_page_count = 4")
    const error = yield* Effect.try({
      try: () => database.exec(`insert into copy values ('${"x".repeat(100_000)}')`),
      catch: sqliteFailure("a copy")
    }).pipe(Effect.flip)
    database.close()
    assert.strictEqual(error._tag, "Unavailable", error.message)
    assert.include(error.message, "Cannot use a copy: the disk is full. Free some space")
  })
)

const targetAt = (url: string, schema: string) => postgres(Result.getOrThrow(connectionOptions(url)), schema, false)

const requestedAt = DateTime.makeUnsafe(0)

layer(TestDatabase.layer, { excludeTestServices: true })("a Postgres target", (it) => {
  it.effect("is unavailable when its server ends the session, and has nothing of the page", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      const target = targetAt(url, "ended")
      yield* syncWith(target, () => page(1, [charge("a", "1")]), { resources: ["charges"] })
      yield* sql`create function end_session() returns trigger language plpgsql
        as $$ begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$`
      yield* sql`create trigger ends before insert on ended.charges for each row execute function end_session()`
      const applied = Effect.flatMap(target.open(opening), (copy) =>
        copy.apply({ ...page(2, [charge("b", "1")]), requestedAt })
      )
      const error = yield* Effect.flip(Effect.scoped(applied))
      assert.strictEqual(error._tag, "Unavailable", error.message)
      yield* sql`drop trigger ends on ended.charges`
      const cursor = Effect.scoped(Effect.flatMap(target.open(opening), (copy) => copy.cursor))
      assert.strictEqual(yield* cursor, "1")
      assert.deepStrictEqual(yield* sql`select id from ended.charges`, [{ id: "a" }])
    })
  )

  it.effect("leaves no lock to its session, and of two runs the one that was overtaken ends", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      const pooled = targetAt(url, "pooled")
      const [one, two] = yield* Effect.all([pooled.open(opening), pooled.open(opening)], { concurrency: 2 })
      const next = { ...page(1, [charge("a", "1")]), requestedAt }
      yield* one.apply(next)
      assert.include((yield* Effect.flip(two.apply(next))).message, "Another process changed the copy")
      const locks = sql`select 1 from pg_locks where locktype = 'advisory' and database = (
        select oid from pg_database where datname = current_database())`
      assert.deepStrictEqual(yield* locks, [])
    })
  )

  it.effect("has timeouts of its own in place of those of the database", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      yield* sql`create schema slow`
      yield* sql`create function slow.sleeps() returns event_trigger language plpgsql as $$ begin perform pg_sleep(0.4); end $$`
      yield* sql`create event trigger sleeps on ddl_command_end execute function slow.sleeps()`
      for (const name of ["statement_timeout", "lock_timeout"]) {
        yield* sql`do $$ begin execute format('alter database %I set ${sql.literal(name)} = 300', current_database()); end $$`
      }
      yield* syncWith(targetAt(url, "slow"), () => page(1, [charge("a", "1")]), { resources: ["charges"] })
      yield* sql`drop event trigger sleeps`
    })
  )
})
