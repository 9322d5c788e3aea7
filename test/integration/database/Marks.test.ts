/** The marks of the runs of a server, by which a cursor of an earlier one is known to go on. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestDatabase } from "../../support/TestDatabase.ts"

interface Mark {
  readonly token: string
  readonly timeline: number
  readonly isDurable: boolean
}

const marks = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  return yield* sql<Mark>`
    select token, timeline, durable_until is not null as "isDurable" from change_marks order by timeline desc`
})

/** Has the newest mark be of another run, which was seen last so long ago. */
const restarted = (ago: string) =>
  Effect.gen(function* () {
    const { sql } = yield* TestDatabase
    yield* sql`select change_begin(), change_mark()`
    yield* sql`
      update change_marks set started_at = '2026-01-01', durable_until = null,
        marked_at = pg_postmaster_start_time() - ${ago}::interval
      where timeline > 0`
    yield* sql`select change_mark()`
  })

layer(TestDatabase.layer, { excludeTestServices: true })("the marks", (it) => {
  it.effect("have one of each run, and keep those of the runs before", () =>
    Effect.gen(function* () {
      yield* restarted("1 s")
      const [before] = yield* marks
      yield* restarted("1 s")
      const after = yield* marks
      assert.lengthOf(after, 3)
      assert.notStrictEqual(after[0]?.token, before?.token)
      assert.include(
        after.map(({ token }) => token),
        before?.token
      )
    })
  )

  it.effect("do not say where a run ended that was last seen long before: another may have been between", () =>
    Effect.gen(function* () {
      const [before] = yield* marks
      yield* restarted("6 min")
      const after = (yield* marks).find(({ token }) => token === before?.token)
      assert.isFalse(after?.isDurable)
    })
  )

  it.effect("say of one by a release that had one for each timeline that its readers have seen what is here", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`update change_marks set started_at = null, durable_until = null where timeline > 0`
      const [before] = yield* marks
      yield* sql`select change_mark()`
      const after = (yield* marks).find(({ token }) => token === before?.token)
      assert.isTrue(after?.isDurable)
    })
  )

  it.effect("are bounded", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql.unsafe(`do $$ begin
        for n in 1..1100 loop
          update change_marks set started_at = '2026-01-01' where timeline > 0;
          perform change_mark();
        end loop;
      end $$`)
      assert.lengthOf(yield* marks, 1001)
    })
  )
})
