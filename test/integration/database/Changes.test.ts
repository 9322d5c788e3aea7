/** What makes a change, whoever writes and however; and what becomes of it in the feed. Decisions: changes. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Redacted, Schema } from "effect"
import { Reactivity } from "effect/reactivity"
import { CurrentOrganization } from "../../../src/api/CurrentOrganization.ts"
import { CursorExpired } from "../../../src/api/Errors.ts"
import type { Statement } from "effect/sql/Statement"
import { clinics } from "../../../src/api/records/Clinics.ts"
import { pets } from "../../../src/api/records/Pets.ts"
import { products } from "../../../src/api/records/Products.ts"
import type { Resource } from "../../../src/api/records/Resource.ts"
import { beginAnew } from "../../../src/database/Databases.ts"
import { connect } from "../../../src/database/Database.ts"
import * as Postgres from "../../../src/records/Postgres.ts"
import { settled } from "../../support/settled.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { eventually } from "../../support/eventually.ts"
import * as Pages from "../../../src/records/Pages.ts"

const Page = Schema.Struct({
  body: Schema.Array(Schema.Struct({ id: Schema.String, name: Schema.optionalKey(Schema.NullOr(Schema.String)) })),
  removed: Schema.Array(Schema.String),
  cursor: Schema.String,
  has_more: Schema.Boolean
})

const decodePage = Schema.decodeEffect(Schema.fromJsonString(Page))

let organizations = 0

/** A reader of a resource, for an organization of the test's own. */
const reader = Effect.fnUntraced(function* (resource: Resource) {
  const { sql } = yield* TestDatabase
  const repository = Postgres.make(sql, resource)
  const organization = `org_${++organizations}`
  let cursor: string | undefined = undefined

  const readPage = Effect.fnUntraced(function* (limit = 1000, owner = organization) {
    const { json, lag } = yield* repository
      .changes({ cursor, limit })
      .pipe(Effect.provideService(CurrentOrganization, CurrentOrganization.known(owner)))
    const page = yield* decodePage(Pages.toText(json))
    cursor = page.cursor
    return { ...page, lag }
  })

  /** What is told since the last time, and whether it comes in pages of one change or all at once. */
  const told = Effect.fnUntraced(function* (limit = 1000) {
    yield* settled(sql)
    const changed: Array<string> = []
    const removed: Array<string> = []
    let hasMore = true
    while (hasMore) {
      const page: Effect.Success<ReturnType<typeof readPage>> = yield* readPage(limit)
      changed.push(...page.body.map(({ id, name }) => (name == null ? id : `${id} ${name}`)))
      removed.push(...page.removed)
      hasMore = page.has_more
    }
    return { changed, removed }
  })
  return { sql, organization, readPage, told }
})

const nothing = { changed: [], removed: [] }

/** Another session, and what it has open is rolled back at the end. */
const session = Effect.gen(function* () {
  const { url } = yield* TestDatabase
  return yield* connect({
    url: Redacted.make(url),
    applicationName: "another session",
    maxConnections: 1,
    statementTimeout: "1 minute"
  }).pipe(Effect.provide(Reactivity.layer))
})

