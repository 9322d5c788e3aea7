/** A field is added to a record while its table is read and written. Decisions: "Responses of the data API". */
import { assert, layer } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Layer, Logger, Redacted, Schedule } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { connect, type Database } from "../../../src/database/Database.ts"
import { all, migrate, missing } from "../../../src/database/Migrations.ts"
import { addField, addIndex, type Field, RowsLocked } from "../../../src/database/migrations/addField.ts"
import { microchip, pets } from "./microchip.ts"
import { emptyDatabase, TestDatabase } from "../../support/TestDatabase.ts"
import { long } from "../../support/tries.ts"

const weight: Field = {
  table: "pets",
  field: "weight",
  column: "weight",
  type: "numeric",
  domain: "api_decimal",
  record: `
    create or replace function pets_record(
      id text, name text, species text, breed text, sex text, date_of_birth date, clinic text, client_id text,
      created_at timestamptz, updated_at timestamptz, microchip_number text, weight numeric
    ) returns text language sql immutable parallel safe
    ${pets}
    || ',"microchipNumber":' || coalesce(to_json(microchip_number)::text, 'null')
    || ',"weight":'          || coalesce(trim_scale(weight)::text, 'null')
    || '}'`
}

const withMicrochip = { ...all, "90001_microchip": addField(microchip) }
const withWeight = { ...withMicrochip, "90002_weight": addField(weight) }

/** A database with pets of two organizations, as they are before a field is added. */
const withPets = Effect.gen(function* () {
  const sql = yield* connect({
    url: Redacted.make(yield* emptyDatabase),
    applicationName: "practice-data-test",
    maxConnections: 4,
    statementTimeout: "1 minute"
  })
  yield* migrate(sql)
  yield* sql`
    insert into pets (organization_id, id, name) select 'org_' || n % 2, 'pet_' || n, 'Rex ,"microchipNumber": ' || n
    from generate_series(1, 2500) n`
  return sql
}).pipe(Effect.provide(Reactivity.layer))

interface Pet {
  readonly id: string
  readonly record: string
}

const petsOf = (sql: Database) => sql<Pet>`select id, record from pets order by id`

const shown = ({ record }: Pet, fields: string) => `${record.slice(0, -1)},${fields}}`

const versionsOf = (sql: Database) => sql`select id, xmin::text as version from pets order by id`

const lacking = (sql: Database) =>
  sql`select id from pets where record not like '%,"microchipNumber":null}' order by id`

/** Runs a statement in a transaction that stays open until the effect which it returns has run. */
const held = Effect.fnUntraced(function* (sql: Database, statement: Effect.Effect<unknown, SqlError>) {
  const isHeld = yield* Deferred.make<void>()
  const isOver = yield* Deferred.make<void>()
  const holding = yield* Effect.forkChild(
    sql.withTransaction(Effect.all([statement, Deferred.succeed(isHeld, undefined), Deferred.await(isOver)]))
  )
  yield* Deferred.await(isHeld)
  return { release: Effect.andThen(Deferred.succeed(isOver, undefined), Fiber.join(holding)) }
})

