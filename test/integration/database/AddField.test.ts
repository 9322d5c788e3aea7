/** A field is added to a record while its table is read and written. */
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Logger } from "effect"
import type { Database } from "../../../src/database/Database.ts"
import { all, migrate, missing } from "../../../src/database/Migrations.ts"
import { addField, RowsLocked } from "../../../src/database/addField.ts"
import { eventually } from "../../support/eventually.ts"
import { openTransaction } from "../../support/deletions/sessions.ts"
import { clientOf, migratedDatabase, TestDatabase } from "../../support/TestDatabase.ts"
import { long } from "../../support/tries.ts"
import { microchip } from "./microchip.ts"

const withMicrochip = { ...all, "own/microchip": addField(microchip) }

/** A database with pets of two organizations, as they are before a field is added. */
const withPets = Effect.gen(function* () {
  const sql = yield* clientOf(yield* migratedDatabase, { maxConnections: 4 })
  yield* sql`
    insert into pets (organization_id, id, name) select 'org_' || n % 2, 'pet_' || n, 'Rex ,"microchipNumber": ' || n
    from generate_series(1, 1200) n`
  return sql
})

const recordsOf = (sql: Database) =>
  Effect.map(sql`select record from pets where id like 'pet\\_%' order by id`.values, (rows) => rows.flat().map(String))

const lacking = (sql: Database) =>
  Effect.map(sql`select id from pets where record not like '%,"microchipNumber":null}'`.values, (rows) => rows.flat())

