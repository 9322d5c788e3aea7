/** Tasks that name the same rows, in any order and at once, end without a deadlock. */
import { assert } from "@effect/vitest"
import { Array, Effect, Random } from "effect"
import { TestClock } from "effect/testing"
import type { InvoiceDeletions } from "../../../src/api/IntakeApi.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { rowsOf } from "../../support/deletions/invoiceFixture.ts"
import {
  claimAll,
  delay,
  delivery,
  inItsOwnTime,
  overPostgres,
  scheduled,
  start
} from "../../support/deletions/support.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const invoices = Array.range(1, 12)

/** Invoices with three lines each, in an order of their own on the disk. */
const makeInvoices = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  yield* sql`truncate invoices, invoice_lines, deletion_tasks`
  yield* sql`
    insert into invoices (organization_id, id, created_at, updated_at)
    select 'org_a', 'invoice_' || n, '2026-01-01', '2026-01-01' from generate_series(1, 12) n order by md5(n::text)`
  yield* sql`
    insert into invoice_lines (organization_id, id, invoice, created_at, updated_at)
    select 'org_a', 'line_' || n || '_' || m, 'invoice_' || n, '2026-01-01', '2026-01-01'
    from generate_series(1, 12) n, generate_series(1, 3) m order by md5(n::text || m)`
  return sql
})

/** A task that names all invoices, and a line of each, in an order of its own. */
const someTask = Effect.map(
  Effect.all([Random.shuffle(invoices), Random.shuffle(invoices)]),
  ([ofInvoices, ofLines]): InvoiceDeletions => ({
    invoices: Array.fromIterable(ofInvoices).map((n) => ({ invoice_id: `invoice_${n}` })),
    invoice_lines: Array.fromIterable(ofLines).map((n) => ({ invoice_line_id: `line_${n}_1` }))
  })
)

/** The rows after the tasks have run in a random order, four transactions at once, each of so many tasks. */
const stateAfter = Effect.fnUntraced(function* (deletions: ReadonlyArray<InvoiceDeletions>, together: number) {
  const sql = yield* makeInvoices
  const { run } = yield* Scheduler
  yield* TestClock.setTime(start)
  yield* Effect.forEach(deletions, (task, index) => scheduled(delivery(`${index}`, task)))
  yield* TestClock.adjust(delay)
  const claims = yield* Effect.flatMap(claimAll(), Random.shuffle)
  const outcomes = yield* Effect.forEach(Array.chunksOf(claims, together), run, { concurrency: 4 })
  assert.deepStrictEqual(
    outcomes.flat().map(({ _tag }) => _tag),
    deletions.map(() => "Completed")
  )
  return yield* rowsOf(sql)
})

overPostgres("overlapping tasks", (it) => {
  it.effect.each([1, 3])("that all name everything wait for each other, %d in a transaction", (together) =>
    Effect.gen(function* () {
      const rows = yield* stateAfter(yield* Effect.replicateEffect(someTask, 20), together)
      assert.isTrue(rows.every((row) => row.deleted_at === "2026-01-31 09:31:00+00"))
    }).pipe(inItsOwnTime)
  )
})
