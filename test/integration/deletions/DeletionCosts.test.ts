/** What a deletion reads: its rows by their keys, whatever the statistics of the tables are. */
import { assert } from "@effect/vitest"
import { Array, Effect } from "effect"
import type { InvoiceDeletions } from "../../../src/api/IntakeApi.ts"
import { type Database, TaskDatabase } from "../../../src/database/Database.ts"
import * as Facts from "../../../src/deletions/Facts.ts"
import { makeScheduler, Scheduler } from "../../../src/deletions/Scheduler.ts"
import { addFacts, outcomeOf, seedInvoices } from "../../support/deletions/invoiceFixture.ts"
import { claimedFor, delay, deleted, runOne, suite } from "../../support/deletions/tasks.ts"
import { settler, unsettled } from "../../support/deletions/sessions.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"

/** The index entries that statements of a session read, of the tables of a condition; or another count of Postgres. */
const readsOf = (session: Database, condition: string, count = "idx_tup_read", counts = "pg_stat_user_indexes") =>
  Effect.fnUntraced(function* <A, E, R>(statements: Effect.Effect<A, E, R>) {
    const read = session<{ read: number }>`
      select sum(${session.literal(count)})::integer as read from ${session(counts)} where ${session.literal(condition)}`
    const flush = session`select pg_stat_force_next_flush()`
    yield* flush
    const [before] = yield* read
    yield* statements
    yield* flush
    const [after] = yield* read
    return (after?.read ?? 0) - (before?.read ?? 0)
  })

/** A deletion whose statements run in one session. */
const deletedIn = (session: Database, deletions: InvoiceDeletions) =>
  Effect.provideServiceEffect(
    deleted("1", deletions),
    Scheduler,
    Effect.provideService(makeScheduler(delay), TaskDatabase, session)
  )

