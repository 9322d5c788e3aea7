/** The way back: deletions that operators undo, and tasks that they cancel. */
import { userInfo } from "node:os"
import { assert } from "@effect/vitest"
import { DateTime, Duration, Effect } from "effect"
import { TestClock } from "effect/testing"
import { Outcome, type State } from "../../../src/api/DeletionTasks.ts"
import type { InvoiceDeletions } from "../../../src/api/IntakeApi.ts"
import { decodeTexts } from "../../../src/database/Columns.ts"
import { TaskDatabase } from "../../../src/database/Database.ts"
import * as Facts from "../../../src/deletions/Facts.ts"
import * as Marks from "../../../src/deletions/Marks.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { maximumAttempts } from "../../../src/deletions/Retries.ts"
import * as Tasks from "../../../src/deletions/OperatorTasks.ts"
import * as Retention from "../../../src/deletions/Retention.ts"
import * as Commands from "../../../src/operations/Commands.ts"
import { addFacts, rowsOf, seedInvoices } from "../../support/deletions/invoiceFixture.ts"
import { elsewhere, openTransaction, settler, unsettled } from "../../support/deletions/sessions.ts"
import * as Task from "../../support/deletions/tasks.ts"
import { clientOf, readsOf, TestDatabase } from "../../support/TestDatabase.ts"

const organization = "org_a"
const invoice = (id: string): InvoiceDeletions => ({ invoices: [{ invoice_id: id }] })

const undo = (target: Facts.Target) => Commands.undoDeletions(target)
const undoTask = (task: string) => undo({ organization, task })
const undoInvoice = (id: string) => undo({ organization, kind: "invoice", id })
const undoLine = (id: string) => undo({ organization, kind: "line", id })

/** Settles while no transaction is open. */
const settles = Effect.flatMap(settler, ({ steps }) => steps(3))

const deletedIds = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  return (yield* rowsOf(sql)).filter((row) => row.owner === organization && row.is_deleted).map(({ id }) => id)
})

/** A task that has marked all of its rows but a line, which another session holds. */
const postponed = Effect.gen(function* () {
  const [sql, other] = [yield* seedInvoices, yield* elsewhere]
  const line = other`select from invoice_lines where organization_id = 'org_a' and id = 'i1a' for update`
  const held = yield* openTransaction(other, line)
  const claim = yield* Task.claimedFor({ invoices: [{ invoice_id: "i1" }, { invoice_id: "i2" }] })
  assert.isTrue(Task.isPostponed(yield* Task.runOne(claim)))
  return { claim, held, sql }
})

const isServed = Effect.map(deletedIds, (ids) => assert.deepStrictEqual(ids, []))

