/** The examples of src/api/records/README.md: a resource, and the SQL of a field and a filter. */
import { assert, layer } from "@effect/vitest"
import { Arbitrary, Effect, Layer } from "effect"
import { all, migrate, runFile } from "../../../src/database/Migrations.ts"
import { toText } from "../../../src/database/Columns.ts"
import * as Arbitraries from "../../support/arbitraries.ts"
import { snippetsOf } from "../../support/snippets.ts"
import { asPsql, clientOf, migratedDatabase, TestDatabase } from "../../support/TestDatabase.ts"
import { vaccinations } from "./example/Vaccinations.ts"
import { asKnown, storesOf } from "./stores.ts"

const migrated = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  const table = runFile(new URL("./example/00005_vaccinations.sql", import.meta.url))
  yield* migrate(sql, { ...all, "00005_vaccinations": table })
})

layer(Layer.provideMerge(Layer.effectDiscard(migrated), TestDatabase.layerDatabases), { excludeTestServices: true })(
  (it) => {
    it.effect("a new resource has its queries and its fake by its file and its migration alone", () =>
      Effect.gen(function* () {
        const [records = []] = yield* Arbitrary.sampleEffect(
          Arbitraries.recordsOf(vaccinations, { minLength: 24, maxLength: 24 }),
          { count: 1, size: 24, seed: "vaccinations" }
        )
        const { memory, postgres } = yield* storesOf({ resource: vaccinations, records })
        const found: Array<string> = []
        for (const criteria of [{}, { include_boosters: true }]) {
          const page = { limit: 100, offset: 0 }
          found.push(toText(yield* postgres.search(criteria, page)))
          assert.strictEqual(found.at(-1), toText(yield* memory.search(criteria, page)))
        }
        const [withoutBoosters = "", withBoosters = ""] = found
        assert.isAbove(withBoosters.length, withoutBoosters.length)
        assert.include(withoutBoosters, '"isBooster":false')
      }).pipe(asKnown("org_a"))
    )

    it.effect("a field is rendered in old and new rows by the SQL of the guide", () =>
      Effect.gen(function* () {
        const url = yield* migratedDatabase
        const sql = yield* clientOf(url)
        const add = (id: string) =>
          sql`insert into pets (organization_id, id) values ('org_a', ${id}), ('org_b', ${id})`
        yield* sql`select change_begin()`
        yield* add("old")
        for (const { code } of snippetsOf("src/api/records/README.md").filter(({ language }) => language === "sql"))
          yield* asPsql(url, code)
        yield* add("new")
        const rendered = sql`select id from pets where record like '%,"microchipNumber":null}'`
        assert.lengthOf(yield* rendered, 4)
        yield* sql`update pets set microchip_number = '985' where id = 'old'`
        assert.lengthOf(yield* sql`select from pets where record like '%,"microchipNumber":"985"}'`, 2)
        const [settled] = yield* sql`select bool_and(is_whole and is_settled) as "isSettled" from change_feed_states()`
        assert.deepStrictEqual<unknown>(settled, { isSettled: true })
      })
    )
  }
)
