/** What the doctor compares a database with. */
import { readFileSync } from "node:fs"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { dictionary } from "../../../scripts/doctor/dictionary.ts"
import { made } from "../../../scripts/doctor/made.ts"
import * as Migrations from "../../../src/database/Migrations.ts"
import * as MigrationsCheck from "../../../src/operations/doctor/MigrationsCheck.ts"
import { clientOf, emptyDatabase, TestDatabase } from "../../support/TestDatabase.ts"
import { long } from "../../support/tries.ts"
import { inherited } from "./examined.ts"

const roles = ["data-api", "intake", "worker"] as const

const written = (name: string) => readFileSync(new URL(`../../../src/operations/${name}`, import.meta.url), "utf8")

layer(TestDatabase.layer, { excludeTestServices: true })("What the doctor knows of a database", (it) => {
  it.effect("is what the migrations make, and so is the dictionary: `npm run generate` writes them", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      assert.strictEqual(written("doctor/migrated.json"), yield* made(sql))
      assert.strictEqual(written("DICTIONARY.md"), yield* dictionary(sql))
    })
  )

  it.effect(
    "is true in another schema as well",
    () =>
      Effect.gen(function* () {
        const sql = yield* clientOf(yield* emptyDatabase, { settings: { ...inherited, search_path: "practice" } })
        yield* sql`create schema practice`
        yield* Migrations.migrate(sql)
        const problemsThere = Effect.map(MigrationsCheck.check(sql, roles), (said) =>
          said.filter(({ status }) => status === "fail")
        )
        const closed = yield* problemsThere
        assert.isTrue(closed.every(({ message }) => message.endsWith("lacks USAGE on schema practice.")))
        for (const { advice = "" } of closed) yield* sql.unsafe(advice)
        yield* sql`drop index pets_search`
        const [index, ...others] = yield* problemsThere
        assert.deepStrictEqual(others, [])
        yield* sql.unsafe(index?.advice ?? "")
        assert.deepStrictEqual(yield* problemsThere, [])
      }),
    long
  )
})
