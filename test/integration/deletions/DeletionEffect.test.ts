/**
 * How a deletion changes what it deletes, and that it does so in one transaction, for the worker that holds its task.
 * Decisions: "Invoice deletion intake", what the task does.
 */
import { assert } from "@effect/vitest"
import { DateTime, Effect, Schema } from "effect"
import { TestClock } from "effect/testing"
import { CurrentOrganization } from "../../../src/api/CurrentOrganization.ts"
import { invoiceLines } from "../../../src/api/records/InvoiceLines.ts"
import { invoices } from "../../../src/api/records/Invoices.ts"
import { RecordDatabase } from "../../../src/database/Database.ts"
import * as Postgres from "../../../src/records/Postgres.ts"
import {
  claimed,
  claimOne,
  delay,
  delivery,
  inItsOwnTime,
  overPostgres,
  runOne,
  scheduled,
  start
} from "../../support/deletions/support.ts"
import { deleted, deletedIds, outcomeOf, rowsOf, seedInvoices } from "../../support/deletions/invoiceFixture.ts"
import * as Pages from "../../../src/records/Pages.ts"

const readBody = Schema.decodeEffect(
  Schema.fromJsonString(
    Schema.Struct({
      body: Schema.Array(
        Schema.Struct({
          id: Schema.String,
          is_deleted: Schema.Boolean,
          deleted_at: Schema.NullOr(Schema.String),
          updated_at: Schema.String
        })
      )
    })
  )
)

const timeOf = (millis: number) => DateTime.formatIso(DateTime.makeUnsafe(millis))

