/** The invoices and lines that deletions delete: which ones, when, together, and in one transaction with their tasks. */
import { assert, layer } from "@effect/vitest"
import { Arbitrary, Array, Context, DateTime, Effect, Layer, Record, Schema } from "effect"
import { TestClock } from "effect/testing"
import type { InvoiceDeletions } from "../../../src/api/IntakeApi.ts"
import type { Deletions } from "../../../src/deletions/Delivery.ts"
import { type Database, TaskDatabase } from "../../../src/database/Database.ts"
import * as Facts from "../../../src/deletions/Facts.ts"
import { makeScheduler, Scheduler } from "../../../src/deletions/Scheduler.ts"
import { keepingTimes } from "../../../src/records/Rows.ts"
import { invoices, lines, outcomeOf, owners, rowsOf, seedInvoices } from "../../support/deletions/invoiceFixture.ts"
import {
  atLength,
  claimAll,
  delay,
  deleted,
  delivery,
  inItsOwnTime,
  onDatabase,
  postgres,
  runOne,
  scheduled,
  suite
} from "../../support/deletions/support.ts"
import { settler, unsettled } from "../../support/deletions/sessions.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"

/** The verdict on an item, by the rules and not by the statement. */
const verdictOnInvoice = ({ client_id, clinic_id, invoice_id }: Deletions["invoices"][number]) => {
  const [, home, servicing, client] = invoices.find(([id]) => id === invoice_id) ?? []
  if (client === undefined) return "not_found"
  if (clinic_id !== null && clinic_id !== home && clinic_id !== servicing) return "clinic_mismatch"
  return client_id !== null && client_id !== client ? "client_mismatch" : "deleted"
}

const verdictOnLine = ({ clinic_id, invoice_id, invoice_line_id }: Deletions["invoice_lines"][number]) => {
  const [, of, clinic] = lines.find(([id]) => id === invoice_line_id) ?? []
  if (clinic === undefined) return "not_found"
  if (invoice_id !== null && invoice_id !== of) return "invoice_mismatch"
  return clinic_id !== null && clinic_id !== clinic ? "clinic_mismatch" : "deleted"
}

const countsOf = <Verdict extends string>(verdicts: ReadonlyArray<Verdict>) =>
  verdicts.reduce<Partial<Record<Verdict, number>>>((sum, each) => ({ ...sum, [each]: (sum[each] ?? 0) + 1 }), {})

/** The ids that a task deletes, and its outcome. */
const expected = ({ invoice_lines, invoices: named }: Deletions) => {
  const targets = new Set(
    named.filter((item) => verdictOnInvoice(item) === "deleted").map(({ invoice_id }) => invoice_id)
  )
  const ofInvoices = lines.flatMap(([id, of]) => (of !== null && targets.has(of) ? [id] : []))
  const alone = invoice_lines.filter((item) => verdictOnLine(item) === "deleted")
  return {
    ids: new Set([...targets, ...ofInvoices, ...alone.map(({ invoice_line_id }) => invoice_line_id)]),
    outcome: outcomeOf({
      invoices: countsOf(named.map(verdictOnInvoice)),
      invoice_lines: countsOf(invoice_lines.map(verdictOnLine)),
      lines_of_invoices: ofInvoices.length
    })
  }
}

const oneOf = <const L extends ReadonlyArray<string>>(...values: L) => Arbitrary.schema(Schema.Literals(values))

/** None more often than one of the values. */
const oneOrNone = (...values: ReadonlyArray<string>) =>
  Arbitrary.map(oneOf("", "", ...values), (value) => (value === "" ? null : value))

const ofClinic = oneOrNone("home", "servicing", "other")

/** Tasks of two organizations that have the same ids, and name the same ones in other ways. */
const someTasks = Arbitrary.array(
  Arbitrary.all({
    owner: oneOf(...owners),
    invoices: Arbitrary.array(
      Arbitrary.map(
        Arbitrary.all([oneOf("i1", "i2", "i3", "i4", "I1", "i1a"), ofClinic, oneOrNone("client", "other")]),
        ([invoice_id, clinic_id, client_id]) => ({ invoice_id, clinic_id, client_id })
      ),
      { maxLength: 3 }
    ),
    lines: Arbitrary.array(
      Arbitrary.map(
        Arbitrary.all([oneOf("i1a", "i1b", "i2a", "stray", "loose", "i1"), oneOrNone("i1", "nowhere"), ofClinic]),
        ([invoice_line_id, invoice_id, clinic_id]) => ({ invoice_line_id, invoice_id, clinic_id })
      ),
      { maxLength: 3 }
    )
  }),
  { minLength: 2, maxLength: 6 }
)

