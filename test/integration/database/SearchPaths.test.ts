/**
 * Functions of the schema run nobody else's code, also where others may create in that schema, as in a database that was
 * made before Postgres 15.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** The functions whose body is a text, in which names are looked up when they run. */
const textual = "pronamespace = current_schema()::regnamespace and prosqlbody is null"

layer(TestDatabase.layer, { excludeTestServices: true })("a function of the schema", (it) => {
  it.effect("that looks up names when it runs has a search path of its own, or qualifies all that it calls", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const others = yield* sql.unsafe<{ name: string; body: string }>(
        `select proname as name, prosrc as body from pg_proc
         where (prosecdef or ${textual}) and pronamespace = current_schema()::regnamespace
           and not coalesce(proconfig, '{}') @> array['search_path=pg_catalog, pg_temp'] order by 1`
      )
      assert.deepStrictEqual(
        others.map(({ name }) => name),
        ["record_changed"]
      )
      const calls = [...(others[0]?.body ?? "").matchAll(/([\w.]*)\(/g)].map(([, called = ""]) => called)
      assert.isNotEmpty(calls)
      const keywords = ["greatest", "operator"]
      assert.deepStrictEqual(
        calls.filter((called) => !keywords.includes(called) && !/^(pg_catalog|public)\./.test(called)),
        []
      )
      const operators = (others[0]?.body ?? "").replaceAll(/--.*|'[^']*'|operator\(pg_catalog\.[^)]+\)|:=/g, "")
      assert.notMatch(operators, /[-=<>+*|~]/)
    })
  )
})
