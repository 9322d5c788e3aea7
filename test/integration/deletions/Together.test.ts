/** Tasks that run in one transaction: all of them or, when one fails, none; each with an outcome of its own. */
import { assert, layer } from "@effect/vitest"
import { Array, Effect, Layer, Order } from "effect"
import { TestClock } from "effect/testing"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { type Claim, TaskFailed } from "../../../src/deletions/Task.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
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
  postgres,
  lease,
  onDatabase,
  runOne,
  scheduled
} from "../../support/deletions/support.ts"
import { deletedIds, seedInvoices, outcomeOf, rowsOf } from "../../support/deletions/invoiceFixture.ts"

/** The invoice that cannot be deleted. */
const refused = "i3"

const memory = Scheduler.layerMemory(delay, ({ invoices }) =>
  invoices.some(({ invoice_id }) => invoice_id === refused)
    ? Effect.fail(new TaskFailed({ message: "i3 stays" }))
    : Effect.succeed(outcomeOf({}))
)

const refusing = (scheduler: (typeof postgres)[number]["scheduler"]) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const sql = yield* seedInvoices
      yield* sql`
      create or replace function refuse() returns trigger language plpgsql
      as $$ begin raise exception 'i3 stays'; end $$`
      yield* sql`
      create or replace trigger refuse before update on invoices
      for each row when (old.id = 'i3') execute function refuse()`
      return scheduler
    })
  )

/** Claims of tasks that delete an invoice each. */
const claimsOf = Effect.fnUntraced(function* (...invoices: ReadonlyArray<string>) {
  for (const invoice_id of invoices) yield* scheduled(delivery(invoice_id, { invoices: [{ invoice_id }] }))
  yield* TestClock.adjust(delay)
  return Array.sort(
    yield* claimAll(),
    Order.mapInput(Order.String, ({ taskId }: Claim) => taskId)
  )
})

const rules: ReadonlyArray<readonly [rule: string, check: Check]> = [
  [
    "are completed together",
    Effect.gen(function* () {
      const { run } = yield* Scheduler
      const claims = yield* claimsOf("i1", "i2", "i4")
      const outcomes = yield* run(claims)
      assert.deepStrictEqual(
        outcomes.map(({ _tag }) => _tag),
        ["Completed", "Completed", "Completed"]
      )
      for (const claim of claims) yield* isSuperseded(claim)
      yield* isIdle
    })
  ],
  [
    "may be none",
    Effect.gen(function* () {
      const { run } = yield* Scheduler
      assert.deepStrictEqual(yield* run([]), [])
    })
  ],
  [
    "are completed but for those that another worker has by now, which are said to be superseded",
    Effect.gen(function* () {
      const { renew, run } = yield* Scheduler
      const claims = yield* claimsOf("i1", "i2", "i4")
      yield* TestClock.adjust("1 second")
      yield* renew(claims.slice(0, 2), lease)
      yield* TestClock.adjust("9 seconds")
      const taken = yield* claimOne()
      const outcomes = yield* run(claims.toReversed())
      assert.deepStrictEqual(
        outcomes.map(({ _tag }) => _tag),
        ["Superseded", "Completed", "Completed"]
      )
      yield* completes(taken)
    })
  ],
  [
    "are not completed, any of them, when one fails, and can still be run alone",
    Effect.gen(function* () {
      const { run } = yield* Scheduler
      const claims = yield* claimsOf("i1", refused, "i2", "i4")
      const together = yield* Effect.result(run(claims))
      assert.strictEqual(together._tag === "Failure" && together.failure._tag, "TaskFailed")
      const alone = yield* Effect.forEach(claims, (claim) => Effect.result(runOne(claim)))
      assert.sameMembers(
        alone.map((result) => (result._tag === "Success" ? result.success._tag : result.failure._tag)),
        ["Completed", "Completed", "Completed", "TaskFailed"]
      )
    })
  ]
]

layer(TestDatabase.layerDatabases, onDatabase)("tasks that run together", (it) => {
  it.effect.each(rules)("%s (in memory)", ([, check]) => Effect.provide(check, Layer.fresh(memory)).pipe(inItsOwnTime))

  for (const { options, scheduler, store } of postgres) {
    it.effect.each(rules)(
      `%s (${store})`,
      ([, check]) => Effect.provide(check, Layer.fresh(refusing(scheduler))).pipe(inItsOwnTime),
      options
    )

    it.effect(
      `have outcomes of their own, also where they name the same, or belong to several organizations (${store})`,
      () =>
        Effect.gen(function* () {
          const sql = yield* seedInvoices
          const { run } = yield* Scheduler
          const tasks = yield* Effect.all([
            scheduled(delivery("1", { invoices: [{ invoice_id: "i1" }] })),
            scheduled(delivery("2", { invoices: [{ invoice_id: "i1", clinic_id: "x" }, { invoice_id: "i2" }] })),
            scheduled(delivery("3", { invoices: [{ invoice_id: "i1" }], invoice_lines: [{ invoice_line_id: "i1a" }] })),
            scheduled(delivery("1", { invoice_lines: [{ invoice_line_id: "i1a", invoice_id: "i2" }] }, "org_b")),
            scheduled(delivery("2", { invoices: [{ invoice_id: "i4" }, { invoice_id: "x" }] }, "org_b"))
          ])
          yield* TestClock.adjust(delay)
          const claims = yield* claimAll()
          const outcomes = yield* run(claims)
          const inOrder = tasks.map(({ taskId }) => outcomes[claims.findIndex((claim) => claim.taskId === taskId)])
          assert.deepStrictEqual(
            inOrder.map((outcome) => outcome?._tag === "Completed" && outcome.outcome),
            [
              outcomeOf({ invoices: { deleted: 1 }, lines_of_invoices: 2 }),
              outcomeOf({ invoices: { deleted: 1, clinic_mismatch: 1 }, lines_of_invoices: 1 }),
              outcomeOf({ invoices: { deleted: 1 }, invoice_lines: { deleted: 1 }, lines_of_invoices: 2 }),
              outcomeOf({ invoice_lines: { invoice_mismatch: 1 } }),
              outcomeOf({ invoices: { deleted: 1, not_found: 1 } })
            ]
          )
          assert.deepStrictEqual(deletedIds(yield* rowsOf(sql)), ["i1", "i1a", "i1b", "i2", "i2a", "org_b/i4"])
        }).pipe(Effect.provide(Layer.fresh(scheduler)), inItsOwnTime),
      options
    )
  }
})