layer(TestDatabase.layer.pipe(Layer.provideMerge(Logger.layer([]))), { excludeTestServices: true })((it) => {
  it.effect("several processes at once render old and new rows while readers go on, and searches use the index", () =>
    Effect.gen(function* () {
      const sql = yield* withPets
      const before = yield* recordsOf(sql)
      // A build that failed leaves an index of that name which is not valid.
      yield* Effect.flip(sql`create unique index concurrently pets_microchip_number on pets (organization_id)`)
      const seen = new Set<string>()
      const stored = sql<{
        record: string
      }>`select t.record from pets t where organization_id = 'org_1' and id = 'pet_1'`
      const read = Effect.map(stored, (rows) => rows.map(({ record }) => seen.add(record)))
      let count = 0
      const write = Effect.suspend(
        () => sql`insert into pets (organization_id, id) values ('org_1', ${`new_${count++}`})`
      )
      const beside = yield* Effect.forkChild(Effect.forever(Effect.all([read, write], { concurrency: 2 })))
      const three = Array.from({ length: 3 }, () => migrate(sql, withMicrochip))
      assert.deepStrictEqual((yield* Effect.all(three, { concurrency: 3 })).flat(), ["own/microchip"])
      yield* Fiber.interrupt(beside)
      assert.isAbove(count, 1)
      assert.deepStrictEqual(yield* lacking(sql), [])
      const after = before.map((record) => `${record.slice(0, -1)},"microchipNumber":null}`)
      assert.deepStrictEqual(yield* recordsOf(sql), after)
      yield* read
      assert.deepStrictEqual([...seen], [before[0], after[0]])
      yield* sql`update pets set microchip_number = '"985"' where id = 'pet_1'`
      assert.isTrue((yield* recordsOf(sql))[0]?.endsWith(',"microchipNumber":"\\"985\\""}'))

      yield* sql`update pets set microchip_number = id`
      yield* sql`analyze pets`
      const plan = yield* sql<{ "QUERY PLAN": string }>`
        explain select t.record from pets t where t.organization_id = 'org_1' and t.microchip_number = 'pet_7'
        order by t.updated_at, t.id limit 100`
      const nodes = plan.map((line) => line["QUERY PLAN"]).join("\n")
      assert.include(nodes, "Index Scan using pets_microchip_number on pets")
      assert.lengthOf(yield* sql`select from pg_proc where proname = 'pets_written'`, 1)
    })
  )

  it.effect("a run that was cut short is run again, changes no row then, and is recorded when it has succeeded", () =>
    Effect.gen(function* () {
      const sql = yield* withPets
      const failing = { online: Effect.andThen(addField(microchip).online, new RowsLocked({ message: "cut short" })) }
      yield* Effect.flip(migrate(sql, { ...all, "own/microchip": failing }))
      assert.deepStrictEqual((yield* missing(sql, withMicrochip)).names, ["own/microchip"])
      const versions = sql`select id, xmin::text as version from pets order by id`
      const before = yield* versions
      assert.deepStrictEqual(yield* migrate(sql, withMicrochip), ["own/microchip"])
      assert.deepStrictEqual(yield* migrate(sql, withMicrochip), [])
      assert.deepStrictEqual(yield* versions, before)
    })
  )

  it.effect(
    "a transaction that uses the table is waited for, and nobody queues behind the wait",
    () =>
      Effect.gen(function* () {
        const sql = yield* withPets
        const holder = yield* openTransaction(sql, sql`update pets set name = 'Held' where id = 'pet_1'`)
        const adding = yield* Effect.forkChild(migrate(sql, withMicrochip))
        for (let tried = 0; tried < 30; tried++) {
          const [took] = yield* Effect.timed(sql`select record from pets where id = 'pet_2'`)
          assert.isBelow(Duration.toMillis(took), 1000)
          yield* Effect.sleep("50 millis")
        }
        assert.isUndefined(adding.pollUnsafe())
        yield* holder.commit
        yield* Fiber.join(adding)
        assert.deepStrictEqual(yield* lacking(sql), [])
      }),
    long
  )

  it.effect(
    "a row that a writer holds gets the field when the writer is done, and no other row waits for it",
    () =>
      Effect.gen(function* () {
        const sql = yield* withPets
        // The first row to be rendered waits until the test has locked another one.
        yield* sql.unsafe(`
        create function pause() returns trigger language plpgsql as
        $$ begin perform pg_advisory_xact_lock_shared(1); return new; end $$`)
        yield* sql`create trigger pause before update on pets for each row when (new.id = 'pet_10') execute function pause()`
        const pausing = yield* openTransaction(sql, sql`select pg_advisory_xact_lock(1)`)
        const adding = yield* Effect.forkChild(migrate(sql, withMicrochip))
        const waiting = sql`select from pg_locks where locktype = 'advisory' and not granted`
        yield* eventually("a row waits", waiting, (rows) => rows.length > 0)
        const holder = yield* openTransaction(sql, sql`select from pets where id = 'pet_1' for update`)
        yield* pausing.commit
        yield* eventually("one row is left", lacking(sql), (ids) => ids.length === 1)
        assert.deepStrictEqual(yield* lacking(sql), ["pet_1"])
        assert.isUndefined(adding.pollUnsafe())
        yield* holder.commit
        yield* Fiber.join(adding)
        assert.deepStrictEqual(yield* lacking(sql), [])
      }),
    long
  )

  it.effect("the check of a column reads the whole table, however long that takes", () =>
    Effect.gen(function* () {
      const sql = yield* clientOf(yield* migratedDatabase, { statementTimeout: "500 millis" })
      yield* sql.unsafe(
        "create or replace procedure validate_records(name text) language plpgsql as 'begin perform pg_sleep(0.6); end'"
      )
      assert.deepStrictEqual(yield* migrate(sql, withMicrochip), ["own/microchip"])
    })
  )

  it.effect("a column that would rewrite the table is refused, and nothing changes", () =>
    Effect.gen(function* () {
      const sql = yield* withPets
      const random = addField({ ...microchip, type: "numeric default random()" })
      const error = yield* Effect.flip(migrate(sql, { ...all, "own/microchip": random }))
      assert.include(String(error.cause), "would rewrite the table pets")
      assert.isEmpty(yield* sql`select from pg_attribute where attname = 'microchip_number'`)
      yield* sql`insert into pets (organization_id, id) values ('org_1', 'pet_new')`
      assert.notInclude((yield* recordsOf(sql)).at(-1), "microchipNumber")
    })
  )
})
