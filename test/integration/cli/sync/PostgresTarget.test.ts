/** A Postgres target that goes away in the middle of a transaction. */
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as PostgresTarget from "../../../../src/cli/sync/PostgresTarget.ts"
import { TestDatabase } from "../../../support/TestDatabase.ts"
import { beginning, charge, charges, opening, page } from "./fixture.ts"

layer(TestDatabase.layer, { excludeTestServices: true })("a Postgres target", (it) => {
  it.effect.each([
    ["ends the session", "perform pg_terminate_backend(pg_backend_pid()); return new;"],
    ["is stopping", "raise exception using errcode = '57P01';"]
  ] as const)("is unavailable when its server %s, and has nothing of the page", ([, statements]) =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      const settings = { url: Redacted.make(url), database: "postgres://db", schema: "ended", concurrency: 1 }
      const target = PostgresTarget.make(settings)
      const state = yield* Effect.scoped(
        Effect.flatMap(target.open(opening()), (copy) => copy.apply(charges, beginning, page([charge("a", "1")])))
      )
      yield* sql.unsafe(
        `create or replace function end_session() returns trigger language plpgsql as $$ begin ${statements} end $$`
      )
      yield* sql`create trigger ends before insert on ended.charges for each row execute function end_session()`
      const error = yield* Effect.flip(
        Effect.scoped(
          Effect.flatMap(target.open(opening()), (copy) => copy.apply(charges, state, page([charge("b", "1")])))
        )
      )
      assert.strictEqual(error._tag, "Unavailable", error.message)
      yield* sql`drop trigger ends on ended.charges`
      const kept = yield* Effect.scoped(Effect.flatMap(target.open(opening()), (copy) => copy.stateOf(charges)))
      assert.deepStrictEqual(kept, state)
      assert.deepStrictEqual(yield* sql`select id from ended.charges`, [{ id: "a" }])
      yield* sql`drop schema ended cascade`
    })
  )
})
