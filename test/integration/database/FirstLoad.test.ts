/** The statements of the operators' README for a first load, as they stand there. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { snippetsOf } from "../../support/snippets.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const load = snippetsOf("src/operations/README.md").find(({ code }) => code.includes("\\copy"))

/** The statements between `begin` and `commit`, each with what ends it. psql runs the rows of one that ends with \gexec. */
const statements = [
  ...(load?.code ?? "").replaceAll(/^(begin;|commit;)$/gm, "").matchAll(/\s*(\\?[^\\;]+?)\s*(;|\\gexec|\n(?=select))/g)
].map(([, text = "", end]) => ({ text, runsItsRows: end === "\\gexec" }))

layer(TestDatabase.layer, { excludeTestServices: true })("a first load", (it) => {
  it.effect("leaves the rows and the indexes that were there, each made after the rows", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const indexes = sql<{ definition: string; oid: number }>`
        select pg_get_indexdef(indexrelid) || ' ' || indisvalid as definition, indexrelid::int as oid
        from pg_index where indrelid = 'products'::regclass order by indisprimary desc, definition`
      const before = yield* indexes
      let copied = 0
      const run = Effect.fnUntraced(function* ({ runsItsRows, text }: (typeof statements)[number]) {
        if (text.startsWith("\\copy ")) {
          const columns = /^\\copy products (\(.*\)) from 'products\.csv' csv$/.exec(text)?.[1]
          assert.isDefined(columns, text)
          assert.lengthOf(yield* indexes, 1)
          yield* sql.unsafe(`insert into products ${columns}
            select 'org_new', 'product_' || n, 'clinic_1', 'CODE-' || n, 'Product' from generate_series(1, 100) n`)
          copied++
        } else if (runsItsRows) {
          const commands = (yield* sql.unsafe(text).values).flat()
          assert.lengthOf(commands, before.length - 1)
          yield* Effect.forEach(commands, (command) => sql.unsafe(String(command)), { discard: true })
        } else {
          yield* sql.unsafe(text)
        }
      })
      yield* sql.withTransaction(Effect.forEach(statements, run, { discard: true }))
      assert.strictEqual(copied, 1)
      const after = yield* indexes
      const [expected, found] = [before, after].map((all) => all.map(({ definition }) => definition))
      assert.deepStrictEqual(found, expected)
      assert.strictEqual(new Set([...before, ...after].map(({ oid }) => oid)).size, 2 * before.length - 1)
      const rows = yield* sql`select from products where organization_id = 'org_new' and record like '{"id":"product_%'`
      assert.lengthOf(rows, 100)
    })
  )
})
