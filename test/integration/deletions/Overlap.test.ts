/** Tasks that name the same rows: in any order, repeated or at once, they end in the same state, without a deadlock. */
import { assert } from "@effect/vitest"
import { Array, Effect, Random } from "effect"
import { TestClock } from "effect/testing"
import type { InvoiceDeletions } from "../../../src/api/IntakeApi.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { type Marked, rowsOf } from "../../support/deletions/invoiceFixture.ts"
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

/** A task that names some invoices, and a line of others, in an order of its own. */
const someTask = (size: number) =>
  Effect.map(
    Effect.all([Random.shuffle(invoices), Random.shuffle(invoices)]),
    ([ofInvoices, ofLines]): InvoiceDeletions => ({
      invoices: Array.fromIterable(ofInvoices)
        .slice(0, size)
        .map((n) => ({ invoice_id: `invoice_${n}` })),
      invoice_lines: Array.fromIterable(ofLines)
        .slice(0, size)
        .map((n) => ({ invoice_line_id: `line_${n}_1` }))
    })
  )

/** The rows after the tasks have run in a random order, four transactions at once, each of so many tasks. */
const stateAfter = Effect.fnUntraced(function* (
  deletions: ReadonlyArray<InvoiceDeletions>,
  together: number,
  concurrency = 4
) {
  const sql = yield* makeInvoices
  const { run } = yield* Scheduler
  yield* TestClock.setTime(start)
  yield* Effect.forEach(deletions, (task, index) => scheduled(delivery(`${index}`, task)))
  yield* TestClock.adjust(delay)
  const claims = yield* Effect.flatMap(claimAll(), Random.shuffle)
  const outcomes = yield* Effect.forEach(Array.chunksOf(claims, together), run, { concurrency })
  assert.deepStrictEqual(
    outcomes.flat().map(({ _tag }) => _tag),
    deletions.map(() => "Completed")
  )
  return yield* rowsOf(sql)
})

const marks = (rows: ReadonlyArray<Marked>) => rows.map(({ deleted_at, id }) => [id, deleted_at])

overPostgres("overlapping tasks", (it) => {
  it.effect("end in the state of one after the other, in any order", () =>
    Effect.gen(function* () {
      const tasks = yield* Effect.replicateEffect(someTask(3), 20)
      const expected = yield* stateAfter(tasks, 1, 1)
      assert.deepStrictEqual(yield* stateAfter(tasks, 1), expected)
      // A row that several tasks of one transaction name is changed once.
      assert.deepStrictEqual(marks(yield* stateAfter(tasks, 3)), marks(expected))
    }).pipe(inItsOwnTime)
  )

  it.effect.each([1, 3])("that all name everything wait for each other, %d in a transaction", (together) =>
    Effect.gen(function* () {
      const rows = yield* stateAfter(yield* Effect.replicateEffect(someTask(12), 20), together)
      assert.isTrue(rows.every((row) => row.deleted_at === "2026-01-31 09:31:00+00"))
    }).pipe(inItsOwnTime)
  )
})
