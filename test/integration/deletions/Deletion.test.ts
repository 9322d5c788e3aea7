/** The invoices and lines that deletions delete: which ones, when, in one transaction with their tasks, and beside rows that the database refuses to mark. */
import { assert, layer } from "@effect/vitest"
import { Arbitrary, Array, Context, DateTime, Effect, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import type { Deletions } from "../../../src/deletions/Delivery.ts"
import { decodeTexts } from "../../../src/database/Columns.ts"
import { keepingTimes } from "../../../src/records/Rows.ts"
import { invoices, lines, outcomeOf, owners, rowsOf, seedInvoices } from "../../support/deletions/invoiceFixture.ts"
import * as Task from "../../support/deletions/tasks.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

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

layer(published, Task.onDatabase)("a deletion", (it) => {
  it.effect.prop(
    "deletes what its items fit, in its organization alone, and counts the others",
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
          const made = Task.delivery(`${index}`, { invoices: named, invoice_lines: alone }, owner)
          return Effect.as(Task.scheduled(made), made)
        })
        yield* TestClock.adjust(Task.delay)
        const claims = yield* Task.claimAll()
        const outcomes = yield* Effect.forEach(claims, Task.runOne)
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
      }).pipe(Effect.provide(Layer.fresh(Task.layerPostgres)), Task.inItsOwnTime),
    { arbitrary: { runs: 10, size: 20, maxShrinks: 50 } }
  )
})

const millisOf = (time: string | null | undefined) =>
  time == null ? 0 : DateTime.toEpochMillis(DateTime.makeUnsafe(time))

const i1 = { invoices: [{ invoice_id: "i1" }] }
const minute = (number: number) => `2026-01-31 09:3${number}:00+00`

Task.suite(
  "a deletion",
  {
    "keeps the first time of a deletion, and changes updated_at each time": Effect.gen(function* () {
      const sql = yield* seedInvoices
      const deletedRows = Effect.map(rowsOf(sql), (rows) => rows.filter(({ is_deleted }) => is_deleted))
      const times = Effect.map(deletedRows, (rows) => rows.map(({ deleted_at, id }) => `${id} ${deleted_at}`))
      const [first, second] = [minute(1), minute(2)]
      yield* Task.deleted("a line", { invoice_lines: [{ invoice_line_id: "i1a" }] })
      yield* Task.deleted("its invoice", i1)
      const kept = [`i1 ${second}`, `i1a ${first}`, `i1b ${second}`]
      assert.deepStrictEqual(yield* times, kept)
      const before = yield* deletedRows
      yield* Task.deleted("again", i1)
      assert.deepStrictEqual(yield* times, kept)
      for (const [index, { updated_at }] of (yield* deletedRows).entries())
        assert.isAbove(millisOf(updated_at), millisOf(before[index]?.updated_at))
    }),
    "has an updated_at after one that is ahead of the clock": Effect.gen(function* () {
      const last = "9999-12-31 23:59:59.999999+00"
      for (const [before, after] of [
        ["2030-01-01 00:00:00.999999+00", "2030-01-01 00:00:01+00"],
        ["9999-12-31 23:59:59.999998+00", last],
        // None is later.
        [last, last]
      ] as const) {
        const sql = yield* seedInvoices
        yield* keepingTimes(
          sql,
          Effect.andThen(
            sql`update invoices set updated_at = ${before} where id = 'i1'`,
            sql`update invoice_lines set updated_at = ${before} where id in ('i1a', 'i1b')`
          )
        )
        yield* Task.deleted("i1", i1)
        const times = (yield* rowsOf(sql)).flatMap((row) => (row.is_deleted ? [row.updated_at] : []))
        assert.deepStrictEqual(times, [after, after, after], before)
      }
    }),
    "fires triggers of others, which find their tables as in any other session": Effect.gen(function* () {
      const sql = yield* seedInvoices
      yield* sql`create table seen (id text)`
      yield* sql`create function note_seen() returns trigger language plpgsql as $$ begin
      insert into seen values (new.id); return null; end $$`
      yield* sql`create trigger note_seen after update on invoices for each row execute function note_seen()`
      const claim = yield* Task.claimedFor({ invoices: [{ invoice_id: "i1" }] })
      assert.deepInclude(yield* Task.runOne(claim), { lines_of_invoices: 2 })
      assert.deepStrictEqual<unknown>(yield* sql`select id from seen`, [{ id: "i1" }])
      yield* sql`drop function note_seen cascade`
    })
  },
  { "fires triggers of others, which find their tables as in any other session": "Citus moves no triggers of others" }
)

/** Runs SQL before the invoice i3 is updated. */
const onUpdate = Effect.fnUntraced(function* (body: string) {
  const { sql } = yield* TestDatabase
  yield* sql.unsafe(
    `create or replace function meddle() returns trigger language plpgsql as $$ begin ${body}; return new; end $$`
  )
  yield* sql`
    create or replace trigger meddle before update on invoices for each row when (old.id = 'i3') execute function meddle()`
})

