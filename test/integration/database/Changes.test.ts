/** Every write is a change in the feed, whoever writes and however; and the marks by which a cursor goes on in another run of a server. */
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { CursorExpired } from "../../../src/api/Errors.ts"
import { clinics } from "../../../src/api/records/Organizations.ts"
import { resources } from "../../../src/api/records/index.ts"
import { pets } from "../../../src/api/records/Pets.ts"
import type { Resource } from "../../../src/api/records/Resource.ts"
import { restartChanges } from "../../../src/database/Databases.ts"
import { keepingTimes } from "../../../src/records/Rows.ts"
import { addFacts, addTasks } from "../../support/deletions/invoiceFixture.ts"
import { elsewhere, locksAwaited, openTransaction } from "../../support/deletions/sessions.ts"
import { clockOf, feedOf, pageOf } from "../../support/Follower.ts"
import { settled } from "../../support/settled.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"
import { asKnown } from "../records/stores.ts"

let organizations = 0

/** A reader of a resource, for an organization of the test's own. */
const reader = Effect.fnUntraced(function* (resource: Resource = pets) {
  const { sql } = yield* TestDatabase
  const changes = yield* feedOf(sql)
  const organization = `org_${++organizations}`
  let cursor: string | undefined = undefined

  /** The changes since the last time, as `ID NAME`, and the removed ids. */
  const told = Effect.fnUntraced(function* (limit = 1000) {
    yield* settled(sql)
    yield* sql`select change_mark()`
    const changed: Array<string> = []
    const removed: Array<string> = []
    let hasMore = true
    while (hasMore) {
      const { json } = yield* asKnown(organization)(changes({ cursor, limit, resources: [resource.name] }))
      const page: Effect.Success<ReturnType<typeof pageOf>> = yield* pageOf(json)
      cursor = page.cursor
      changed.push(...page.body.map(({ id, name }) => (typeof name === "string" ? `${id} ${name}` : id)))
      removed.push(...page.removed)
      hasMore = page.has_more
    }
    return { changed, removed }
  })
  /** Inserts records without a name, and reads them. */
  const insert = Effect.fnUntraced(function* (...ids: ReadonlyArray<string>) {
    for (const id of ids)
      yield* sql`insert into ${sql(resource.table)} (organization_id, id) values (${organization}, ${id})`
    yield* told()
  })
  return { sql, organization, told, insert }
})

