/** Deletions as facts that outlive their rows, whoever writes these, and however. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import type { InvoiceDeletions } from "../../../src/api/IntakeApi.ts"
import * as Settling from "../../../src/deletions/Settling.ts"
import * as Loaders from "../../support/deletions/loaders.ts"
import { claimOne, completes, delay, delivery, scheduled, single, suite } from "../../support/deletions/support.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** Steps until nothing is left to be settled. */
const settled = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  const { step } = yield* Settling.make
  for (let steps = 0; steps < 6; steps++) yield* step
  assert.isEmpty(yield* sql`select id from deletion_tasks where unsettled_since is not null`)
})

/** Delivers a deletion, lets its time come, and runs it. */
const deleted = Effect.fnUntraced(function* (deletions: InvoiceDeletions) {
  yield* scheduled(delivery("deletion", deletions))
  yield* TestClock.adjust(delay)
  yield* completes(yield* claimOne())
})

const invoice = { invoices: [{ invoice_id: "x" }] }
const line = { invoice_lines: [{ invoice_line_id: "x1" }] }

const writes = { ...Loaders.ways, "truncate and reload": Loaders.reload }

suite(
  "after a deletion, a row stays deleted, or becomes it, and other columns are taken:",
  single,
  Object.fromEntries(
    Object.entries(writes).map(([name, { from, statements }]) => [
      name,
      Effect.gen(function* () {
        const write = yield* Loaders.session
        for (const [table, deletions] of [
          ["invoices", invoice],
          ["invoice_lines", line],
          ["invoice_lines", invoice]
        ] as const) {
          const { id } = Loaders.tables[table]
          yield* Loaders.begin({ invoices: undefined, invoice_lines: undefined, [table]: from(table) })
          yield* deleted(deletions)
          yield* settled
          const transaction = Effect.gen(function* () {
            yield* write("begin")
            const counts = yield* Effect.forEach(statements(table, "new"), write)
            yield* write("commit")
            return { count: counts.at(-1), rows: yield* Loaders.rows }
          })
          const before = yield* Loaders.rows
          const { count, rows } = yield* transaction
          const row = rows.get(id)
          assert.include(row, { is_deleted: true, agrees: true, field: "new" }, `${table}: ${name}`)
          assert.notStrictEqual(row?.position, before.get(id)?.position)
          assert.strictEqual(count, rows.has("n") ? 2 : 1)
          for (const [key, each] of rows)
            if (key !== id && !(key === "n" && table === "invoice_lines" && deletions === invoice))
              assert.isFalse(each.is_deleted, key)
          yield* settled
          assert.deepStrictEqual(yield* Loaders.rows, rows)
          if (from(table) !== id || statements(table, "new").length > 1) continue
          assert.deepStrictEqual((yield* transaction).rows, rows, "what changes nothing is no change")
        }
      })
    ])
  )
)
