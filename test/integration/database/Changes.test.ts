/** Every write is a change in the feed, whoever writes and however. */
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { resources } from "../../../src/api/records/index.ts"
import { ChangeClock } from "../../../src/changes/ChangeClock.ts"
import { decodeTexts } from "../../../src/database/Columns.ts"
import { type Database, TaskDatabase } from "../../../src/database/Database.ts"
import { inLongTransaction } from "../../../src/database/SqlFailure.ts"
import { keepingTimes } from "../../../src/records/Rows.ts"
import { addFacts, addTasks } from "../../support/deletions/invoiceFixture.ts"
import { elsewhere, locksAwaited, openTransaction } from "../../support/deletions/sessions.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"
import { reader } from "./reader.ts"

/** The tables whose order has to restart. */
const unsettled = (sql: Database) =>
  decodeTexts(sql`select table_name as text from change_feed_states() where not is_settled order by 1`)

/** Restarts the order where that is due, as the clock of the changes does. Returns the tables that wait. */
const begunAnew = (sql: Database) =>
  Effect.andThen(Effect.ignore(inLongTransaction(sql, sql`select change_begin()`)), unsettled(sql))

layer(TestDatabase.layer, { excludeTestServices: true })("a change", (it) => {
  it.effect.each(resources.map(({ orderedBy, table }) => [table, orderedBy] as const))(
    "of %s: a write has a new position, and its time in %s; a DELETE leaves a removal",
    ([table, time]) =>
      Effect.gen(function* () {
        const { sql } = yield* TestDatabase
        const isStamped = time !== "created_at"
        const given = { created_at: "2020-01-01", [time]: "2020-01-01" }
        const insert = (id: string) => sql`
          insert into ${sql(table)} ${sql.insert({ organization_id: id, id, ...given, record: "mine", change_position: 1 })}`
        yield* insert("a")
        const [column] = yield* sql<{ name: string }>`
          select attname as name from pg_attribute
          where attrelid = ${table}::regclass and attnum > 0 and not attisdropped
            and atttypid = 'text'::regtype and attname not in ('organization_id', 'id', 'time_zone', 'record')`
        const rows = yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql.unsafe(
              `update ${table} set ${column?.name} = 'changed', record = 'mine', change_position = 1, ${time} = '2019-01-01'`
            )
            yield* insert("b")
            yield* sql.unsafe(
              `copy ${table} (organization_id, id, ${Object.keys(given).join()})
               from program 'echo c,c,${Object.values(given).join()}' csv`
            )
            return yield* sql.unsafe(
              `select change_position = change_position() as is_new, ${time} = now() as is_now,
                 created_at::text < '2020-01-02' as is_kept, starts_with(record, '{"id":"' || id) as is_rendered
               from ${table} where id in ('a', 'b', 'c') order by id`
            )
          })
        )
        const expected = { is_new: true, is_now: isStamped, is_kept: true, is_rendered: true }
        assert.deepStrictEqual(rows, [expected, expected, expected])
        yield* sql`delete from ${sql(table)} where id in ('a', 'b', 'c')`
        assert.lengthOf(yield* sql`select from removals where table_name = ${table} and id in ('a', 'b', 'c')`, 3)
      })
  )

  it.effect("has the writer's time in a session that keeps times, and no UPDATE sets it back", () =>
    Effect.gen(function* () {
      const { organization, sql } = yield* reader()
      const written = (statement: string) =>
        keepingTimes(sql, decodeTexts(sql.unsafe(`${statement} returning to_char(updated_at, 'YYYY') as text`)))
      const update = (set: string) => written(`update pets set ${set} where organization_id = '${organization}'`)
      const row = `('${organization}', 'a', '2020-01-01')`
      const years = yield* Effect.all([
        written(`insert into pets (organization_id, id, updated_at) values ${row}`),
        update("updated_at = '2021-01-01'"),
        update("name = 'Rex'"),
        update("name = 'Bella', updated_at = '2019-01-01'")
      ])
      assert.deepStrictEqual(years.flat(), ["2020", "2021", "2021", "2021"])
    })
  )

  it.effect("is not made by an UPDATE that changes nothing, despite a generated column", () =>
    Effect.gen(function* () {
      const { insert, organization, sql, told } = yield* reader()
      yield* Effect.acquireRelease(
        sql`alter table pets add column shout text generated always as (upper(name)) stored`,
        () => Effect.orDie(sql`alter table pets drop column shout`)
      )
      yield* insert("a")
      yield* sql`update pets set name = 'Rex' where organization_id = ${organization}`
      assert.deepStrictEqual((yield* told).changed, ["a Rex"])
      yield* sql`update pets set name = 'Rex' where organization_id = ${organization}`
      assert.deepStrictEqual((yield* told).changed, [])
      assert.deepStrictEqual(yield* sql`select shout from pets where organization_id = ${organization}`, [
        { shout: "REX" }
      ])
    })
  )

  it.effect.each(["a_touch", "zz"])("that only another trigger makes is told: %s", (name) =>
    Effect.gen(function* () {
      const { insert, organization, sql, told } = yield* reader()
      yield* insert("a")
      yield* sql.unsafe(`create or replace function touched() returns trigger language plpgsql as $$
        begin new.name := 'after'; return new; end $$`)
      yield* sql.unsafe(`create trigger ${name} before update on pets for each row execute function touched()`)
      yield* sql`update pets set breed = breed where organization_id = ${organization}`
      yield* sql.unsafe(`drop trigger ${name} on pets`)
      assert.deepStrictEqual(yield* told, { changed: ["a after"], removed: [] })
    })
  )

  it.effect.each(["origin", "replica"])("is not made by a no-op UPDATE in the role %s, whose row stays", (role) =>
    Effect.gen(function* () {
      const { organization, sql, told } = yield* reader()
      const insert = sql`
          insert into pets (organization_id, id, name, date_of_birth, updated_at)
          values (${organization}, 'a', 'Rex', '2020-01-31', '2026-01-01 00:00:00.000001Z')`
      yield* keepingTimes(sql, insert)
      yield* told
      const rows = sql`select updated_at::text, change_position, record from pets where organization_id = ${organization}`
      const before = yield* rows
      const affected = yield* sql.withTransaction(
        Effect.andThen(
          sql`set local session_replication_role = ${sql.literal(role)}`,
          Effect.all([
            sql`
              update pets set name = name, date_of_birth = '2020-01-31', updated_at = now(), change_position = 1
              where organization_id = ${organization} returning id`,
            sql`
              insert into pets (organization_id, id, name, date_of_birth)
              values (${organization}, 'a', 'Rex', '2020-01-31')
              on conflict (organization_id, id) do update
              set name = excluded.name, date_of_birth = excluded.date_of_birth, updated_at = excluded.updated_at returning id`
          ])
        )
      )
      assert.deepStrictEqual(affected, [[{ id: "a" }], [{ id: "a" }]])
      assert.deepStrictEqual(yield* told, { changed: [], removed: [] })
      assert.deepStrictEqual(yield* rows, before)
    })
  )

  it.effect("is later than the last one, also where the clock was set back, and never beyond the range", () =>
    Effect.gen(function* () {
      const { organization, sql } = yield* reader()
      const early = yield* clientOf((yield* TestDatabase).url)
      const last = "9999-12-31 23:59:59.999999+00"
      yield* sql`insert into pets (organization_id, id) values (${organization}, 'a')`
      yield* early.withTransaction(
        Effect.gen(function* () {
          yield* early`select now()`
          yield* sql`update pets set name = 'later' where organization_id = ${organization}`
          yield* early`update pets set name = 'last' where organization_id = ${organization}`
          const rows = yield* early`select from pets where organization_id = ${organization} and updated_at > now()`
          assert.lengthOf(rows, 1)
        })
      )
      const insert = sql`
        insert into pets (organization_id, id, updated_at)
        values (${organization}, 'b', ${last}), (${organization}, 'c', '2100-01-01 00:00:00Z')`
      yield* keepingTimes(sql, insert)
      const rows = yield* sql`
        update pets set name = 'Rex' where organization_id = ${organization} and id in ('b', 'c')
        returning to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US+00') as at`
      assert.sameDeepMembers([...rows], [{ at: last }, { at: "2100-01-01 00:00:00.000001+00" }])
    })
  )

  it.effect("of an id, or of the organization, removes the old record and tells the new one", () =>
    Effect.gen(function* () {
      const { insert, organization, sql, told } = yield* reader()
      const other = yield* reader()
      yield* insert("a", "b")
      yield* sql`update pets set id = 'c' where organization_id = ${organization} and id = 'a'`
      yield* sql`update pets set organization_id = ${other.organization} where organization_id = ${organization} and id = 'b'`
      assert.deepStrictEqual(yield* told, { changed: ["c"], removed: ["a", "b"] })
      assert.deepStrictEqual(yield* other.told, { changed: ["b"], removed: [] })
    })
  )

  it.effect("is told whatever position the writer gives, and whatever its session's settings are", () =>
    Effect.gen(function* () {
      const { insert, organization, sql, told } = yield* reader()
      yield* insert("a", "b")
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`set local session_replication_role = replica`
          yield* sql`set local search_path = ''`
          yield* sql`insert into public.pets (organization_id, id, change_position) values (${organization}, 'c', 1)`
          yield* sql`update public.pets set name = 'Rex', change_position = 1 where organization_id = ${organization} and id = 'a'`
          yield* sql`delete from public.pets where organization_id = ${organization} and id = 'b'`
        })
      )
      assert.deepStrictEqual(yield* told, { changed: ["a Rex", "c"], removed: ["b"] })
    })
  )

  it.effect.each([
    ["select 1", "off"],
    ["insert into pets (organization_id, id) values ('org_sync', 'a')", "on"],
    ["update pets set name = 'Rex' where organization_id = 'org_sync'", "on"],
    ["delete from pets where organization_id = 'org_sync'", "on"]
  ] as const)("is committed synchronously, lest a crash undo what a reader has seen: %s", ([statement, setting]) =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const found = yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`set local synchronous_commit = off`
          yield* sql.unsafe(statement)
          return yield* sql`show synchronous_commit`
        })
      )
      assert.deepStrictEqual(found, [{ synchronous_commit: setting }])
    })
  )

  it.effect("in a copy of the database is of a new order, which has ten minutes to begin", () =>
    Effect.gen(function* () {
      const { insert, sql, told } = yield* reader()
      yield* insert("a")
      yield* sql`update change_feeds set place = 'elsewhere' where table_name in ('pets', 'charges')`
      assert.deepStrictEqual(yield* unsettled(sql), ["charges", "pets"])
      const times: Array<number> = []
      const run: typeof sql.run = (request, statements) => {
        times.push(Duration.toMinutes(request.within))
        return sql.run(request, statements)
      }
      const database = Object.assign(sql.bind(undefined), sql, { run })
      yield* (yield* Effect.provideService(ChangeClock.make, TaskDatabase, database)).tick
      assert.include(times, 10)
      assert.isEmpty(yield* unsettled(sql))
      assert.deepStrictEqual((yield* told).changed, ["a"], "read again")
    })
  )

  it.effect("is of a new order, for which no task is noted before a writer that keeps a table is done", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const other = yield* elsewhere
      yield* addTasks(1000, { organization_id: "'org'" })
      yield* addFacts(1000, {
        organization_id: "'org'",
        task_id: "(select id from deletion_tasks where idempotency_key = n::text)"
      })
      const writing = yield* openTransaction(other, other`lock table pets in row exclusive mode`)
      yield* sql`update change_feeds set place = 'elsewhere' where table_name in ('pets', 'invoices')`
      const sizes = sql`select pg_relation_size('deletions_unsettled')`
      const before = yield* sizes
      assert.deepStrictEqual(yield* begunAnew(sql), ["invoices", "pets"])
      assert.deepStrictEqual(yield* sizes, before)
      yield* writing.commit
      assert.isEmpty(yield* begunAnew(sql))
      assert.lengthOf(yield* sql`select from deletions_unsettled`, 1000)
    })
  )

  it.effect("is of a new order while a vacuum has the table, which Postgres ends for it after a second", () =>
    Effect.gen(function* () {
      const { organization, sql } = yield* reader()
      const other = yield* elsewhere
      const vacuum = yield* openTransaction(other, other`lock table pets in share update exclusive mode`)
      yield* sql`update change_feeds set place = 'elsewhere' where table_name = 'pets'`
      const restarting = yield* Effect.forkChild(begunAnew(sql))
      yield* locksAwaited(sql, 1)
      const [waited] = yield* Effect.timed(sql`insert into pets (organization_id, id) values (${organization}, 'a')`)
      yield* Effect.sleep("1 second")
      yield* vacuum.commit
      assert.isEmpty(yield* Fiber.join(restarting))
      assert.isBelow(Duration.toMillis(waited), 2000, "no writer waits meanwhile")
    })
  )
})