overPostgres("a deletion", (it) => {
  it.effect("says when it was deleted, the first time, and changes updated_at each time", () =>
    Effect.gen(function* () {
      const sql = yield* seedInvoices
      const find = Effect.map(rowsOf(sql), (rows) => rows.filter((row) => row.is_deleted))
      yield* deleted({ invoice_lines: [{ invoice_line_id: "i1a" }] })
      yield* deleted({ invoices: [{ invoice_id: "i1" }] })
      const once = yield* find
      assert.deepStrictEqual(
        once.map(({ id, deleted_at }) => [id, deleted_at]),
        [
          ["i1", "2026-01-31 09:32:00+00"],
          ["i1a", "2026-01-31 09:31:00+00"],
          ["i1b", "2026-01-31 09:32:00+00"]
        ]
      )
      for (const row of once) assert.strictEqual(row.updated_at, "2026-01-31 09:32:00+00")
      yield* deleted({ invoices: [{ invoice_id: "i1" }] })
      for (const [index, row] of (yield* find).entries()) {
        assert.deepStrictEqual(row, { ...once[index], ...row, deleted_at: once[index]?.deleted_at ?? null })
        assert.strictEqual(row.updated_at, "2026-01-31 09:33:00+00")
      }
    }).pipe(inItsOwnTime)
  )

  it.effect("has an updated_at after the one before, also where that is ahead of the clock", () =>
    Effect.gen(function* () {
      const sql = yield* seedInvoices
      yield* sql`update invoices set updated_at = '2030-01-01 00:00:00.000009+00' where id = 'i1'`
      yield* sql`update invoice_lines set updated_at = '2030-01-01 00:00:00.999999+00' where id = 'i1a'`
      yield* deleted({ invoices: [{ invoice_id: "i1" }] })
      const rows = (yield* rowsOf(sql)).filter((row) => row.is_deleted)
      assert.deepStrictEqual(
        rows.map(({ updated_at }) => updated_at),
        ["2030-01-01 00:00:00.00001+00", "2030-01-01 00:00:01+00", "2026-01-31 09:31:00+00"]
      )
    }).pipe(inItsOwnTime)
  )

  it.effect("has the last time of the range for its updated_at where it cannot have a later one", () =>
    Effect.gen(function* () {
      const sql = yield* seedInvoices
      const last = "9999-12-31 23:59:59.999999+00"
      yield* sql`update invoices set updated_at = ${last}, deleted_at = ${last} where id in ('i1', 'i2')`
      yield* sql`update invoice_lines set updated_at = ${last} where id in ('i1a', 'loose')`
      yield* sql`update invoice_lines set updated_at = '9999-12-31 23:59:59.999998+00' where id = 'i1b'`
      const deletions = { invoices: [{ invoice_id: "i1" }], invoice_lines: [{ invoice_line_id: "loose" }] }
      for (const outcome of [yield* deleted(deletions), yield* deleted(deletions)]) {
        assert.deepStrictEqual(
          outcome,
          outcomeOf({ invoices: { deleted: 1 }, invoice_lines: { deleted: 1 }, lines_of_invoices: 2 })
        )
      }
      const rows = (yield* rowsOf(sql)).filter((row) => row.is_deleted)
      assert.deepStrictEqual(deletedIds(rows), ["i1", "i1a", "i1b", "loose"])
      assert.deepStrictEqual(new Set(rows.map(({ updated_at }) => updated_at)), new Set([last]))
      assert.strictEqual(rows[0]?.deleted_at, last)
    }).pipe(inItsOwnTime)
  )

  it.effect("is seen by a client that syncs: with include_deleted, after its last timestamp", () =>
    Effect.gen(function* () {
      yield* seedInvoices
      yield* deleted({ invoices: [{ invoice_id: "i1" }], invoice_lines: [{ invoice_line_id: "loose" }] })
      const at = timeOf(start + 60_000)
      const page = { limit: 100, offset: 0 }
      const records = yield* RecordDatabase
      for (const [resource, ids] of [
        [invoices, ["i1"]],
        [invoiceLines, ["i1a", "i1b", "loose"]]
      ] as const) {
        const repository = Postgres.make(records, resource)
        const synced = yield* repository.search({ include_deleted: true, updated_at_since: timeOf(start) }, page)
        assert.deepStrictEqual(
          (yield* readBody(Pages.toText(synced))).body,
          ids.map((id) => ({ id, is_deleted: true, deleted_at: at, updated_at: at }))
        )
        const others = (yield* readBody(Pages.toText(yield* repository.search({}, page)))).body
        assert.isNotEmpty(others)
        assert.isTrue(others.every((row) => !row.is_deleted))
      }
    }).pipe(inItsOwnTime, Effect.provideService(CurrentOrganization, CurrentOrganization.known("org_a")))
  )

  it.effect("that fails has changed nothing, and says why by a code, and not in the words of the database", () =>
    Effect.gen(function* () {
      const sql = yield* seedInvoices
      yield* sql`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'The row of % stays', old.id; end $$`
      yield* sql`create trigger refuse before update on invoice_lines for each row when (old.id = 'i1b') execute function refuse()`
      yield* scheduled(delivery("refused", { invoices: [{ invoice_id: "i1" }] }))
      yield* TestClock.adjust(delay)
      const claim = yield* claimOne()
      const before = yield* rowsOf(sql)
      const failure = yield* Effect.flip(runOne(claim))
      assert.strictEqual(failure._tag, "TaskFailed")
      assert.strictEqual(failure.message, "UnknownError P0001")
      assert.deepStrictEqual(yield* rowsOf(sql), before)
      yield* sql`drop function refuse() cascade`
      assert.strictEqual((yield* runOne(claim))._tag, "Completed")
      assert.deepStrictEqual(deletedIds(yield* rowsOf(sql)), ["i1", "i1a", "i1b"])
    }).pipe(inItsOwnTime)
  )

  it.effect("of a worker that was superseded changes nothing", () =>
    Effect.gen(function* () {
      const sql = yield* seedInvoices
      const { claim } = yield* claimed("superseded")
      yield* sql`update deletion_tasks set payload = '{"invoices":[{"invoice_id":"i1"}],"invoice_lines":[]}'`
      yield* TestClock.adjust("1 hour")
      const next = yield* claimOne()
      assert.deepStrictEqual(yield* runOne(claim), { _tag: "Superseded" })
      assert.isEmpty(deletedIds(yield* rowsOf(sql)))
      assert.strictEqual((yield* runOne(next))._tag, "Completed")
      assert.deepStrictEqual(deletedIds(yield* rowsOf(sql)), ["i1", "i1a", "i1b"])
    }).pipe(inItsOwnTime)
  )
})