Task.suite("an undone deletion", {
  "brings back an invoice with its lines, told as changes, once in the audit log": Effect.gen(function* () {
    const sql = yield* seedInvoices
    const task = yield* Task.deleted("1", { ...invoice("i1"), invoice_lines: [{ invoice_line_id: "loose" }] })
    yield* settles
    assert.deepStrictEqual(yield* deletedIds, ["i1", "i1a", "i1b", "loose"])
    const [before] = yield* sql`select max(change_position) as position, now() as time from invoices`
    // As after TASK_RETENTION.
    yield* sql`update deletion_tasks set payload = null`
    assert.strictEqual(yield* undoTask(task), 2)
    assert.strictEqual(yield* undoTask(task), 0)
    assert.strictEqual(yield* unsettled, 1)
    yield* settles
    yield* isServed
    assert.strictEqual(yield* unsettled, 0)
    const changed = yield* sql`
      select id from invoices
      where change_position > ${before?.["position"]} and updated_at > ${before?.["time"]} and deleted_at is null`
    assert.deepStrictEqual(changed, [{ id: "i1" }])
    const log = yield* decodeTexts(sql`
      select concat_ws(' ', organization_id, actor, action, result) as text from audit_log where target = ${task}`)
    assert.deepStrictEqual(log, [`${organization} ${userInfo().username} deletions.undo 2 undone`])
  }),
  "changes the time of its records, also where the database's sessions keep their times": Effect.gen(function* () {
    const sql = yield* seedInvoices
    yield* undoTask(yield* Task.deleted("1", invoice("i1")))
    const { url } = yield* TestDatabase
    const keeping = yield* clientOf(url, { maxConnections: 3, settings: { "practice_data.keep_times": "on" } })
    const [before] = yield* sql`select now() as time`
    yield* settles.pipe(Effect.provideService(TaskDatabase, keeping))
    yield* isServed
    assert.deepStrictEqual(yield* sql`select id from invoices where updated_at > ${before?.["time"]}`, [{ id: "i1" }])
  }),
  "leaves what the loader had deleted, and what another deletion holds until its undoing": Effect.gen(function* () {
    const sql = yield* seedInvoices
    // Without a time, which would tell its mark from that of a deletion.
    yield* sql`update invoice_lines set is_deleted = true where id = 'i1b'`
    const first = yield* Task.deleted("1", invoice("i1"))
    const second = yield* Task.deleted("2", { invoice_lines: [{ invoice_line_id: "i1a" }] })
    yield* undoTask(first)
    yield* settles
    assert.deepStrictEqual(yield* deletedIds, ["i1a", "i1b"])
    assert.strictEqual(yield* unsettled, 0)
    yield* undoTask(second)
    yield* settles
    assert.deepStrictEqual(yield* deletedIds, ["i1b"])
    yield* Task.deleted("3", { invoice_lines: [{ invoice_line_id: "i1a" }] })
    yield* Task.deleted("4", invoice("i1"))
    assert.strictEqual(yield* undoLine("i1a"), 1)
    yield* settles
    assert.deepStrictEqual(yield* deletedIds, ["i1", "i1a", "i1b"])
    assert.strictEqual(yield* undoInvoice("i1"), 1)
    yield* settles
    assert.deepStrictEqual(yield* deletedIds, ["i1b"])
  }),
  "of an id is that of its organization, in all tasks, and no other id of theirs": Effect.gen(function* () {
    yield* seedInvoices
    yield* Task.deleted("1", { invoices: [{ invoice_id: "i1" }, { invoice_id: "i2" }] })
    yield* Task.deleted("2", invoice("i1"))
    assert.strictEqual(yield* undo({ organization: "org_b", kind: "invoice", id: "i1" }), 0)
    assert.strictEqual(yield* undoLine("i1"), 0)
    assert.strictEqual(yield* undoInvoice("i1"), 2)
    yield* settles
    assert.deepStrictEqual(yield* deletedIds, ["i2", "i2a"])
  }),
  "takes back what loaders bring whose transactions were open, and what they held": Effect.gen(function* () {
    const sql = yield* seedInvoices
    const other = yield* elsewhere
    const task = yield* Task.deleted("1", { invoices: [{ invoice_id: "i1" }, { invoice_id: "late" }] })
    yield* settles
    const loader = yield* openTransaction(
      other,
      Effect.andThen(
        other`insert into invoices (organization_id, id) values (${organization}, 'late')`,
        other`update invoice_lines set quantity = 2 where organization_id = ${organization} and id = 'i1a'`
      )
    )
    assert.strictEqual(yield* undoTask(task), 2)
    const { steps } = yield* settler
    yield* steps(3)
    assert.deepStrictEqual(yield* deletedIds, ["i1a"])
    assert.strictEqual(yield* unsettled, 1)
    yield* loader.commit
    yield* steps(3)
    yield* isServed
    assert.strictEqual(yield* unsettled, 0)
    assert.lengthOf(yield* sql`select from invoices where id = 'late' and not is_deleted`, 1)
  }),
  "is taken back at once, also while a transaction is open, and its task waits": Effect.gen(function* () {
    const { claim } = yield* postponed
    const { steps } = yield* settler
    yield* steps(1)
    assert.deepStrictEqual(yield* deletedIds, ["i1", "i1b", "i2", "i2a"])
    yield* undoTask(claim.taskId)
    yield* steps(1)
    yield* isServed
  }),
  "of many invoices compares no line with the facts of others": Effect.gen(function* () {
    const sql = yield* seedInvoices
    const task = "00000000-0000-0000-0000-000000000001"
    yield* sql`
      insert into invoice_lines (organization_id, id, invoice, is_deleted, deleted_at)
      select ${organization}, 'many' || n, 'x' || n, true, '2026-01-01' from generate_series(1, 1000) n`
    yield* addFacts(1000, {
      task_id: `'${task}'`,
      id: "'x' || n",
      verdict: "'deleted'",
      deleted_at: "'2026-01-01'",
      undone_at: "now()"
    })
    yield* sql`analyze deletions, invoice_lines`
    assert.isBelow(
      (yield* readsOf("deletions", Effect.orDie(Marks.apply(sql, { organization, ids: [task] })))).rows,
      20_000
    )
    assert.isEmpty(yield* sql`select from invoice_lines where is_deleted`)
  }),
  "of a task that has not ended is in none of its counts": Effect.gen(function* () {
    const { claim: first, held } = yield* postponed
    yield* held.rollback
    assert.strictEqual(yield* undoInvoice("i1"), 1)
    yield* TestClock.adjust(Task.lease)
    const claim = yield* Task.claimOne()
    assert.strictEqual(claim.taskId, first.taskId)
    const outcome = Outcome.make({ invoices: { deleted: 1 }, invoice_lines: {}, lines_of_invoices: 1 })
    assert.deepStrictEqual(yield* Task.runOne(claim), outcome)
    yield* settles
    assert.deepStrictEqual(yield* deletedIds, ["i2", "i2a"])
  }),
  "of an item that is remembered deletes nothing when it comes": Effect.gen(function* () {
    const sql = yield* seedInvoices
    yield* Task.deleted("1", { invoices: [{ invoice_id: "x", client_id: "c" }, { invoice_id: "y" }] })
    assert.strictEqual(yield* undoInvoice("x"), 1)
    yield* sql`
      insert into invoices (organization_id, id, client_id) values (${organization}, 'x', 'c'), (${organization}, 'y', 'c')`
    yield* settles
    assert.deepStrictEqual(yield* deletedIds, ["y"])
    const items = yield* Effect.forEach(["x", "y"], (id) => Facts.list(organization, id, 10))
    const found = items
      .flat()
      .map(({ id, undone_at, verdict }) => `${id} ${verdict}${undone_at === null ? "" : " undone"}`)
    assert.deepStrictEqual(found, ["x not_found undone", "y deleted"])
  })
})