layer(TestDatabase.layer.pipe(Layer.provideMerge(Logger.layer([]))), { excludeTestServices: true })((it) => {
  it.effect("rows from before have the field, those that are written meanwhile have its value, and readers go on", () =>
    Effect.gen(function* () {
      const sql = yield* withPets
      const before = yield* petsOf(sql)
      const seen = new Set<string>()
      const read = Effect.map(
        sql<Pet>`select t.record from pets t where organization_id = 'org_1' and id = 'pet_1'`,
        (rows) => rows.map(({ record }) => seen.add(record))
      )
      let count = 0
      const write = Effect.suspend(
        () => sql`insert into pets (organization_id, id) values ('org_1', ${`new_${String(count++).padStart(6, "0")}`})`
      )
      const beside = yield* Effect.forkChild(Effect.forever(Effect.all([read, write], { concurrency: 2 })))
      assert.deepStrictEqual(yield* migrate(sql, withMicrochip), ["90001_microchip"])
      yield* sql`update pets set microchip_number = '"985"' where id = 'pet_1'`
      yield* sql`insert into pets (organization_id, id, microchip_number) values ('org_1', 'new_last', '986')`
      yield* read
      yield* Fiber.interrupt(beside)
      assert.isAbove(count, 1)

      const first = before.filter(({ id }) => id === "pet_1")
      const [plain, rendered, written = ""] = seen
      assert.deepStrictEqual(
        [plain, rendered],
        first.flatMap((pet) => [pet.record, shown(pet, '"microchipNumber":null')])
      )
      assert.isTrue(written.endsWith(',"microchipNumber":"\\"985\\""}'))
      const after = yield* petsOf(sql)
      const [old, added] = [
        after.filter(({ id }) => id.startsWith("pet_")),
        after.filter(({ id }) => id.startsWith("new_"))
      ]
      assert.deepStrictEqual(
        old.slice(1).map(({ record }) => record),
        before.slice(1).map((pet) => shown(pet, '"microchipNumber":null'))
      )
      for (const { id, record } of added) {
        assert.isTrue(record.endsWith(id === "new_last" ? ',"microchipNumber":"986"}' : ',"microchipNumber":null}'))
      }
    })
  )

  it.effect("a search by the field finds its rows in the index", () =>
    Effect.gen(function* () {
      const sql = yield* withPets
      // A build that failed leaves an index of that name which is not valid.
      yield* Effect.flip(sql`create unique index concurrently pets_microchip_number on pets (organization_id)`)
      yield* migrate(sql, withMicrochip)
      yield* sql`update pets set microchip_number = id`
      yield* sql`analyze pets`
      const plan = yield* sql<{ "QUERY PLAN": string }>`
        explain select t.record from pets t where t.organization_id = 'org_1' and t.microchip_number = 'pet_7'
        order by t.updated_at, t.id limit 100`
      assert.match(plan.map((line) => line["QUERY PLAN"]).join("\n"), /Index Scan using pets_microchip_number on pets/)
    })
  )

  it.effect("it can run again, changes no row then, and is recorded when it has succeeded", () =>
    Effect.gen(function* () {
      const sql = yield* withPets
      const failing = {
        online: Effect.andThen(addField(microchip).online, new RowsLocked({ message: "cut short" }))
      }
      yield* Effect.flip(migrate(sql, { ...all, "90001_microchip": failing }))
      assert.deepStrictEqual((yield* missing(sql, withMicrochip)).files, ["90001_microchip"])
      const versions = yield* versionsOf(sql)
      assert.deepStrictEqual(yield* migrate(sql, withMicrochip), ["90001_microchip"])
      assert.deepStrictEqual(yield* migrate(sql, withMicrochip), [])
      assert.deepStrictEqual(yield* versionsOf(sql), versions)
    })
  )

  it.effect(
    "several processes can add fields at once",
    () =>
      Effect.gen(function* () {
        const sql = yield* withPets
        const before = yield* petsOf(sql)
        const applied = yield* Effect.all(
          [migrate(sql, withWeight), migrate(sql, withWeight), migrate(sql, withWeight)],
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(applied.flat().toSorted(), ["90001_microchip", "90002_weight"])
        assert.deepStrictEqual(
          (yield* petsOf(sql)).map(({ record }) => record),
          before.map((pet) => shown(pet, '"microchipNumber":null,"weight":null'))
        )
        const [index] = yield* sql`select indisvalid from pg_index where indexrelid = 'pets_microchip_number'::regclass`
        assert.deepStrictEqual(index, { indisvalid: true })
      }),
    long
  )

  it.effect(
    "a transaction that uses the table is waited for, and nobody queues behind the wait",
    () =>
      Effect.gen(function* () {
        const sql = yield* withPets
        const holder = yield* held(sql, sql`update pets set name = 'Held' where id = 'pet_1'`)
        const adding = yield* Effect.forkChild(migrate(sql, withMicrochip))
        const waits: Array<number> = []
        for (let tried = 0; tried < 30; tried++) {
          const [took] = yield* Effect.timed(sql`select record from pets where id = 'pet_2'`)
          waits.push(Duration.toMillis(took))
          yield* Effect.sleep("50 millis")
        }
        assert.isUndefined(adding.pollUnsafe())
        assert.isBelow(Math.max(...waits), 1000)
        yield* holder.release
        yield* Fiber.join(adding)
        assert.deepStrictEqual(yield* lacking(sql), [])
      }),
    long
  )

  it.effect(
    "a row that a writer holds has the field when the writer is done, and no other row waits for it",
    () =>
      Effect.gen(function* () {
        const sql = yield* withPets
        // The first row to be rendered waits until the test has locked another one.
        yield* sql.unsafe(`
          create function pause() returns trigger language plpgsql as
          $$ begin perform pg_advisory_xact_lock_shared(1); return new; end $$`)
        yield* sql`create trigger pause before update on pets for each row when (new.id = 'pet_10') execute function pause()`
        const pausing = yield* held(sql, sql`select pg_advisory_xact_lock(1)`)
        const adding = yield* Effect.forkChild(migrate(sql, withMicrochip))
        yield* Effect.repeat(sql`select from pg_locks where locktype = 'advisory' and not granted`, {
          until: (waiting) => waiting.length > 0,
          schedule: Schedule.spaced("10 millis")
        }).pipe(Effect.timeout("30 seconds"))
        const holder = yield* held(
          sql,
          sql`select from pets where organization_id = 'org_1' and id = 'pet_1' for update`
        )
        yield* pausing.release
        yield* Effect.repeat(lacking(sql), {
          until: (rows) => rows.length === 1,
          schedule: Schedule.spaced("10 millis")
        }).pipe(Effect.timeout("30 seconds"))
        yield* Effect.sleep("1500 millis")
        assert.deepStrictEqual(yield* lacking(sql), [{ id: "pet_1" }])
        assert.isUndefined(adding.pollUnsafe())
        yield* holder.release
        yield* Fiber.join(adding)
        assert.deepStrictEqual(yield* lacking(sql), [])
      }),
    long
  )

  it.effect(
    "every writer's rows are rendered: COPY, replication, a trigger, and whoever writes the JSON",
    () =>
      Effect.gen(function* () {
        const sql = yield* withPets
        yield* migrate(sql, withMicrochip)
        yield* sql`truncate pets`
        yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`set local session_replication_role = replica`
            yield* sql`set local search_path = ''`
            yield* sql`insert into public.pets (organization_id, id, microchip_number) values ('org_1', 'replicated', '1')`
          })
        )
        yield* sql`insert into pets (organization_id, id, microchip_number, record) values ('org_1', 'written', '2', '{}')`
        yield* sql`update pets set record = 'nonsense', microchip_number = '3' where id = 'written'`
        yield* sql`copy pets (organization_id, id, microchip_number) from program 'printf "org_1\tcopied\t4\n"'`
        yield* sql.unsafe(`
        create function upper_name() returns trigger language plpgsql as
        $$ begin new.name := upper(new.name); return new; end $$`)
        yield* sql`create trigger upper_name before insert on pets for each row execute function upper_name()`
        yield* sql`insert into pets (organization_id, id, name, microchip_number) values ('org_1', 'triggered', 'rex', '5')`
        const rows = yield* sql`
        select id, record::json ->> 'id' as shown, record::json ->> 'name' as name,
          record::json ->> 'microchipNumber' as number from pets order by id`
        assert.deepStrictEqual(rows, [
          { id: "copied", shown: "copied", name: null, number: "4" },
          { id: "replicated", shown: "replicated", name: null, number: "1" },
          { id: "triggered", shown: "triggered", name: "REX", number: "5" },
          { id: "written", shown: "written", name: null, number: "3" }
        ])
      }),
    long
  )

  it.effect(
    "another field follows, and its values must pass the check of its domain",
    () =>
      Effect.gen(function* () {
        const sql = yield* withPets
        const before = yield* petsOf(sql)
        assert.deepStrictEqual(yield* migrate(sql, withWeight), ["90001_microchip", "90002_weight"])
        assert.deepStrictEqual(
          (yield* petsOf(sql)).map(({ record }) => record),
          before.map((pet) => shown(pet, '"microchipNumber":null,"weight":null'))
        )
        yield* sql`update pets set weight = 4.50 where id = 'pet_1'`
        const error = yield* Effect.flip(sql`update pets set weight = 'NaN' where id = 'pet_1'`)
        assert.strictEqual(error.reason._tag, "ConstraintError")
        const [row] = yield* sql<Pet>`select record from pets where id = 'pet_1'`
        assert.include(row?.record, '"weight":4.5}')
        const functions = yield* sql`select proname from pg_proc where proname = 'pets_record'`
        assert.strictEqual(functions.length, 1)
      }),
    long
  )

  it.effect(
    "an index that another process finishes in the moment in which it is found broken is left as it is",
    () =>
      Effect.gen(function* () {
        const sql = yield* withPets
        const breed = addIndex({
          table: "pets",
          name: "pets_breed",
          columns: "(organization_id, breed, updated_at, id)"
        })
        const provided = Effect.provideService(breed.online, SqlClient.SqlClient, sql)
        yield* provided
        const index = sql<{ oid: number; isValid: boolean }>`
        select indexrelid::integer as oid, indisvalid as "isValid" from pg_index
        where indexrelid = 'pets_breed'::regclass`
        const built = yield* index
        const setValid = (isValid: boolean) =>
          sql`update pg_index set indisvalid = ${isValid} where indexrelid = 'pets_breed'::regclass`
        yield* setValid(false)
        const finishing = yield* Deferred.make<void>()
        const other = yield* Effect.forkScoped(
          sql.withTransaction(
            Effect.andThen(
              setValid(true),
              Effect.andThen(Deferred.succeed(finishing, undefined), Effect.sleep("100 millis"))
            )
          )
        )
        yield* Deferred.await(finishing)
        yield* provided
        yield* Fiber.join(other)
        assert.deepStrictEqual(yield* index, built)
      }),
    long
  )

  it.effect(
    "an index that replaces another is there before the other is dropped, and it can run again",
    () =>
      Effect.gen(function* () {
        const sql = yield* withPets
        const { online } = addIndex({
          table: "pets",
          name: "pets_breed",
          columns: "(organization_id, breed, updated_at, id)",
          replaces: ["pets_species"]
        })
        const names = Effect.map(
          sql<{ name: string }>`select indexname as name from pg_indexes where tablename = 'pets' order by 1`,
          (rows) => rows.map(({ name }) => name)
        )
        const before = yield* names
        assert.include(before, "pets_species")
        for (let times = 0; times < 2; times++) {
          yield* Effect.provideService(online, SqlClient.SqlClient, sql)
          const after = [...before.filter((name) => name !== "pets_species"), "pets_breed"].toSorted()
          assert.deepStrictEqual((yield* names).toSorted(), after)
        }
      }),
    long
  )

  const refused = {
    "would rewrite the table": { ...weight, type: "api_decimal" },
    "is no argument of the function": { ...microchip, column: "chip" },
    "the function does not render": { ...weight, record: microchip.record }
  }
  for (const [name, field] of Object.entries(refused)) {
    it.effect(
      `a column that ${name} is refused, and nothing changes`,
      () =>
        Effect.gen(function* () {
          const sql = yield* withPets
          const error = yield* Effect.flip(migrate(sql, { ...all, "90001_weight": addField(field) }))
          assert.match(String(error.cause), /would rewrite the table pets|No pets_record renders \w+ from an argument/)
          yield* sql`insert into pets (organization_id, id) values ('org_1', 'new')`
          const columns =
            yield* sql`select attname from pg_attribute where attrelid = 'pets'::regclass and attgenerated = 's'`
          assert.deepStrictEqual(columns, [{ attname: "record" }])
        }),
      long
    )
  }
})