layer(TestDatabase.layer, { excludeTestServices: true })("a change", (it) => {
  it.effect.each(resources.map(({ orderedBy, table }) => [table, orderedBy] as const))(
    "of %s: a write has a new position, and its time in %s; a DELETE leaves a removal",
    ([table, time]) =>
      Effect.gen(function* () {
        const { sql } = yield* TestDatabase
        const isStamped = time !== "created_at"
        const insert = (id: string) => sql`
          insert into ${sql(table)}
          ${sql.insert({ organization_id: id, id, created_at: "2020-01-01", [time]: "2020-01-01", record: "mine", change_position: 1 })}`
        yield* insert("a")
        const [column] = yield* sql<{ name: string }>`
          select attname as name from pg_attribute
          where attrelid = ${table}::regclass and attnum > 0 and not attisdropped
            and atttypid = 'text'::regtype and attname not in ('organization_id', 'id', 'time_zone', 'record')`
        const given = isStamped ? `, ${time} = '2019-01-01'` : ""
        const rows = yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql.unsafe(
              `update ${table} set ${column?.name} = 'changed', record = 'mine', change_position = 1${given}`
            )
            yield* insert("b")
            yield* sql.unsafe(
              `copy ${table} (organization_id, id, created_at${isStamped ? `, ${time}` : ""})
               from program 'echo c,c,2020-01-01${isStamped ? ",2020-01-01" : ""}' csv`
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
        keepingTimes(sql, sql.unsafe<{ at: string }>(`${statement} returning to_char(updated_at, 'YYYY') as at`))
      const update = (set: string) => written(`update pets set ${set} where organization_id = '${organization}'`)
      const found = [
        yield* written(
          `insert into pets (organization_id, id, updated_at) values ('${organization}', 'a', '2020-01-01')`
        ),
        yield* update("updated_at = '2021-01-01'"),
        yield* update("name = 'Rex'"),
        yield* update("name = 'Bella', updated_at = '2019-01-01'")
      ]
      assert.deepStrictEqual(
        found.flat().map(({ at }) => at),
        ["2020", "2021", "2021", "2021"]
      )
    })
  )

  it.effect("is an update of what is only stored, and not shown", () =>
    Effect.gen(function* () {
      const { insert, organization, sql, told } = yield* reader(clinics)
      yield* insert("a")
      yield* sql`update clinics set processor_account = 'acct_1' where organization_id = ${organization}`
      assert.deepStrictEqual(yield* told(), { changed: ["a"], removed: [] })
    })
  )

  it.effect("is no UPDATE that changes nothing, also where somebody added a generated column", () =>
    Effect.gen(function* () {
      const { insert, organization, sql, told } = yield* reader()
      yield* Effect.acquireRelease(
        sql`alter table pets add column shout text generated always as (upper(name)) stored`,
        () => Effect.orDie(sql`alter table pets drop column shout`)
      )
      yield* insert("a")
      yield* sql`update pets set name = 'Rex' where organization_id = ${organization}`
      assert.deepStrictEqual((yield* told()).changed, ["a Rex"])
      yield* sql`update pets set name = 'Rex' where organization_id = ${organization}`
      assert.deepStrictEqual((yield* told()).changed, [])
      assert.deepStrictEqual(yield* sql`select shout from pets where organization_id = ${organization}`, [
        { shout: "REX" }
      ])
    })
  )

  it.effect.each(["origin", "replica"])(
    "is no update of nothing, of a session in the role %s: its row stays as it was",
    (role) =>
      Effect.gen(function* () {
        const { organization, sql, told } = yield* reader()
        const insert = sql`
          insert into pets (organization_id, id, name, date_of_birth, updated_at)
          values (${organization}, 'a', 'Rex', '2020-01-31', '2026-01-01 00:00:00.000001Z')`
        yield* keepingTimes(sql, insert)
        yield* told()
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
        assert.deepStrictEqual(yield* told(), { changed: [], removed: [] })
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
      assert.deepStrictEqual(yield* told(), { changed: ["c"], removed: ["a", "b"] })
      assert.deepStrictEqual(yield* other.told(), { changed: ["b"], removed: [] })
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
      assert.deepStrictEqual(yield* told(), { changed: ["a Rex", "c"], removed: ["b"] })
    })
  )

  it.effect.each(["a_touch", "zz"])("is told that only another trigger makes, called %s", (name) =>
    Effect.gen(function* () {
      const { insert, organization, sql, told } = yield* reader()
      yield* insert("a")
      yield* sql.unsafe(`create or replace function touched() returns trigger language plpgsql as $$
        begin new.name := 'after'; return new; end $$`)
      yield* sql.unsafe(`create trigger ${name} before update on pets for each row execute function touched()`)
      yield* sql`update pets set breed = breed where organization_id = ${organization}`
      yield* sql.unsafe(`drop trigger ${name} on pets`)
      assert.deepStrictEqual(yield* told(), { changed: ["a after"], removed: [] })
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

  it.effect("in a copy of the database is of a new order, which starts once, and says of which tables", () =>
    Effect.gen(function* () {
      const { insert, sql, told } = yield* reader()
      yield* insert("a")
      yield* sql`update change_feeds set place = 'elsewhere' where table_name in ('pets', 'charges')`
      assert.deepStrictEqual(yield* restartChanges(sql), { begun: ["charges", "pets"], waiting: [] })
      assert.deepStrictEqual(yield* restartChanges(sql), { begun: [], waiting: [] })
      assert.deepStrictEqual((yield* told()).changed, ["a"], "read again")
    })
  )

  it.effect("has ten minutes for a new order, also for one statement of it, and five seconds for marks", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const sql = yield* clientOf(url, { statementTimeout: "500 millis" })
      const seconds: Array<number> = []
      const run: typeof sql.run = (request, statements) => {
        seconds.push(Duration.toSeconds(request.within))
        return sql.run(request, statements)
      }
      const timed = new Proxy(sql, { get: (target, name) => (name === "run" ? run : Reflect.get(target, name)) })
      yield* sql.unsafe(
        "create function slow() returns trigger language plpgsql as 'begin perform pg_sleep(0.6); return new; end'"
      )
      yield* sql`update change_feeds set place = 'elsewhere' where table_name = 'pets'`
      yield* sql`create trigger slow before update on change_feeds for each row execute function slow()`
      yield* Effect.flatMap(clockOf(timed), ({ tick }) => tick)
      yield* sql`drop function slow cascade`
      assert.deepStrictEqual(seconds, [5, 600, 5])
      assert.deepStrictEqual(yield* restartChanges(sql), { begun: [], waiting: [] })
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
      assert.deepStrictEqual(yield* restartChanges(sql), { begun: [], waiting: ["invoices", "pets"] })
      assert.deepStrictEqual(yield* sizes, before)
      yield* writing.commit
      assert.deepStrictEqual(yield* restartChanges(sql), { begun: ["invoices", "pets"], waiting: [] })
      assert.lengthOf(yield* sql`select from deletions_unsettled`, 1000)
    })
  )

  it.effect("is of a new order while a vacuum has the table, which Postgres ends for it after a second", () =>
    Effect.gen(function* () {
      const { organization, sql } = yield* reader()
      const other = yield* elsewhere
      const vacuum = yield* openTransaction(other, other`lock table pets in share update exclusive mode`)
      yield* sql`update change_feeds set place = 'elsewhere' where table_name = 'pets'`
      const restarting = yield* Effect.forkChild(restartChanges(sql))
      yield* locksAwaited(sql, 1)
      const [waited] = yield* Effect.timed(sql`insert into pets (organization_id, id) values (${organization}, 'a')`)
      yield* Effect.sleep("1 second")
      yield* vacuum.commit
      assert.deepStrictEqual(yield* Fiber.join(restarting), { begun: ["pets"], waiting: [] })
      assert.isBelow(Duration.toMillis(waited), 2000, "no writer waits meanwhile")
    })
  )
})

const marks = Effect.flatMap(
  TestDatabase,
  ({ sql }) => sql<{ token: string; isDurable: boolean }>`
    select token, durable_until is not null as "isDurable" from change_marks order by timeline desc`
)

layer(TestDatabase.layer, { excludeTestServices: true })("the marks", (it) => {
  it.effect("do not know the end of a run that was seen last long before: another may have been between", () =>
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

  it.effect("of 31 days ago end the cursors from before, and the removals that only those need", () =>
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
      assert.deepStrictEqual(yield* late.told(), { changed: [], removed: ["a"] })
      yield* sql`update change_times set at = at - interval '32 days'`
      yield* forget
      assert.lengthOf(yield* removals, 2, "cursors have expired first")
      yield* forget
      assert.isEmpty(yield* removals)
      assert.deepStrictEqual(yield* late.told(), { changed: [], removed: [] })
      assert.deepStrictEqual(yield* Effect.flip(early.told()), new CursorExpired())
    })
  )

  it.effect("have times again after the clock was ahead, none of them from the future", () =>
    Effect.gen(function* () {
      const { insert, sql } = yield* reader()
      const mark = Effect.andThen(sql`update change_marks set marked_at = '2026-01-01'`, sql`select change_mark()`)
      yield* mark
      yield* sql`update change_times set at = at + interval '2 years'`
      yield* insert("a")
      yield* mark
      const times = sql`select at <= clock_timestamp() as "isPast" from change_times`
      assert.deepStrictEqual(yield* times, [{ isPast: true }])
    })
  )

  it.effect("have one of each run, of which readers use the last; those of a thousand runs are kept", () =>
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
