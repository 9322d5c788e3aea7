/** Rows that the database refuses to mark: the end of their run, and the rows beside them. */
import { assert } from "@effect/vitest"
import { Effect, Record } from "effect"
import { outcomeOf, seedInvoices } from "../../support/deletions/invoiceFixture.ts"
import { claimedFor, runOne, suite } from "../../support/deletions/tasks.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** Runs SQL before an invoice is updated. */
const onUpdate = Effect.fnUntraced(function* (condition: string, body: string) {
  const { sql } = yield* TestDatabase
  yield* sql.unsafe(
    `create or replace function meddle() returns trigger language plpgsql as $$ begin ${body}; return new; end $$`
  )
  yield* sql.unsafe(
    `create or replace trigger meddle before update on invoices for each row when (${condition}) execute function meddle()`
  )
})

const raising = (code: string) => `raise exception 'i3 stays' using errcode = '${code}'`

/** The end of a run whose mark a trigger refuses. */
const refusals = {
  ...Record.fromIterableWith(["P0001", "42P01", "XX001", "0A000", "42501"], (code) => [raising(code), "failed"]),
  ...Record.fromIterableWith(["55P03", "53100", "57P01", "08006"], (code) => [raising(code), "postponed"]),
  "perform pg_terminate_backend(pg_backend_pid())": "postponed"
}

suite("a row that cannot be marked", {
  "fails its task, or postpones it where that was an outage or a lock, and keeps no other": Effect.gen(function* () {
    for (const [refusal, ending] of Object.entries(refusals)) {
      const sql = yield* seedInvoices
      yield* onUpdate("old.id = 'i3'", refusal)
      const claim = yield* claimedFor({ invoices: ["i1", "i3", "i2", "i4"].map((invoice_id) => ({ invoice_id })) })
      const outcome = yield* runOne(claim)
      assert.isTrue(outcome !== undefined && ending in outcome, refusal)
      if (ending === "postponed") continue
      assert.deepStrictEqual(yield* sql`select id from invoices where is_deleted order by 1`, [
        { id: "i1" },
        { id: "i2" },
        { id: "i4" }
      ])
      const [task] = yield* sql`select state, outcome from deletion_tasks`
      const counted = outcomeOf({ invoices: { deleted: 3, failed: 1 }, lines_of_invoices: 3 })
      assert.deepStrictEqual<unknown>(task, { state: "running", outcome: counted })
    }
    yield* Effect.flatMap(TestDatabase, ({ sql }) => sql`drop trigger meddle on invoices`)
  }),
  "is told from one that is held, where a trigger drops its change": Effect.gen(function* () {
    const sql = yield* seedInvoices
    yield* onUpdate("old.id = 'i3'", "return null")
    const claim = yield* claimedFor({ invoices: [{ invoice_id: "i3" }] })
    const failed = { failed: "1 rows were not marked: A trigger dropped the change of a row" }
    assert.deepStrictEqual(yield* runOne(claim), failed)
    yield* sql`drop trigger meddle on invoices`
    assert.deepStrictEqual(yield* runOne(claim), outcomeOf({ invoices: { deleted: 1 }, lines_of_invoices: 1 }))
  }),
  "keeps none of 2,500 others, which are marked in several transactions": Effect.gen(function* () {
    const sql = yield* seedInvoices
    yield* sql`
      insert into invoice_lines (organization_id, id, invoice)
      select 'org_a', 'many' || n, 'i2' from generate_series(1, 2500) n`
    yield* sql`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'No'; end $$`
    yield* sql`create trigger refuse before update on invoice_lines for each row when (old.id = 'many1700') execute function refuse()`
    const claim = yield* claimedFor({ invoices: [{ invoice_id: "i2" }] })
    const outcome = yield* runOne(claim)
    assert.isTrue(outcome !== undefined && "failed" in outcome)
    assert.lengthOf(
      yield* sql`select from invoice_lines where organization_id = 'org_a' and invoice = 'i2' and is_deleted`,
      2500
    )
    const [{ transactions } = { transactions: 0 }] = yield* sql<{ transactions: number }>`
      select count(distinct xmin::text)::integer as transactions from invoice_lines where id like 'many%'`
    assert.isAbove(transactions, 2)
    yield* sql`drop function refuse cascade`
  })
})
