/**
 * Tasks that name the same invoices and lines: in any order, repeated, or many at once, they end in the same state, and
 * nobody hears of a deadlock.
 */
import { assert } from "@effect/vitest"
import { Arbitrary, Array, Effect, Order, Random } from "effect"
import { TestClock } from "effect/testing"
import type { InvoiceDeletions } from "../../../src/api/IntakeApi.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { integer } from "../../support/arbitraries.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { long, tries } from "../../support/tries.ts"
import {
  claimAll,
  delay,
  delivery,
  inItsOwnTime,
  overPostgres,
  scheduled,
  start
} from "../../support/deletions/support.ts"
import { type Marked, rowsOf } from "../../support/deletions/invoiceFixture.ts"

const invoices = 12

/** Invoices with three lines each, in an order of their own on the disk. */
const makeInvoices = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  yield* sql`truncate invoices, invoice_lines, deletion_tasks`
  yield* sql`
    insert into invoices (organization_id, id, created_at, updated_at)
    select 'org_a', 'invoice_' || n, '2026-01-01', '2026-01-01' from generate_series(1, ${invoices}::int) n
    order by md5(n::text)`
  yield* sql`
    insert into invoice_lines (organization_id, id, invoice, created_at, updated_at)
    select 'org_a', 'line_' || n || '_' || m, 'invoice_' || n, '2026-01-01', '2026-01-01'
    from generate_series(1, ${invoices}::int) n, generate_series(1, 3) m order by md5(n::text || m)`
  return sql
})

const invoice = Arbitrary.map(integer(1, invoices), (n) => ({ invoice_id: `invoice_${n}` }))

const line = Arbitrary.map(Arbitrary.all([integer(1, invoices), integer(1, 3)]), ([n, m]) => ({
  invoice_line_id: `line_${n}_${m}`
}))

const some = { minLength: 1, maxLength: 6 }

const tasks = Arbitrary.array(
  Arbitrary.all({ invoices: Arbitrary.array(invoice, some), invoice_lines: Arbitrary.array(line, some) }),
  { minLength: 20, maxLength: 20 }
)

/** How tasks run: how many claims at once, of how many tasks each. */
interface Running {
  readonly concurrency: number
  readonly together: number
}

/** What becomes of the rows when the tasks run in a random order. */
const stateAfter = Effect.fnUntraced(function* (
  deletions: ReadonlyArray<InvoiceDeletions>,
  { concurrency, together }: Running
) {
  const sql = yield* makeInvoices
  const { run } = yield* Scheduler
  yield* TestClock.setTime(start)
  yield* Effect.forEach(deletions, (task, index) => scheduled(delivery(`${index}`, task)))
  yield* TestClock.adjust(delay)
  const claims = yield* Effect.flatMap(claimAll(), Random.shuffle)
  assert.strictEqual(claims.length, deletions.length)
  const outcomes = yield* Effect.forEach(Array.chunksOf(claims, together), run, { concurrency })
  assert.isTrue(outcomes.flat().every(({ _tag }) => _tag === "Completed"))
  return yield* rowsOf(sql)
})

/** The ids that the tasks name, and the lines of the invoices among them. */
const named = (deletions: ReadonlyArray<InvoiceDeletions>) => {
  const ids = deletions.flatMap((task) => [
    ...(task.invoices ?? []).flatMap(({ invoice_id }) => [
      invoice_id,
      ...[1, 2, 3].map((m) => `${invoice_id.replace("invoice", "line")}_${m}`)
    ]),
    ...(task.invoice_lines ?? []).map(({ invoice_line_id }) => invoice_line_id)
  ])
  return Array.sort(new Set(ids), Order.String)
}

/** Rows without their updated_at: a row that several tasks of one transaction name is changed once. */
const marks = (rows: ReadonlyArray<Marked>) =>
  rows.map(({ owner, id, is_deleted, deleted_at }) => ({ owner, id, is_deleted, deleted_at }))

overPostgres("overlapping tasks", (it) => {
  for (const { often, options } of tries({ few: 1, many: 8, size: 20, maxShrinks: 20 }))
    it.effect.prop(
      `of one organization, 20 over 4 connections, end in the state of one after the other in any order${often}`,
      { tasks },
      ({ tasks: deletions }) =>
        Effect.gen(function* () {
          const expected = yield* stateAfter(deletions, { concurrency: 1, together: 1 })
          const deleted = expected.filter((row) => row.is_deleted).map(({ id }) => id)
          assert.deepStrictEqual(Array.sort(deleted, Order.String), named(deletions))
          for (const concurrency of [1, 4, 4]) {
            assert.deepStrictEqual(yield* stateAfter(deletions, { concurrency, together: 1 }), expected)
          }
          assert.deepStrictEqual(marks(yield* stateAfter(deletions, { concurrency: 4, together: 3 })), marks(expected))
        }).pipe(inItsOwnTime),
      options
    )

  const atOnce = [
    { batches: [1, 3], options: {} },
    { batches: [1, 1, 1, 2, 3, 5], options: long }
  ]
  for (const { batches, options } of atOnce)
    it.effect(
      `that all name everything, in orders of their own, by ${batches.join(", ")} at once, wait for each other and deadlock nobody`,
      () =>
        Effect.gen(function* () {
          const everything = yield* Effect.forEach(Array.range(1, 20), () =>
            Effect.map(Random.shuffle(Array.range(1, invoices)), (order) => ({
              invoices: order.map((n) => ({ invoice_id: `invoice_${n}` })),
              invoice_lines: order.map((n) => ({ invoice_line_id: `line_${n}_1` }))
            }))
          )
          for (const together of batches) {
            const rows = yield* stateAfter(everything, { concurrency: 4, together })
            assert.isTrue(rows.every((row) => row.is_deleted && row.deleted_at === "2026-01-31 09:31:00+00"))
          }
        }).pipe(inItsOwnTime),
      options
    )
})
