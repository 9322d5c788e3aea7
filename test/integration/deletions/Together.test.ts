/** Tasks that run in one transaction: all of them or, when one fails, none. */
import { assert, layer } from "@effect/vitest"
import { Array, Effect, Layer, Order } from "effect"
import { TestClock } from "effect/testing"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { type Claim, TaskFailed } from "../../../src/deletions/Task.ts"
import { noItems } from "../../../src/api/DeletionTasks.ts"
import { deletedIds, rowsOf, seedInvoices } from "../../support/deletions/invoiceFixture.ts"
import {
  type Check,
  claimAll,
  claimOne,
  completes,
  delay,
  delivery,
  inItsOwnTime,
  isIdle,
  isSuperseded,
  layerPostgres,
  lease,
  onDatabase,
  postgres,
  runOne,
  scheduled
} from "../../support/deletions/support.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** The invoice that cannot be deleted. */
const refused = "i3"

const memory = Scheduler.layerMemory(delay, ({ invoices }) =>
  invoices.some(({ invoice_id }) => invoice_id === refused)
    ? Effect.fail(new TaskFailed({ message: "i3 stays" }))
    : Effect.succeed(noItems)
)

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

const refusing = (scheduler: typeof layerPostgres) =>
  Layer.unwrap(
    Effect.as(Effect.andThen(seedInvoices, onUpdate(`old.id = '${refused}'`, "raise exception 'i3 stays'")), scheduler)
  )

/** Claims of tasks that delete an invoice each, in the order of their ids. */
const claimsOf = Effect.fnUntraced(function* (...invoices: ReadonlyArray<string>) {
  for (const invoice_id of invoices) yield* scheduled(delivery(invoice_id, { invoices: [{ invoice_id }] }))
  yield* TestClock.adjust(delay)
  return Array.sort(
    yield* claimAll(),
    Order.mapInput(Order.String, ({ taskId }: Claim) => taskId)
  )
})

const tagsOf = (all: ReadonlyArray<{ readonly _tag: string }>) => all.map(({ _tag }) => _tag)

const rules: ReadonlyArray<readonly [rule: string, check: Check]> = [
  [
    "are completed together, or none",
    Effect.gen(function* () {
      const { run } = yield* Scheduler
      const claims = yield* claimsOf("i1", "i2", "i4")
      assert.deepStrictEqual(tagsOf(yield* run(claims)), ["Completed", "Completed", "Completed"])
      for (const claim of claims) yield* isSuperseded(claim)
      assert.deepStrictEqual(yield* run([]), [])
      yield* isIdle
    })
  ],
  [
    "are completed but for those that another worker has, which are superseded",
    Effect.gen(function* () {
      const { renew, run } = yield* Scheduler
      const claims = yield* claimsOf("i1", "i2", "i4")
      yield* TestClock.adjust("1 second")
      yield* renew(claims.slice(0, 2), lease)
      yield* TestClock.adjust("9 seconds")
      const taken = yield* claimOne()
      assert.deepStrictEqual(tagsOf(yield* run(claims.toReversed())), ["Superseded", "Completed", "Completed"])
      yield* completes(taken)
    })
  ],
  [
    "stay as they were when one fails, and can be run alone",
    Effect.gen(function* () {
      const { run } = yield* Scheduler
      const claims = yield* claimsOf("i1", refused, "i2", "i4")
      const together = yield* Effect.result(run(claims))
      assert.strictEqual(together._tag === "Failure" && together.failure._tag, "TaskFailed")
      const alone = yield* Effect.forEach(claims, (claim) =>
        Effect.match(runOne(claim), { onSuccess: ({ _tag }) => _tag, onFailure: ({ _tag }) => _tag })
      )
      assert.sameMembers(alone, ["Completed", "Completed", "Completed", "TaskFailed"])
    })
  ]
]

layer(TestDatabase.layerDatabases, onDatabase)("tasks that run together", (it) => {
  const stores = [
    { store: "in memory", scheduler: memory },
    ...postgres.map(({ scheduler, store }) => ({ store, scheduler: refusing(scheduler) }))
  ]
  for (const { scheduler, store } of stores) {
    it.effect.each(rules)(`%s (${store})`, ([, check]) => inItsOwnTime(Effect.provide(check, Layer.fresh(scheduler))))
  }

  it.effect("have 300 milliseconds; a task alone has the time of any statement", () =>
    Effect.gen(function* () {
      const sql = yield* seedInvoices
      yield* sql`create table limits (task text, statement_timeout text)`
      yield* onUpdate("true", "insert into limits values (old.id, current_setting('statement_timeout'))")
      const { run } = yield* Scheduler
      yield* run(yield* claimsOf("i1", "i2"))
      yield* run(yield* claimsOf("i4"))
      assert.deepStrictEqual(deletedIds(yield* rowsOf(sql)), ["i1", "i1a", "i1b", "i2", "i2a", "i4"])
      assert.deepStrictEqual(yield* sql`select task, statement_timeout as limit from limits order by 1`, [
        { task: "i1", limit: "300ms" },
        { task: "i2", limit: "300ms" },
        { task: "i4", limit: "3min" }
      ])
    }).pipe(Effect.provide(Layer.fresh(layerPostgres)), inItsOwnTime)
  )
})
