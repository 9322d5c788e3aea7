/** The first load of a feed: its completion, and the removals that it returns. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { pets } from "../../../src/api/records/Pets.ts"
import * as Postgres from "../../../src/records/Postgres.ts"
import { pageOf } from "../../support/Follower.ts"
import { settled } from "../../support/settled.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"
import { asKnown } from "./stores.ts"

let organizations = 0

/** A reader without a cursor, of an organization of its own. */
const reader = Effect.gen(function* () {
  const { sql, url } = yield* TestDatabase
  const repository = Postgres.make(sql, pets)
  // The database is a copy, whose order restarts.
  yield* sql`select change_begin()`
  const organization = `org_${++organizations}`
  let cursor: string | undefined
  const read = Effect.fnUntraced(function* (limit = 1000) {
    const { isComplete, json, lag } = yield* asKnown(organization)(repository.changes({ cursor, limit }))
    const page = yield* pageOf(json)
    cursor = page.cursor
    return { ids: page.body.map(({ id }) => id), removed: page.removed, hasMore: page.has_more, isComplete, lag }
  })
  const insert = (...ids: ReadonlyArray<string>) =>
    sql`insert into pets (organization_id, id) select ${organization}, unnest(${ids}::text[])`
  const remove = (id: string) => sql`delete from pets where organization_id = ${organization} and id like ${id}`
  /** A transaction that has an id, and stays open. */
  const open = Effect.gen(function* () {
    const session = yield* (yield* clientOf(url)).reserve
    const run = (text: string) => session.executeUnprepared(text, [], undefined)
    yield* run("begin")
    yield* run("select pg_current_xact_id()::text")
    return { run, commit: run("commit") }
  })
  return { organization, read, insert, remove, open, sql, settle: settled(sql) }
})

layer(TestDatabase.layer, { excludeTestServices: true })("a first load", (it) => {
  it.effect("is complete once it has what existed at its beginning, even if some transaction is always open", () =>
    Effect.gen(function* () {
      const { insert, open, organization, read } = yield* reader
      yield* insert("a")
      const older = yield* open
      yield* older.run(`insert into pets (organization_id, id) values ('${organization}', 'old')`)
      yield* insert("b")
      yield* open
      yield* insert("c")
      assert.deepInclude(yield* read(), { ids: ["a", "b", "c"], isComplete: true, lag: 0 })
      yield* older.commit
      assert.deepInclude(yield* read(), { ids: ["old"], isComplete: true, lag: 0 })
      assert.deepInclude(yield* read(), { ids: [], isComplete: true, lag: 0 })
    })
  )

  it.effect("has no removal from before its beginning, and every one since", () =>
    Effect.gen(function* () {
      const { insert, read, remove, settle } = yield* reader
      yield* insert("a", ...Array.from({ length: 500 }, (_, n) => `old_${n}`))
      yield* remove("old%")
      yield* insert("b", "c", "d")
      yield* settle
      assert.deepInclude(yield* read(2), { ids: ["a", "b"], removed: [], hasMore: true })
      yield* remove("a")
      yield* remove("d")
      yield* settle
      assert.deepInclude(yield* read(2), { ids: ["c"], removed: ["a"], hasMore: true })
      assert.deepInclude(yield* read(2), { ids: [], removed: ["d"], hasMore: false, isComplete: true })
      yield* remove("c")
      yield* settle
      assert.deepStrictEqual((yield* read()).removed, ["c"])
    })
  )
})