/** Checks that a task is not cancelled, since it is in a state, or not there. */
const isRefused = Effect.fnUntraced(function* (task: Tasks.Identity, state: State | undefined) {
  assert.deepStrictEqual<unknown>(yield* Effect.flip(Commands.cancelTask(task)), new Tasks.NotChanged({ state }))
}, Effect.orDie)

Task.suite("a cancelled task", {
  "never runs, keeps its key, and is emptied as one that has run": Effect.gen(function* () {
    yield* seedInvoices
    const { postpone, schedule } = yield* Scheduler
    const given = Task.delivery("1", invoice("i1"))
    const { taskId: id } = yield* Task.scheduled(given)
    yield* TestClock.adjust(Task.delay)
    const claim = yield* Task.claimOne()
    yield* postpone(claim, Duration.zero)
    const identity = { id, organization: undefined }
    assert.deepStrictEqual(yield* Effect.orDie(Commands.cancelTask(identity)), { organization, undone: 0 })
    yield* isRefused(identity, "cancelled")
    assert.isUndefined(yield* Task.runOne(claim))
    assert.isEmpty(yield* Facts.ofTask(organization, id, 1).pipe(Effect.map(({ items }) => items)))
    yield* TestClock.adjust("1 hour")
    assert.isEmpty(yield* Task.claimAll())
    yield* Task.isIdle
    assert.strictEqual((yield* schedule(given)).status, "duplicate")
    const { sql } = yield* TestDatabase
    const log = yield* sql`select action, result from audit_log where target = ${id}`
    assert.deepStrictEqual<unknown>(log, [{ action: "task.cancel", result: "cancelled" }])
    assert.strictEqual(yield* Retention.empty(yield* DateTime.now, 10), 1)
    assert.strictEqual(yield* Retention.empty(yield* DateTime.now, 10), 0)
  }),
  "that is dead is undone, and no late report of a worker revives it": Effect.gen(function* () {
    const { claim, held, sql } = yield* postponed
    const id = claim.taskId
    const { postpone } = yield* Scheduler
    yield* held.rollback
    yield* Effect.replicateEffect(Effect.andThen(TestClock.adjust(Task.lease), Task.claimAll()), maximumAttempts)
    assert.deepStrictEqual(yield* deletedIds, ["i1", "i1b", "i2", "i2a"])
    const cancelled = yield* Effect.orDie(Commands.cancelTask({ id, organization }))
    assert.deepStrictEqual(cancelled, { organization, undone: 2 })
    yield* postpone(claim, Duration.zero)
    yield* settles
    yield* isServed
    assert.deepStrictEqual<unknown>(yield* sql`select state from deletion_tasks`, [{ state: "cancelled" }])
  }),
  "was neither running nor completed": Effect.gen(function* () {
    yield* seedInvoices
    const { claim } = yield* Task.claimed("1")
    const task = { id: claim.taskId, organization }
    yield* isRefused(task, "running")
    yield* Task.completes(claim)
    yield* isRefused(task, "completed")
    yield* isRefused({ ...task, organization: "org_b" }, undefined)
  })
})
