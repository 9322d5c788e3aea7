/** Deletions among transactions that are open beside them, and what the sweeps of workers apply again. */
import { assert } from "@effect/vitest"
import { DateTime, Effect } from "effect"
import { TestClock } from "effect/testing"
import * as Sweep from "../../../src/deletions/Sweep.ts"
import { addFacts } from "../../support/deletions/invoiceFixture.ts"
import { elsewhere, openTransaction, settler, unsettled } from "../../support/deletions/sessions.ts"
import * as Loaders from "./loaders.ts"
import { fits, inserting, insertX, invoice, line, loaded, settled } from "./loaders.ts"
import * as Task from "../../support/deletions/tasks.ts"

/** Claims of tasks that delete an invoice each. */
const claimsOf = Effect.fnUntraced(function* (...ids: ReadonlyArray<string>) {
  for (const invoice_id of ids) yield* Task.scheduled(Task.delivery(invoice_id, { invoices: [{ invoice_id }] }))
  yield* TestClock.adjust(Task.delay)
  return yield* Task.claimAll()
})

const noOrder = "Citus has no order of changes"

Task.suite(
  "deletions beside each other:",
  {
    "rows of a transaction that is older than all facts are marked once it ends": Effect.gen(function* () {
      yield* Loaders.begin({ invoices: "other" })
      const write = yield* Loaders.session
      yield* write("begin")
      yield* write("insert into invoices (organization_id, id) values ('org_a', 'first')")
      yield* Task.deleted("deletion", invoice)
      const { step } = yield* settler
      yield* step
      yield* Effect.forEach(insertX, write)
      yield* write("commit")
      yield* settled
      assert.isTrue((yield* Loaders.rows).get("x")?.is_deleted)
    }),
    "a row that a loader holds keeps its task alone, and nobody waits for it": Effect.gen(function* () {
      yield* Loaders.begin({ invoices: "x", invoice_lines: "x1" })
      const loader = yield* elsewhere
      const held = yield* openTransaction(loader, loader`update invoice_lines set total = 1 where id = 'x1'`)
      const outcomes = yield* Effect.forEach(yield* claimsOf("x", "y"), Task.runOne)
      assert.deepStrictEqual(outcomes.map(Task.isPostponed), [true, false])
      const { steps } = yield* settler
      yield* steps(3)
      const rows = yield* Loaders.rows
      const marks = ["x", "y", "x1", "y1"].map((id) => rows.get(id)?.is_deleted)
      assert.deepStrictEqual(marks, [true, true, false, true])
      yield* held.commit
      yield* steps(3)
      assert.isTrue((yield* Loaders.rows).get("x1")?.is_deleted)
      assert.strictEqual(yield* unsettled, 0)
    }),
    "no line is marked before its invoice: both have the time of one task": Effect.gen(function* () {
      const sql = yield* Loaders.begin({ invoices: "x", invoice_lines: "x1" })
      const loader = yield* elsewhere
      const held = yield* openTransaction(loader, loader`update invoices set total = 1 where id = 'x'`)
      yield* Task.scheduled(Task.delivery("other", invoice))
      const [one, other] = yield* claimsOf("x")
      if (one === undefined || other === undefined) return assert.fail("Two tasks are due")
      assert.isTrue(Task.isPostponed(yield* Task.runOne(one)))
      yield* held.commit
      yield* TestClock.adjust("1 second")
      assert.isFalse(Task.isPostponed(yield* Task.runOne(other)))
      const times = sql`select deleted_at from invoices where id = 'x' 
      union select deleted_at from invoice_lines where id = 'x1'`
      assert.deepStrictEqual(yield* times, [{ deleted_at: DateTime.toDate(yield* DateTime.now) }])
    }),
    "a row that was held when it was to be marked is marked soon after, whatever is open": Effect.gen(function* () {
      yield* Loaders.begin()
      const loader = yield* elsewhere
      const long = yield* openTransaction(loader, loader`select 1`)
      const open = yield* inserting(loader)
      yield* Task.deleted("deletion", invoice)
      const { step, steps } = yield* settler
      yield* step
      yield* open.commit
      const holding = yield* openTransaction(loader, loader`update invoices set total = 1 where id = 'x'`)
      yield* step
      yield* holding.commit
      yield* steps(2)
      assert.isTrue((yield* Loaders.rows).get("x")?.is_deleted)
      yield* long.commit
      yield* steps(2)
      assert.strictEqual(yield* unsettled, 0)
    }),
    "what a sweep has noted is noted again by that of another worker": Effect.gen(function* () {
      yield* Loaders.begin()
      const loader = yield* elsewhere
      const open = yield* inserting(loader)
      yield* Task.deleted("deletion", invoice)
      const [first, next] = [yield* Sweep.make, yield* Sweep.make]
      yield* first.step
      yield* next.step
      yield* open.commit
      yield* Effect.replicateEffect(next.step, 2)
      assert.isTrue((yield* Loaders.rows).get("x")?.is_deleted)
      assert.strictEqual(yield* unsettled, 0)
    }),
    "are settled while others prepare one transaction after another": Effect.gen(function* () {
      yield* Loaders.begin()
      const open = yield* inserting(yield* elsewhere)
      yield* Task.deleted("deletion", invoice)
      const { step } = yield* settler
      yield* step
      yield* open.commit
      const write = yield* Loaders.session
      for (const gid of ["1", "2", "3", "4"]) {
        yield* Effect.forEach(["begin", `prepare transaction '${gid}'`], write)
        yield* step
        yield* write(`commit prepared '${gid}'`)
      }
      assert.strictEqual(yield* unsettled, 0)
    }),
    "disabled triggers are enabled again, and what was written since is deleted or judged": Effect.gen(function* () {
      for (const given of [invoice, fits]) {
        const sql = yield* Loaders.begin()
        yield* Task.deleted("deletion", given)
        yield* settled
        yield* sql`alter table invoices disable trigger all`
        yield* sql`insert into invoices (organization_id, id, client_id, record, change_position)
          values ('org_a', 'x', 'k', '{}', 0)`
        yield* sql`select change_begin()`
        yield* settled
        assert.isTrue((yield* Loaders.rows).get("x")?.is_deleted)
        for (const name of ["upsert", "replicated delete and insert"] as const)
          assert.deepStrictEqual(
            yield* loaded(Loaders.ways[name].statements("invoices", name)),
            [true, undefined],
            name
          )
      }
    }),
    "are of the row as the triggers of others have made it": Effect.gen(function* () {
      const sql = yield* Loaders.begin()
      yield* Task.deleted("deletion", { ...invoice, ...line })
      yield* sql.unsafe(`create function mapped() returns trigger language plpgsql as $$ begin
      new.id := replace(new.id, 'raw ', ''); new.is_deleted := false; new.deleted_at := null; return new; end $$`)
      for (const table of ["invoices", "invoice_lines"]) {
        yield* sql.unsafe(
          `create trigger mapped before insert or update on ${table} for each row execute function mapped()`
        )
        yield* sql.unsafe(`alter table ${table} enable always trigger mapped`)
      }
      const replica = "set local session_replication_role = replica"
      const inserted = Object.entries(Loaders.tables).map(
        ([table, { id }]) => `insert into ${table} (organization_id, id) values ('org_a', 'raw ${id}')`
      )
      assert.deepStrictEqual(yield* loaded([replica, ...inserted]), [true, true])
      const updated = Object.keys(Loaders.tables).map((table) => `update ${table} set total = 1`)
      assert.deepStrictEqual(yield* loaded(updated), [true, true])
      yield* sql`drop function mapped cascade`
    }),
    "noted in another cluster, before a restore, are applied": Effect.gen(function* () {
      const sql = yield* Loaders.begin()
      yield* Task.deleted("deletion", invoice)
      yield* sql`update deletions_unsettled set written_by = '999999999999'`
      yield* settled
    }),
    "are not applied again where the triggers of another table were disabled": Effect.gen(function* () {
      const sql = yield* Loaders.begin()
      yield* Task.deleted("deletion", invoice)
      yield* settled
      yield* sql`alter table pets disable trigger removed`
      yield* sql`select change_begin()`
      assert.strictEqual(yield* unsettled, 0)
    }),
    "of 5,100 tasks are applied after a load without triggers, at once beside an open dump": Effect.gen(function* () {
      const sql = yield* Loaders.begin()
      yield* addFacts(5100, { verdict: "'deleted'", item: "1" })
      const dump = yield* elsewhere
      const open = yield* openTransaction(dump, dump`select pg_current_xact_id()::text`)
      yield* sql`alter table invoices disable trigger all`
      yield* sql`insert into invoices (organization_id, id, record, change_position)
        select 'org_a', 'i' || n, '{}', 0 from generate_series(1, 5100) n`
      yield* sql`select change_begin()`
      const { step } = yield* settler
      yield* step
      assert.lengthOf(yield* sql`select from invoices where id like 'i%' and not is_deleted`, 0)
      yield* open.rollback
      yield* settled
    }),
    "a row that refuses its mark keeps no other from it": Effect.gen(function* () {
      const sql = yield* Loaders.begin({ invoices: "x" })
      yield* sql`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'x'; end $$`
      yield* sql`
      create trigger refuse before update on invoices for each row when (old.id = 'x') execute function refuse()`
      const loader = yield* elsewhere
      const insert = loader`insert into invoices (organization_id, id) values ('org_a', 'n')`
      const open = yield* openTransaction(loader, insert)
      const outcomes = yield* Effect.forEach(yield* claimsOf("x", "n"), Task.runOne)
      const failures = outcomes.map((outcome) => outcome !== undefined && "failed" in outcome)
      assert.deepStrictEqual(failures, [true, false])
      const { step, steps } = yield* settler
      yield* step
      yield* open.commit
      yield* steps(3)
      assert.isTrue((yield* Loaders.rows).get("n")?.is_deleted)
      const left = sql<{ key: string }>`
      select distinct t.idempotency_key as key from deletion_tasks t join deletions_unsettled u using (organization_id) where u.task_id = t.id`
      assert.deepStrictEqual(yield* left, [{ key: "x" }])
      yield* sql`drop function refuse cascade`
      yield* steps(3)
      assert.isEmpty(yield* left)
      assert.isTrue((yield* Loaders.rows).get("x")?.is_deleted)
    })
  },
  {
    "disabled triggers are enabled again, and what was written since is deleted or judged": noOrder,
    "of 5,100 tasks are applied after a load without triggers, at once beside an open dump": noOrder,
    "are not applied again where the triggers of another table were disabled": noOrder
  }
)
