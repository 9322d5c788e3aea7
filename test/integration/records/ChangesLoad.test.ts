/** The first load of a feed of changes: when it is complete; and which removals are told. Decisions: changes. */
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted, Schema } from "effect"
import { Reactivity } from "effect/reactivity"
import { CurrentOrganization } from "../../../src/api/CurrentOrganization.ts"
import { pets } from "../../../src/api/records/Pets.ts"
import { connect } from "../../../src/database/Database.ts"
import * as Pages from "../../../src/records/Pages.ts"
import * as Postgres from "../../../src/records/Postgres.ts"
import { eventually } from "../../support/eventually.ts"
import { settled } from "../../support/settled.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const decodePage = Schema.decodeEffect(
  Schema.fromJsonString(
    Schema.Struct({
      body: Schema.Array(Schema.Struct({ id: Schema.String })),
      removed: Schema.Array(Schema.String),
      cursor: Schema.String,
      has_more: Schema.Boolean
    })
  )
)

let organizations = 0

/** A reader at its beginning, of an organization of its own. */
const reader = Effect.gen(function* () {
  const { sql, url } = yield* TestDatabase
  const repository = Postgres.make(sql, pets)
  // The database is a copy, whose order begins anew.
  yield* sql`select change_begin()`
  const organization = `org_${++organizations}`
  let cursor: string | undefined
  const read = Effect.fnUntraced(function* (limit = 1000) {
    const { isComplete, json, lag } = yield* repository
      .changes({ cursor, limit })
      .pipe(Effect.provideService(CurrentOrganization, CurrentOrganization.known(organization)))
    const page = yield* decodePage(Pages.toText(json))
    cursor = page.cursor
    return { ids: page.body.map(({ id }) => id), removed: page.removed, hasMore: page.has_more, isComplete, lag }
  })
  const insert = (...ids: ReadonlyArray<string>) =>
    sql`insert into pets (organization_id, id) select ${organization}, unnest(${ids}::text[])`
  const remove = (id: string) => sql`delete from pets where organization_id = ${organization} and id like ${id}`
  /** A transaction that has an id, and stays open. */
  const open = Effect.gen(function* () {
    const another = yield* connect({
      url: Redacted.make(url),
      applicationName: "another session",
      maxConnections: 1,
      statementTimeout: "1 minute"
    })
    const session = yield* another.reserve
    const run = (text: string) => session.executeUnprepared(text, [], undefined)
    yield* run("begin")
    yield* run("select pg_current_xact_id()::text")
    return { run, commit: run("commit") }
  }).pipe(Effect.provide(Reactivity.layer))
  return { sql, organization, read, insert, remove, open }
})

layer(TestDatabase.layer, { excludeTestServices: true })("a reader of changes", (it) => {
  it.effect(
    "has a complete first load once all that was there when it began is told, where some transaction is always open",
    () =>
      Effect.gen(function* () {
        const { insert, open, read } = yield* reader
        yield* insert("a")
        const first = yield* open
        yield* insert("b")
        assert.isFalse((yield* read()).isComplete)
        yield* open
        yield* insert("c")
        yield* first.commit
        const ids: Array<string> = []
        yield* eventually(
          "a load that is complete",
          Effect.map(read(), (page) => {
            ids.push(...page.ids)
            assert.isAtLeast(page.lag, 1)
            return page.isComplete
          })
        )
        assert.deepStrictEqual(
          ids.filter((id) => id !== "a"),
          ["b"]
        )
        const later = yield* read()
        assert.deepStrictEqual([later.ids, later.isComplete, later.lag > 0], [[], true, true])
      }).pipe(Effect.scoped)
  )

  it.effect("has no complete first load before its last page, and one for good where there are more changes then", () =>
    Effect.gen(function* () {
      const { insert, read, sql } = yield* reader
      yield* insert("a", "b", "c")
      yield* settled(sql)
      const pages = [yield* read(1), yield* read(1), yield* read(1)]
      assert.deepStrictEqual(
        pages.map(({ isComplete }) => isComplete),
        [false, false, true]
      )
      yield* insert("d", "e")
      yield* settled(sql)
      const { hasMore, isComplete } = yield* read(1)
      assert.deepStrictEqual([hasMore, isComplete], [true, true])
    })
  )

  it.effect("has no removal from before it began, and every one from then on", () =>
    Effect.gen(function* () {
      const { insert, read, remove, sql } = yield* reader
      yield* insert("a", ...Array.from({ length: 500 }, (_, n) => `old_${n}`))
      yield* remove("old%")
      yield* insert("b", "c", "d")
      yield* settled(sql)
      const first = yield* read(2)
      assert.deepStrictEqual([first.ids, first.removed, first.hasMore], [["a", "b"], [], true])
      yield* remove("a")
      yield* remove("d")
      yield* settled(sql)
      const second = yield* read(2)
      assert.deepStrictEqual([second.ids, second.removed, second.hasMore], [["c"], ["a"], true])
      const third = yield* read(2)
      assert.deepStrictEqual([third.ids, third.removed, third.hasMore, third.isComplete], [[], ["d"], false, true])
      yield* remove("c")
      yield* settled(sql)
      assert.deepStrictEqual((yield* read()).removed, ["c"])
    })
  )

  it.effect("has no removal of a record that exists, also where what it was written by since is held back", () =>
    Effect.gen(function* () {
      const { insert, open, organization, read, remove, sql } = yield* reader
      yield* insert("a", "b")
      yield* settled(sql)
      assert.deepStrictEqual((yield* read()).ids, ["a", "b"])
      const older = yield* open
      yield* remove("a")
      yield* remove("b")
      yield* older.run(`insert into pets (organization_id, id) values ('${organization}', 'a')`)
      yield* older.commit
      yield* settled(sql)
      yield* open
      yield* sql`update pets set name = 'held back' where organization_id = ${organization} and id = 'a'`
      assert.deepStrictEqual((yield* read()).removed, ["b"])
    }).pipe(Effect.scoped)
  )
})
