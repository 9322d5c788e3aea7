/** A Postgres target that goes away in the middle of a transaction. */
import { assert, it as test, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as PostgresTarget from "../../../../src/cli/sync/PostgresTarget.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { charge, origin, page, syncWith, tableOf } from "./fixture.ts"

const opening = { origin, allowNewUrl: false, tables: [tableOf("charges")] }

test.each([
  ["EPIPE", "Unavailable"],
  ["ECONNRESET", "Unavailable"],
  ["57P01", "Unavailable"],
  ["42501", "Refused"]
])("the failure %s is %s", (code, tag) => {
  assert.strictEqual(PostgresTarget.failureOf("db")(Object.assign(new Error("It failed"), { code }))._tag, tag)
})

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
        copy.apply({ ...page(2, [charge("b", "1")]), resources: ["charges"] })
      )
      const error = yield* Effect.flip(Effect.scoped(applied))
      assert.strictEqual(error._tag, "Unavailable", error.message)
      yield* sql`drop trigger ends on ended.charges`
      const state = yield* Effect.scoped(Effect.flatMap(target.open(opening), (copy) => copy.state))
      assert.deepStrictEqual(state, { cursor: "1", resources: ["charges"] })
      assert.deepStrictEqual(yield* sql`select id from ended.charges`, [{ id: "a" }])
    })
  )
})