/** A publication of all tables refuses an UPDATE and a DELETE of any that has no key. */
const published = Layer.tap(
  TestDatabase.layerDatabases,
  (context) => Context.get(context, TestDatabase).sql`create publication everything for all tables`
)

layer(published, onDatabase)("a deletion", (it) => {
  for (const { scheduler, store } of postgres)
    it.effect.prop(
      `deletes what its items fit, in its organization alone, and counts the others (${store})`,
      { someTasks },
      ({ someTasks: given }) =>
        Effect.gen(function* () {
          const sql = yield* seedInvoices
          // Another organization has all these ids in rows that no item fits.
          yield* sql`
            insert into invoices (organization_id, id, home_clinic, client_id)
            select 'org_0', id, 'nowhere', 'nobody' from invoices where organization_id = 'org_a'`
          yield* sql`
            insert into invoice_lines (organization_id, id, invoice, clinic)
            select 'org_0', id, 'none', 'nowhere' from invoice_lines where organization_id = 'org_a'`
          const before = yield* rowsOf(sql)
          const tasks = yield* Effect.forEach(given, ({ invoices: named, lines: alone, owner }, index) => {
            const made = delivery(`${index}`, { invoices: named, invoice_lines: alone }, owner)
            return Effect.as(scheduled(made), made)
          })
          yield* TestClock.adjust(delay)
          const claims = yield* claimAll()
          const outcomes = yield* Effect.forEach(claims, runOne)
          for (const { deletions, taskId } of tasks) {
            const outcome = outcomes[claims.findIndex((claim) => claim.taskId === taskId)]
            assert.deepStrictEqual(outcome, expected(deletions).outcome)
          }
          const ids = owners.map((owner) =>
            tasks.flatMap(({ deletions, organization }) =>
              organization === owner ? Array.fromIterable(expected(deletions).ids) : []
            )
          )
          const rows = yield* rowsOf(sql)
          for (const [index, row] of rows.entries()) {
            const { id, is_deleted, owner } = row
            const named = ids[owners.findIndex((each) => each === owner)] ?? []
            assert.strictEqual(is_deleted, named.includes(id), `${owner}/${id}`)
            if (!is_deleted) assert.deepStrictEqual(row, before[index])
          }
        }).pipe(Effect.provide(Layer.fresh(scheduler)), inItsOwnTime),
      { arbitrary: { runs: 20, size: 20, maxShrinks: 50 } }
    )
})

const i1 = { invoices: [{ invoice_id: "i1" }] }
const minute = (number: number) => `2026-01-31 09:3${number}:00+00`
const last = "9999-12-31 23:59:59.999999+00"

suite("a deletion", postgres, {
  "keeps the first time of a deletion, and changes updated_at each time": Effect.gen(function* () {
    const sql = yield* seedInvoices
    const deletedRows = Effect.map(rowsOf(sql), (rows) => rows.filter(({ is_deleted }) => is_deleted))
    const times = Effect.map(deletedRows, (rows) => rows.map(({ deleted_at, id }) => [id, deleted_at]))
    const [first, second] = [minute(1), minute(2)]
    yield* deleted("a line", { invoice_lines: [{ invoice_line_id: "i1a" }] })
    yield* deleted("its invoice", i1)
    const kept = [
      ["i1", second],
      ["i1a", first],
      ["i1b", second]
    ]
    assert.deepStrictEqual(yield* times, kept)
    const before = yield* deletedRows
    yield* deleted("again", i1)
    assert.deepStrictEqual(yield* times, kept)
    for (const [index, { updated_at }] of (yield* deletedRows).entries()) {
      assert.isAbove(millisOf(updated_at), millisOf(before[index]?.updated_at))
    }
  }),
  "has an updated_at after one that is ahead of the clock": Effect.gen(function* () {
    for (const [before, after] of [
      ["2030-01-01 00:00:00.999999+00", "2030-01-01 00:00:01+00"],
      ["9999-12-31 23:59:59.999998+00", last],
      // None is later.
      [last, last]
    ] as const) {
      const sql = yield* seedInvoices
      yield* keepingTimes(
        sql,
        Effect.all([
          sql`update invoices set updated_at = ${before} where id = 'i1'`,
          sql`update invoice_lines set updated_at = ${before} where id in ('i1a', 'i1b')`
        ])
      )
      yield* deleted("i1", i1)
      const rows = yield* rowsOf(sql)
      const times = rows.flatMap((row) => (row.is_deleted ? [row.updated_at] : []))
      assert.deepStrictEqual(times, [after, after, after], before)
    }
  })
})

