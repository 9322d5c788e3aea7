/** The marks by which a cursor goes on in another run of a server. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { CursorExpired } from "../../../src/api/Errors.ts"
import { settled } from "../../support/changes.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { reader } from "./reader.ts"

const marks = Effect.flatMap(
  TestDatabase,
  ({ sql }) => sql<{ token: string; isDurable: boolean }>`
    select token, durable_until is not null as "isDurable" from change_marks order by timeline desc`
)

layer(TestDatabase.layer, { excludeTestServices: true })("the marks", (it) => {
  it.effect("leave the end of a run open that was last seen long ago: another may have followed", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`select change_begin(), change_mark()`
      const [before] = yield* marks
      yield* sql`
        update change_marks set durable_until = null, started_at = '2026-01-01',
          marked_at = pg_postmaster_start_time() - interval '6 min'
        where timeline > 0`
      yield* sql`select change_mark()`
      const after = (yield* marks).find(({ token }) => token === before?.token)
      assert.isFalse(after?.isDurable)
    })
  )

  it.effect("of 31 days ago expire earlier cursors, then the removals that only those need", () =>
    Effect.gen(function* () {
      const [early, late] = [yield* reader(), yield* reader()]
      const { sql } = late
      yield* early.insert("a")
      yield* late.insert("a")
      yield* sql`delete from pets`
      const removals = sql`select organization_id from removals`
      const mark = Effect.andThen(sql`update change_marks set marked_at = '2026-01-01'`, sql`select change_mark()`)
      const forget = sql`select change_forget()`
      yield* sql`delete from change_times`
      yield* mark
      yield* settled(sql)
      yield* mark
      yield* forget
      assert.deepStrictEqual(yield* late.told, { changed: [], removed: ["a"] })
      yield* sql`update change_times set at = at - interval '32 days'`
      yield* forget
      assert.lengthOf(yield* removals, 2, "cursors have expired first")
      yield* forget
      assert.isEmpty(yield* removals)
      assert.deepStrictEqual(yield* late.told, { changed: [], removed: [] })
      assert.deepStrictEqual(yield* Effect.flip(early.told), new CursorExpired())
    })
  )

  it.effect("have one for each of the last thousand runs, of which readers use the last", () =>
    Effect.gen(function* () {
      const { insert, sql } = yield* reader()
      const tokens = Effect.map(marks, (found) => found.map(({ token }) => token))
      const restarted = Effect.andThen(
        sql`update change_marks set started_at = '2026-01-01' where timeline > 0`,
        sql`select change_mark()`
      )
      const before = yield* tokens
      yield* Effect.replicateEffect(restarted, 2)
      const after = yield* tokens
      assert.strictEqual(new Set(after).size, before.length + 2)
      assert.includeMembers(after, before)
      yield* insert("a")
      yield* sql`
        insert into change_marks (timeline, started_at, proven)
        select (select min(timeline) from change_marks) - n, now(), 0 from generate_series(1, 1100) n`
      yield* restarted
      assert.lengthOf(yield* tokens, 1001)
    })
  )
})
