/** The migration that makes writes cheaper: where it was cut short it goes on, and what it has done it leaves alone. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import lessForWrites from "../../../src/database/migrations/00011_less_for_writes.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const definitions = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  return yield* sql<{ text: string }>`
    select pg_get_indexdef(indexrelid) as text from pg_index where indrelid = 'invoices'::regclass
    union all select concat_ws(' ', prosrc, xmin) from pg_proc where proname in ('invoices_record', 'pets_record')
    union all select pg_get_constraintdef(oid) from pg_constraint where contypid = 'api_decimal'::regtype
    order by 1`
})

layer(TestDatabase.layer, { excludeTestServices: true })("the migration to cheaper writes", (it) => {
  it.effect("has every record rendered by PL/pgSQL", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const languages = yield* sql`
        select distinct l.lanname as language from pg_proc p join pg_language l on l.oid = p.prolang
        where p.proname like '%\\_record' and p.prorettype = 'text'::regtype`
      assert.deepStrictEqual(languages, [{ language: "plpgsql" }])
    })
  )

  it.effect("goes on where it was cut short, and changes nothing that is done", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const before = yield* definitions
      yield* sql`drop index invoices_search_pet`
      yield* sql`create index invoices_pet on invoices (organization_id, pet, updated_at, id)`
      yield* Effect.provideService(lessForWrites.online, SqlClient.SqlClient, sql)
      assert.deepStrictEqual(yield* definitions, before)
    })
  )
})