const millisOf = (time: string | null | undefined) =>
  time == null ? 0 : DateTime.toEpochMillis(DateTime.makeUnsafe(time))

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

/** The number of index entries that statements of a session read, of the tables of a condition. */
const readsOf = (session: Database, condition: string) =>
  Effect.fnUntraced(function* <A, E, R>(statements: Effect.Effect<A, E, R>) {
    const read = session<{ read: number }>`
      select sum(idx_tup_read)::integer as read from pg_stat_user_indexes where ${session.literal(condition)}`
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

suite("a deletion", postgres, {
  "scans no table of records: its plan may be from a time when there were few": Effect.gen(function* () {
    const sql = yield* seedInvoices
    yield* sql`analyze invoices, invoice_lines, deletions`
    const session = yield* clientOf((yield* TestDatabase).url)
    const both = { invoices: [{ invoice_id: "i1" }], invoice_lines: [{ invoice_line_id: "loose" }] }
    const scans = Effect.andThen(
      session`select pg_stat_force_next_flush()`,
      session`select relname, seq_scan from pg_stat_user_tables where relname in ('invoices', 'invoice_lines')`
    )
    const before = yield* scans
    yield* deletedIn(session, both)
    const { steps } = yield* Effect.provideService(settler, TaskDatabase, session)
    yield* steps(2)
    assert.strictEqual(yield* unsettled, 0)
    assert.deepStrictEqual(yield* scans, before)
  }),

  "looks rows up by their keys, also by statistics of a time when organizations had one": Effect.gen(function* () {
    const sql = yield* seedInvoices
    const rows = 3000
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
  })
})

suite(
  "a deletion",
  postgres,
  {
    "of invoices whose 6,000 lines their loader had deleted changes no line, and ends": Effect.gen(function* () {
      const sql = yield* seedInvoices
      yield* sql`insert into invoices (organization_id, id) select 'org_a', 'large' || n from generate_series(1, 300) n`
      yield* sql`
      insert into invoice_lines (organization_id, id, invoice, is_deleted, deleted_at)
      select 'org_a', 'large' || n, 'large' || n % 300 + 1, true, '2026-01-01' from generate_series(1, 6000) n`
      const marked = sql`
      select count(distinct change_position)::integer as changes, bool_and(deleted_at = '2026-01-01') as kept
      from invoice_lines where id like 'large%'`
      const before = yield* marked
      const large = Array.makeBy(300, (n) => ({ invoice_id: `large${n + 1}` }))
      const [claim] = yield* claimsFor({ invoices: large })
      assert.deepStrictEqual(
        claim && (yield* runOne(claim)),
        outcomeOf({ invoices: { deleted: 300 }, lines_of_invoices: 6000 })
      )
      assert.deepStrictEqual(yield* marked, before)
    }),

    "fires triggers of others, which find their tables as in any other session": Effect.gen(function* () {
      const sql = yield* seedInvoices
      yield* sql`create table seen (id text)`
      yield* sql`create function note_seen() returns trigger language plpgsql as $$ begin
      insert into seen values (new.id); return null; end $$`
      yield* sql`create trigger note_seen after update on invoices for each row execute function note_seen()`
      const [claim] = yield* claimsFor({ invoices: [{ invoice_id: "i1" }] })
      assert.deepInclude(claim && (yield* runOne(claim)), { lines_of_invoices: 2 })
      assert.deepStrictEqual<unknown>(yield* sql`select id from seen`, [{ id: "i1" }])
      yield* sql`drop function note_seen cascade`
    }),

    "reads the lines once, as long as a first load has no index of their invoices": Effect.gen(function* () {
      const sql = yield* seedInvoices
      yield* sql`drop index invoice_lines_search_invoice`
      yield* sql`insert into invoices (organization_id, id) select 'org_a', 'new' || n from generate_series(1, 200) n`
      yield* sql`
      insert into invoice_lines (organization_id, id, invoice)
      select 'org_a', 'new' || n, 'new' || n % 200 + 1 from generate_series(1, 800) n`
      const session = yield* clientOf((yield* TestDatabase).url)
      const read = Effect.andThen(
        session`select pg_stat_force_next_flush()`,
        session<{ rows: number }>`
        select (seq_tup_read + coalesce(idx_tup_fetch, 0))::integer as rows
        from pg_stat_user_tables where relname = 'invoice_lines'`
      )
      const [before] = yield* read
      yield* deletedIn(session, { invoices: Array.makeBy(200, (n) => ({ invoice_id: `new${n + 1}` })) })
      const [after] = yield* read
      // A scan for each invoice would read 160,000.
      assert.isBelow((after?.rows ?? 0) - (before?.rows ?? 0), 16_000)
    })
  },
  {
    "fires triggers of others, which find their tables as in any other session": "Citus moves no triggers of others",
    "reads the lines once, as long as a first load has no index of their invoices":
      "Citus counts reads on other servers"
  }
)

suite("a deletion", atLength, {
  "looks facts up by their keys, also by statistics of a time when tasks had one": Effect.gen(function* () {
    for (const owner of ["'org_a'", "'org' || n"]) {
      const sql = yield* seedInvoices
      yield* sql`
          insert into deletions (organization_id, task_id, kind, item, id, deleted_at, verdict, is_known)
          select ${sql.literal(owner)}, gen_random_uuid(), 'invoice', 1, 'old' || n, now(), 'not_found', true
          from generate_series(1, 3000) n`
      yield* sql`analyze invoices, invoice_lines, deletions`
      const session = yield* clientOf((yield* TestDatabase).url)
      const named = Array.makeBy(500, (n) => ({ invoice_id: `new${n}`, client_id: "client" }))
      const task = yield* deletedIn(session, { invoices: named })
      const readBy = readsOf(session, "relname = 'deletions'")
      const { steps } = yield* Effect.provideService(settler, TaskDatabase, session)
      yield* steps(3)
      const insert = session`
          insert into invoices (organization_id, id, client_id)
          select 'org_a', 'new' || n, 'client' from generate_series(0, 499) n`
      assert.isBelow(yield* readBy(insert), 50_000)
      assert.isBelow(yield* readBy(steps(3)), 50_000)
      yield* Effect.provideService(Facts.undo({ organization: "org_a", task }), TaskDatabase, session)
      assert.isBelow(yield* readBy(steps(3)), 50_000)
      assert.deepStrictEqual(yield* sql`select id from invoices where is_deleted`, [])
      assert.strictEqual(yield* unsettled, 0)
    }
  })
})

/** The claims of a task that is due. */
const claimsFor = Effect.fnUntraced(function* (deletions: InvoiceDeletions) {
  yield* scheduled(delivery("refused", deletions))
  yield* TestClock.adjust(delay)
  return yield* claimAll()
})

const raising = (code: string) => `raise exception 'i3 stays' using errcode = '${code}'`

/** The end of a run whose mark a trigger refuses. */
const refusals = {
  ...Record.fromIterableWith(["P0001", "42P01", "XX001", "0A000", "42501"], (code) => [raising(code), "failed"]),
  ...Record.fromIterableWith(["55P03", "53100", "57P01", "08006"], (code) => [raising(code), "postponed"]),
  "perform pg_terminate_backend(pg_backend_pid())": "postponed"
}

suite("a row that cannot be marked", postgres, {
  "fails its task, or postpones it where that was an outage or a lock, and keeps no other": Effect.gen(function* () {
    for (const [refusal, ending] of Object.entries(refusals)) {
      const sql = yield* seedInvoices
      yield* onUpdate("old.id = 'i3'", refusal)
      const [claim] = yield* claimsFor({ invoices: ["i1", "i3", "i2", "i4"].map((invoice_id) => ({ invoice_id })) })
      const outcome = claim && (yield* runOne(claim))
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
    const [claim] = yield* claimsFor({ invoices: [{ invoice_id: "i3" }] })
    const failed = { failed: "1 rows were not marked: A trigger dropped the change of a row" }
    assert.deepStrictEqual(claim && (yield* runOne(claim)), failed)
    yield* sql`drop trigger meddle on invoices`
    assert.deepStrictEqual(
      claim && (yield* runOne(claim)),
      outcomeOf({ invoices: { deleted: 1 }, lines_of_invoices: 1 })
    )
  }),
  "keeps none of 2,500 others, which are marked in several transactions": Effect.gen(function* () {
    const sql = yield* seedInvoices
    yield* sql`
      insert into invoice_lines (organization_id, id, invoice)
      select 'org_a', 'many' || n, 'i2' from generate_series(1, 2500) n`
    yield* sql`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'No'; end $$`
    yield* sql`create trigger refuse before update on invoice_lines for each row when (old.id = 'many1700') execute function refuse()`
    const [claim] = yield* claimsFor({ invoices: [{ invoice_id: "i2" }] })
    const outcome = claim && (yield* runOne(claim))
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
