/** Deletions as facts that outlive their rows, whoever writes these, and however. */
import { assert } from "@effect/vitest"
import { DateTime, Effect } from "effect"
import type { InvoiceDeletions } from "../../../src/api/IntakeApi.ts"
import { makeScheduler, Scheduler } from "../../../src/deletions/Scheduler.ts"
import * as Retention from "../../../src/deletions/Retention.ts"
import { elsewhere, settler } from "../../support/deletions/sessions.ts"
import * as Loaders from "./loaders.ts"
import { fits, inserting, insertX, insertX1, invoice, line, loaded, settled } from "./loaders.ts"
import { claimedFor, delay, deleted, runOne, suite } from "../../support/deletions/tasks.ts"
import { addFacts, addTasks, outcomeOf } from "../../support/deletions/invoiceFixture.ts"
import { readsOf, TestDatabase } from "../../support/TestDatabase.ts"

const writes = { ...Loaders.ways, "truncate and reload": Loaders.reload }

suite(
  "after a deletion, a row stays deleted, or becomes it, and other columns are taken:",
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
          yield* Loaders.begin({ [table]: from(table) })
          yield* deleted("deletion", deletions)
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
  ),
  { merge: "Citus refuses it", "merge of a new row": "Citus refuses it" }
)

const misfits = { invoices: [{ invoice_id: "x", client_id: "nobody" }] }

const verdicts = Effect.flatMap(
  TestDatabase,
  ({ sql }) => sql`select kind, verdict, holds from deletions order by kind`
)

const rule = (
  given: InvoiceDeletions,
  verdict: string,
  isDeleted: boolean,
  ...statements: ReadonlyArray<ReadonlyArray<string>>
) =>
  Effect.gen(function* () {
    yield* Loaders.begin()
    yield* deleted("deletion", given)
    yield* settled
    assert.deepStrictEqual(yield* loaded(...statements), [isDeleted, isDeleted])
    assert.deepStrictEqual(yield* verdicts, [{ kind: "invoice", verdict, holds: isDeleted }])
    const changed = ["update invoices set client_id = 'other', is_deleted = false where id = 'x'"]
    const back = ["update invoices set client_id = 'nobody' where id = 'x'"]
    const again = Loaders.ways["delete and insert"].statements("invoice_lines", "new")
    assert.deepStrictEqual(yield* loaded(changed, back, again), [isDeleted, isDeleted])
  })

suite("a deletion that came before its record is judged once, when it comes:", {
  "it is deleted, with a line before it": rule(invoice, "deleted", true, insertX1, insertX),
  "one that fits is deleted, with a line after it": rule(fits, "deleted", true, insertX, insertX1),
  "one that does not fit is served, with a line before it": rule(misfits, "client_mismatch", false, insertX1, insertX),
  "one that does not fit is served, with a line in one transaction": rule(misfits, "client_mismatch", false, [
    ...insertX1,
    ...insertX
  ])
})

suite("facts", {
  "are kept when their payload is emptied, but for those whose record never came": Effect.gen(function* () {
    yield* Loaders.begin({ invoices: "x" })
    yield* deleted("deletion", { ...invoice, ...line })
    yield* settled
    assert.strictEqual(yield* Retention.empty(yield* DateTime.now, 10), 1)
    yield* settled
    assert.deepStrictEqual(yield* verdicts, [{ kind: "invoice", verdict: "deleted", holds: true }])
    const alone = ["insert into invoice_lines (organization_id, id) values ('org_a', 'x1')"]
    assert.deepStrictEqual(yield* loaded(Loaders.ways.upsert.statements("invoices", "new"), alone), [true, false])
  }),
  "that have marked a line of an invoice that never came are kept, and are counted": Effect.gen(function* () {
    yield* Loaders.begin({ invoice_lines: "x1" })
    const claim = yield* claimedFor(invoice)
    assert.deepStrictEqual(yield* runOne(claim), outcomeOf({ invoices: { not_found: 1 }, lines_of_invoices: 1 }))
    yield* settled
    yield* Retention.empty(yield* DateTime.now, 10)
    yield* settled
    const again = Loaders.ways["delete and insert"].statements("invoice_lines", "new")
    assert.deepStrictEqual(yield* loaded(again), [undefined, true])
  }),
  "whose record came just before they would be forgotten are kept, also uncommitted": Effect.gen(function* () {
    for (const isOpen of [false, true]) {
      yield* Loaders.begin()
      const loader = yield* elsewhere
      yield* deleted("deletion", fits)
      const { step } = yield* settler
      yield* step
      const open = yield* inserting(loader)
      if (!isOpen) yield* open.commit
      assert.strictEqual(yield* Retention.empty(yield* DateTime.now, 10), 1)
      yield* step
      yield* open.commit
      yield* settled
      const again = Loaders.ways["delete and insert"].statements("invoices", "new")
      assert.deepStrictEqual(yield* loaded(again), [true, undefined], `${isOpen}`)
    }
  }),
  "of a task are not remembered beyond the bound of its organization": Effect.gen(function* () {
    const sql = yield* Loaders.begin({ invoices: "x" })
    yield* addFacts(10)
    yield* deleted("deletion", { ...invoice, ...line }).pipe(
      Effect.provideServiceEffect(Scheduler, makeScheduler(delay, undefined, 10))
    )
    yield* settled
    const own = sql`select verdict from deletions d join deletion_tasks t using (organization_id) where t.id = d.task_id`
    assert.deepStrictEqual(yield* own, [{ verdict: "deleted" }])
  }),
  "of other rows are not read by a statement, whatever its session wrote before": Effect.gen(function* () {
    const sql = yield* Loaders.begin()
    yield* addTasks(1, { organization_id: "'org_a'" })
    yield* addFacts(5000, { kind: "case n % 2 when 0 then 'invoice' else 'line' end", verdict: "'deleted'" })
    const insert = (from: number, to: number) => sql`
      insert into invoice_lines (organization_id, id, invoice)
      select 'org_a', 'a' || n, 'b' || n from generate_series(${from}::int, ${to}::int) n`
    const last = Effect.andThen(insert(1, 500), readsOf("deletions", insert(501, 501)))
    assert.strictEqual((yield* sql.withTransaction(last)).rows, 0)
  }),
  "are not looked for by writers that began while their organization had no task": Effect.gen(function* () {
    const sql = yield* Loaders.begin()
    yield* addFacts(2, { verdict: "'deleted'", id: "'named' || n" })
    const insert = (id: string) => sql`
      insert into invoices (organization_id, id) values ('org_b', ${id}), ('org_a', ${id})`
    const spared = yield* readsOf("deletions", insert("named1"))
    assert.strictEqual(spared.rows, 0)
    yield* addTasks(1, { organization_id: "'org_a'" })
    yield* insert("named2")
    const marked = yield* sql`select organization_id as owner from invoices where id = 'named2' and is_deleted`
    assert.deepStrictEqual<unknown>(marked, [{ owner: "org_a" }])
  })
})