suite(
  "a deletion",
  {
    "scans no table of records: its plan may be from a time when there were few": Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const session = yield* clientOf(url)
      // The counts of another session would come at any time.
      yield* Effect.provideService(seedInvoices, TestDatabase, { url, sql: session })
      yield* session`analyze invoices, invoice_lines, deletions`
      const both = { invoices: [{ invoice_id: "i1" }], invoice_lines: [{ invoice_line_id: "loose" }] }
      const scansBy = readsOf(session, "relname in ('invoices', 'invoice_lines')", "seq_scan", "pg_stat_user_tables")
      const { steps } = yield* Effect.provideService(settler, TaskDatabase, session)
      assert.strictEqual(yield* scansBy(Effect.andThen(deletedIn(session, both), steps(2))), 0)
      assert.strictEqual(yield* unsettled, 0)
    }),
    "looks rows up by their keys, also by statistics of a time when organizations had one": Effect.gen(function* () {
      const sql = yield* seedInvoices
      const rows = 1000
      yield* sql`delete from invoices where id <> 'i1'`
      yield* sql`delete from invoice_lines where id <> 'i1a'`
      const add = (organization: string) => sql`
      with many as (
        insert into invoices (organization_id, id)
        select ${sql.literal(organization)}, 'new' || n from generate_series(1, ${rows}::integer) n
      )
      insert into invoice_lines (organization_id, id, invoice)
      select ${sql.literal(organization)}, 'new' || n, 'new' || n from generate_series(1, ${rows}::integer) n`
      yield* add("'org' || n")
      yield* sql`analyze invoices, invoice_lines, deletions`
      yield* add("'org_a'")
      const session = yield* clientOf((yield* TestDatabase).url)
      const readBy = readsOf(session, "relname in ('invoices', 'invoice_lines')")
      const named = ["i1", "new7", "next"].map((invoice_id) => ({ invoice_id }))
      assert.isBelow(yield* readBy(deletedIn(session, { invoices: named })), 100)
      const insert = session`
      with invoice as (insert into invoices (organization_id, id) values ('org_a', 'next'))
      insert into invoice_lines (organization_id, id, invoice) values ('org_a', 'next', 'next')`
      assert.isBelow(yield* readBy(insert), 100)
    }),
    "reads the lines of its invoices alone, however many are deleted": Effect.gen(function* () {
      const sql = yield* seedInvoices
      yield* sql`analyze invoices, invoice_lines, deletions`
      yield* sql`
      insert into invoice_lines (organization_id, id, invoice, is_deleted, deleted_at)
      select 'org_a', 'old' || n, 'old', true, '2026-01-01' from generate_series(1, 1000) n`
      const session = yield* clientOf((yield* TestDatabase).url)
      const readBy = readsOf(session, "relname = 'invoice_lines'")
      assert.isBelow(yield* readBy(deletedIn(session, { invoices: [{ invoice_id: "i1" }] })), 100)
    }),
    "of invoices whose 2,400 lines their loader had deleted changes no line, and ends": Effect.gen(function* () {
      const sql = yield* seedInvoices
      yield* sql`insert into invoices (organization_id, id) select 'org_a', 'large' || n from generate_series(1, 300) n`
      yield* sql`
      insert into invoice_lines (organization_id, id, invoice, is_deleted, deleted_at)
      select 'org_a', 'large' || n, 'large' || n % 300 + 1, true, '2026-01-01' from generate_series(1, 2400) n`
      const marked = sql`
      select count(distinct change_position)::integer as changes, bool_and(deleted_at = '2026-01-01') as kept
      from invoice_lines where id like 'large%'`
      const before = yield* marked
      const large = Array.makeBy(300, (n) => ({ invoice_id: `large${n + 1}` }))
      const claim = yield* claimedFor({ invoices: large })
      assert.deepStrictEqual(yield* runOne(claim), outcomeOf({ invoices: { deleted: 300 }, lines_of_invoices: 2400 }))
      assert.deepStrictEqual(yield* marked, before)
    }),
    "looks facts up by their keys, also by statistics of a time when tasks had one": Effect.gen(function* () {
      for (const organization_id of ["'org_a'", "'org' || n"]) {
        const sql = yield* seedInvoices
        yield* addFacts(3000, { organization_id, item: "1", id: "'old' || n" })
        yield* sql`analyze invoices, invoice_lines, deletions`
        const session = yield* clientOf((yield* TestDatabase).url)
        const named = Array.makeBy(200, (n) => ({ invoice_id: `new${n}`, client_id: "client" }))
        const task = yield* deletedIn(session, { invoices: named })
        const readBy = readsOf(session, "relname = 'deletions'")
        const { steps } = yield* Effect.provideService(settler, TaskDatabase, session)
        yield* steps(3)
        const insert = session`
          insert into invoices (organization_id, id, client_id)
          select 'org_a', 'new' || n, 'client' from generate_series(0, 199) n`
        assert.isBelow(yield* readBy(insert), 20_000)
        assert.isBelow(yield* readBy(steps(3)), 20_000)
        yield* Effect.provideService(Facts.undo({ organization: "org_a", task }), TaskDatabase, session)
        assert.isBelow(yield* readBy(steps(3)), 20_000)
        assert.deepStrictEqual(yield* sql`select id from invoices where is_deleted`, [])
        assert.strictEqual(yield* unsettled, 0)
      }
    }),
    "reads the lines once, as long as a first load has no index of their invoices": Effect.gen(function* () {
      const sql = yield* seedInvoices
      yield* sql`drop index invoice_lines_search_invoice`
      yield* sql`insert into invoices (organization_id, id) select 'org_a', 'new' || n from generate_series(1, 200) n`
      yield* sql`
      insert into invoice_lines (organization_id, id, invoice)
      select 'org_a', 'new' || n, 'new' || n % 200 + 1 from generate_series(1, 800) n`
      const session = yield* clientOf((yield* TestDatabase).url)
      const rows = "seq_tup_read + coalesce(idx_tup_fetch, 0)"
      const readBy = readsOf(session, "relname = 'invoice_lines'", rows, "pg_stat_user_tables")
      const invoices = Array.makeBy(200, (n) => ({ invoice_id: `new${n + 1}` }))
      // A scan for each invoice would read 160,000.
      assert.isBelow(yield* readBy(deletedIn(session, { invoices })), 16_000)
    })
  },
  {
    "reads the lines once, as long as a first load has no index of their invoices":
      "Citus counts reads on other servers"
  }
)