const raising = (code: string) => `raise exception 'i3 stays' using errcode = '${code}'`

/** What a trigger does instead of a mark, and the reason why the task fails; none if it is postponed. */
const refusals: ReadonlyArray<readonly [does: string, reason?: string]> = [
  ...["UnknownError P0001", "SqlSyntaxError 42P01", "UnknownError XX001", "AuthorizationError 42501"].map(
    (reason) => [raising(reason.slice(-5)), `1 rows were not marked: ${reason}`] as const
  ),
  ...["55P03", "53100", "57P01", "08006"].map((code) => [raising(code)] as const),
  ["perform pg_terminate_backend(pg_backend_pid())"]
]

Task.suite("a row that cannot be marked", {
  "fails its task, or postpones it where that was an outage or a lock, and keeps no other": Effect.gen(function* () {
    for (const [refusal, failed] of refusals) {
      const sql = yield* seedInvoices
      yield* onUpdate(refusal)
      const claim = yield* Task.claimedFor({ invoices: ["i1", "i3", "i2", "i4"].map((invoice_id) => ({ invoice_id })) })
      const outcome = yield* Task.runOne(claim)
      if (failed === undefined) {
        assert.isTrue(Task.isPostponed(outcome), refusal)
        continue
      }
      assert.deepStrictEqual(outcome, { failed })
      const marked = yield* decodeTexts(sql`select id as text from invoices where is_deleted order by 1`)
      assert.deepStrictEqual(marked, ["i1", "i2", "i4"])
      const [task] = yield* sql`select state, outcome from deletion_tasks`
      const counted = outcomeOf({ invoices: { deleted: 3, failed: 1 }, lines_of_invoices: 3 })
      assert.deepStrictEqual<unknown>(task, { state: "running", outcome: counted })
    }
    yield* Effect.flatMap(TestDatabase, ({ sql }) => sql`drop trigger meddle on invoices`)
  }),
  "is told from one that is held, where a trigger drops its change": Effect.gen(function* () {
    const sql = yield* seedInvoices
    yield* onUpdate("return null")
    const claim = yield* Task.claimedFor({ invoices: [{ invoice_id: "i3" }] })
    const failed = { failed: "1 rows were not marked: A trigger dropped the change of a row" }
    assert.deepStrictEqual(yield* Task.runOne(claim), failed)
    yield* sql`drop trigger meddle on invoices`
    assert.deepStrictEqual(yield* Task.runOne(claim), outcomeOf({ invoices: { deleted: 1 }, lines_of_invoices: 1 }))
  }),
  "keeps none of 1,250 others, which are marked in several transactions": Effect.gen(function* () {
    const sql = yield* seedInvoices
    yield* sql`
      insert into invoice_lines (organization_id, id, invoice)
      select 'org_a', 'many' || n, 'i2' from generate_series(1, 1250) n`
    yield* sql`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'No'; end $$`
    yield* sql`create trigger refuse before update on invoice_lines for each row when (old.id = 'many700') execute function refuse()`
    const claim = yield* Task.claimedFor({ invoices: [{ invoice_id: "i2" }] })
    const outcome = yield* Task.runOne(claim)
    assert.isTrue(outcome !== undefined && "failed" in outcome)
    const marked = yield* sql`
      select count(*)::integer as lines, count(distinct xmin::text) > 2 as "isInSeveral" from invoice_lines
      where organization_id = 'org_a' and invoice = 'i2' and is_deleted`
    assert.deepStrictEqual(marked, [{ lines: 1250, isInSeveral: true }])
    yield* sql`drop function refuse cascade`
  }),
  "keeps no row that was deleted before from a new updated_at, which it gets once": Effect.gen(function* () {
    const sql = yield* seedInvoices
    const before = "2026-01-01 00:00:00+00"
    const loaded = sql`update invoice_lines set is_deleted = true, deleted_at = ${before} where id = 'i3a'`
    yield* keepingTimes(sql, loaded)
    yield* onUpdate(raising("P0001"))
    const claim = yield* Task.claimedFor({
      invoices: [{ invoice_id: "i3" }],
      invoice_lines: [{ invoice_line_id: "i3a" }]
    })
    const line = Effect.map(rowsOf(sql), (rows) => rows.find(({ id }) => id === "i3a"))
    const unchanged = yield* line
    yield* Task.runOne(claim)
    const changed = yield* line
    assert.strictEqual(changed?.deleted_at, before)
    assert.isAbove(millisOf(changed?.updated_at), millisOf(unchanged?.updated_at))
    yield* Task.runOne(claim)
    assert.deepStrictEqual(yield* line, changed)
    yield* sql`drop trigger meddle on invoices`
  })
})