layer(TestDatabase.layer, { excludeTestServices: true })("a change", (it) => {
  it.effect("is an insert, and an update of what is shown", () =>
    Effect.gen(function* () {
      const { organization, sql, told } = yield* reader(pets)
      yield* sql`insert into pets (organization_id, id, name) values (${organization}, 'a', 'Rex'), (${organization}, 'b', 'Mo')`
      assert.deepStrictEqual(yield* told(), { changed: ["a Rex", "b Mo"], removed: [] })
      assert.deepStrictEqual(yield* told(), nothing)
      yield* sql`update pets set name = 'Max' where organization_id = ${organization} and id = 'a'`
      assert.deepStrictEqual(yield* told(), { changed: ["a Max"], removed: [] })
    })
  )

  it.effect.each(["origin", "replica"])(
    "is not an update that changes nothing, of a session in the role %s: it affects its row, and leaves its times as they were",
    (role) =>
      Effect.gen(function* () {
        const { organization, sql, told } = yield* reader(pets)
        yield* sql`
          insert into pets (organization_id, id, name, date_of_birth, updated_at)
          values (${organization}, 'a', 'Rex', '2020-01-31', '2026-01-01 00:00:00.000001Z')`
        yield* told()
        const rows = sql`
          select updated_at::text, change_position, record from pets where organization_id = ${organization}`
        const before = yield* rows
        const affected = yield* sql.withTransaction(
          Effect.andThen(
            sql`set local session_replication_role = ${sql.literal(role)}`,
            Effect.all([
              sql`
                update pets set name = name, date_of_birth = '2020-01-31', change_position = 1
                where organization_id = ${organization} returning id`,
              sql`
                insert into pets (organization_id, id, name, date_of_birth)
                values (${organization}, 'a', 'Rex', '2020-01-31')
                on conflict (organization_id, id) do update
                set name = excluded.name, date_of_birth = excluded.date_of_birth returning id`
            ])
          )
        )
        assert.deepStrictEqual(affected, [[{ id: "a" }], [{ id: "a" }]])
        assert.deepStrictEqual(yield* told(), nothing)
        assert.deepStrictEqual(yield* rows, before)
      })
  )

  it.effect("that is none adds nothing to an index", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`insert into subscriptions (organization_id, id, price, start_date) values ('org_hot', 'a', 1.50, now())`
      const updates = yield* sql.withTransaction(
        Effect.andThen(
          // The same price, which is stored in another way.
          sql`update subscriptions set id = id, price = 1.5`,
          sql`select n_tup_upd::int as all, n_tup_hot_upd::int as hot from pg_stat_xact_user_tables where relname = 'subscriptions'`
        )
      )
      assert.deepStrictEqual(updates, [{ all: 1, hot: 1 }])
    })
  )

  it.effect("is an update of what is stored and not shown", () =>
    Effect.gen(function* () {
      const { organization, sql, told } = yield* reader(clinics)
      yield* sql`insert into clinics (organization_id, id) values (${organization}, 'a')`
      yield* told()
      yield* sql`update clinics set processor_account = 'acct_1' where organization_id = ${organization}`
      assert.deepStrictEqual(yield* told(), { changed: ["a"], removed: [] })
    })
  )

  it.effect(
    "sets the time of the last change where the writer leaves it alone, and a writer that sets it is believed",
    () =>
      Effect.gen(function* () {
        for (const [resource, column] of [
          [pets, "updated_at"],
          [products, "modified_at"]
        ] as const) {
          const { organization, sql } = yield* reader(resource)
          const [named, other] = resource === pets ? ["name", "breed"] : ["product_name", "pims_id"]
          yield* sql.unsafe(
            `insert into ${resource.table} (organization_id, id, ${column}) values ($1, 'a', '2020-01-01'), ($1, 'b', '2020-01-01')`,
            [organization]
          )
          const rows = yield* sql.withTransaction(
            Effect.gen(function* () {
              yield* sql.unsafe(`update ${resource.table} set ${named} = 'x' where organization_id = $1 and id = 'a'`, [
                organization
              ])
              yield* sql.unsafe(
                `update ${resource.table} set ${other} = 'x', ${column} = '2019-01-01' where organization_id = $1 and id = 'b'`,
                [organization]
              )
              return yield* sql.unsafe<{ readonly isNow: boolean; readonly isSet: boolean }>(
                `select ${column} = now() as "isNow", ${column} = '2019-01-01' as "isSet" from ${resource.table}
               where organization_id = $1 order by id`,
                [organization]
              )
            })
          )
          assert.deepStrictEqual(rows, [
            { isNow: true, isSet: false },
            { isNow: false, isSet: true }
          ])
        }
      })
  )

  it.effect(
    "does not set the time of the last change back, when a transaction that began earlier changes the record later",
    () =>
      Effect.gen(function* () {
        const { organization, sql } = yield* reader(pets)
        const early = yield* session
        yield* sql`insert into pets (organization_id, id) values (${organization}, 'a')`
        yield* early.withTransaction(
          Effect.gen(function* () {
            yield* early`select now()`
            yield* sql`update pets set name = 'later' where organization_id = ${organization}`
            yield* early`update pets set name = 'last' where organization_id = ${organization}`
            const rows = yield* early`select from pets where organization_id = ${organization} and updated_at > now()`
            assert.strictEqual(rows.length, 1)
          })
        )
      })
  )

  it.effect("leaves the time of the last change at the end of the range, where it has come there", () =>
    Effect.gen(function* () {
      const { organization, sql, told } = yield* reader(pets)
      const last = "9999-12-31 23:59:59.999999+00"
      yield* sql`insert into pets (organization_id, id, updated_at) values (${organization}, 'a', ${last})`
      yield* told()
      const rows = yield* sql`
        update pets set name = 'Rex' where organization_id = ${organization} returning updated_at::text as at`
      assert.deepStrictEqual(rows, [{ at: last }])
      assert.deepStrictEqual(yield* told(), { changed: ["a Rex"], removed: [] })
    })
  )

  it.effect("is a delete, told by the id; not told where the record exists again", () =>
    Effect.gen(function* () {
      const { organization, sql, told } = yield* reader(pets)
      yield* sql`insert into pets (organization_id, id) select ${organization}, 'pet_' || n from generate_series(1, 3) n`
      yield* told()
      yield* sql`delete from pets where organization_id = ${organization} and id in ('pet_1', 'pet_2')`
      yield* sql`insert into pets (organization_id, id, name) values (${organization}, 'pet_2', 'again')`
      assert.deepStrictEqual(yield* told(), { changed: ["pet_2 again"], removed: ["pet_1"] })
      yield* sql`delete from pets where organization_id = ${organization} and id = 'pet_2'`
      assert.deepStrictEqual(yield* told(), { changed: [], removed: ["pet_2"] })
    })
  )

  it.effect.each([1, 2, 3, 1000])(
    "is told once where one transaction deletes a record and inserts it again, in pages of %i",
    (limit) =>
      Effect.gen(function* () {
        const { organization, sql, told } = yield* reader(pets)
        yield* sql`insert into pets (organization_id, id) select ${organization}, 'pet_' || n from generate_series(1, 4) n`
        yield* told()
        yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`delete from pets where organization_id = ${organization}`
            yield* sql`
              insert into pets (organization_id, id, name)
              select ${organization}, 'pet_' || n, 'again' from generate_series(1, 3) n`
          })
        )
        const expected = [1, 2, 3].map((n) => `pet_${n} again`)
        assert.deepStrictEqual(yield* told(limit), { changed: expected, removed: ["pet_4"] })
      })
  )

  it.effect("of an id, or of whose the record is, removes the old one and tells the new one", () =>
    Effect.gen(function* () {
      const { organization, readPage, sql, told } = yield* reader(pets)
      const other = yield* reader(pets)
      yield* sql`insert into pets (organization_id, id) values (${organization}, 'a'), (${organization}, 'b')`
      yield* told()
      yield* sql`update pets set id = 'c' where organization_id = ${organization} and id = 'a'`
      yield* sql`update pets set organization_id = ${other.organization} where organization_id = ${organization} and id = 'b'`
      yield* settled(sql)
      const { body, removed } = yield* readPage()
      assert.deepStrictEqual({ body: body.map(({ id }) => id), removed }, { body: ["c"], removed: ["a", "b"] })
      assert.deepStrictEqual(yield* other.told(), { changed: ["b"], removed: [] })
    })
  )

  it.effect("is told whatever the session's replication role", () =>
    Effect.gen(function* () {
      const { organization, sql, told } = yield* reader(pets)
      yield* sql`insert into pets (organization_id, id) values (${organization}, 'a'), (${organization}, 'b')`
      yield* told()
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`set local session_replication_role = replica`
          yield* sql`update pets set name = 'replicated' where organization_id = ${organization} and id = 'a'`
          yield* sql`delete from pets where organization_id = ${organization} and id = 'b'`
        })
      )
      assert.deepStrictEqual(yield* told(), { changed: ["a replicated"], removed: ["b"] })
    })
  )

  it.effect("is committed synchronously, lest a crash undo what a reader has seen", () =>
    Effect.gen(function* () {
      const { organization, sql } = yield* reader(pets)
      const settingAfter = (statement: Statement<unknown>) =>
        Effect.orDie(
          sql.withTransaction(
            Effect.gen(function* () {
              yield* sql`set local synchronous_commit = off`
              yield* statement
              return (yield* sql<{ setting: string }>`select current_setting('synchronous_commit') as setting`)[0]
                ?.setting
            })
          )
        )
      assert.strictEqual(yield* settingAfter(sql`select 1`), "off")
      assert.strictEqual(
        yield* settingAfter(sql`insert into pets (organization_id, id) values (${organization}, 'a')`),
        "on"
      )
      assert.strictEqual(yield* settingAfter(sql`delete from pets where organization_id = ${organization}`), "on")
    })
  )

  it.effect("that commits late is told after it, and so is what was committed while it was open; the lag says so", () =>
    Effect.gen(function* () {
      const { organization, readPage, sql, told } = yield* reader(pets)
      const late = yield* session
      yield* sql`insert into pets (organization_id, id) values (${organization}, 'a')`
      assert.deepStrictEqual(yield* told(), { changed: ["a"], removed: [] })
      const open = yield* Effect.forkChild(
        late.withTransaction(
          Effect.gen(function* () {
            yield* late`insert into pets (organization_id, id) values (${organization}, 'late')`
            yield* late`select pg_advisory_xact_lock(20261)`
          })
        )
      ).pipe((forked) =>
        sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`select pg_advisory_xact_lock(20261)`
            const fiber = yield* forked
            yield* eventually(
              "the late transaction waits",
              Effect.map(
                sql`select 1 from pg_locks where locktype = 'advisory' and not granted`,
                (rows) => rows.length > 0
              )
            )
            const another = yield* session
            yield* another`insert into pets (organization_id, id) values (${organization}, 'meanwhile')`
            const page = yield* readPage()
            assert.deepInclude(page, { body: [], removed: [], has_more: false })
            assert.isAbove(page.lag, 0)
            return fiber
          })
        )
      )
      yield* Fiber.join(open)
      assert.deepStrictEqual(yield* told(), { changed: ["late", "meanwhile"], removed: [] })
    })
  )

  it.effect("is of a new order in a copy of the database: a migration says of which tables, and once", () =>
    Effect.gen(function* () {
      const { organization, sql, told } = yield* reader(pets)
      yield* sql`insert into pets (organization_id, id) values (${organization}, 'a')`
      yield* told()
      yield* sql`update change_feeds set place = 'elsewhere' where table_name in ('pets', 'charges')`
      assert.deepStrictEqual(yield* beginAnew(sql), { begun: ["charges", "pets"], waiting: [] })
      assert.deepStrictEqual(yield* beginAnew(sql), { begun: [], waiting: [] })
      assert.deepStrictEqual(yield* Effect.flip(told()), new CursorExpired())
    })
  )

  it.effect("after TRUNCATE is of a new order: a cursor of the old one is expired, for this resource alone", () =>
    Effect.gen(function* () {
      const ofClinics = yield* reader(clinics)
      const ofProducts = yield* reader(products)
      yield* ofClinics.told()
      yield* ofProducts.told()
      yield* ofProducts.sql`truncate products`
      assert.deepStrictEqual(yield* Effect.flip(ofProducts.told()), new CursorExpired())
      assert.deepStrictEqual(yield* ofClinics.told(), nothing)
    })
  )
})
