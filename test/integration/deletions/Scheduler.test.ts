/**
 * Scheduling a delivery, by any scheduler: what is stored once, what is a duplicate, and what is refused. Decisions:
 * "Invoice deletion intake".
 */
import { assert } from "@effect/vitest"
import { DateTime, Duration, Effect } from "effect"
import { TestClock } from "effect/testing"
import type { InvoiceDeletions } from "../../../src/api/IntakeApi.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { maximumAttempts, type Receipt, ScheduleOutcome } from "../../../src/deletions/Task.ts"
import {
  type Check,
  claimAll,
  claimed,
  claimOne,
  delay,
  delivery,
  idsOf,
  lease,
  scheduled,
  start,
  suite
} from "../../support/deletions/support.ts"

const key = "delivery-1"

/** What is scheduled, and then a delivery of the same key. */
const redelivered = Effect.fnUntraced(function* (first: InvoiceDeletions, second: InvoiceDeletions) {
  const { schedule } = yield* Scheduler
  const receipt = yield* scheduled(delivery(key, first))
  yield* TestClock.adjust("1 second")
  return { receipt, outcome: yield* schedule(delivery(key, second)) }
})

/** How a task of the key comes to each state. Each returns the receipt of its delivery. */
const states: ReadonlyArray<readonly [state: string, reach: Check<Receipt>]> = [
  ["scheduled", scheduled(delivery(key))],
  ["due", Effect.tap(scheduled(delivery(key)), TestClock.adjust("1 hour"))],
  ["running", Effect.map(claimed(key), ({ receipt }) => receipt)],
  [
    "waiting for another attempt",
    Effect.gen(function* () {
      const { receipt, claim } = yield* claimed(key)
      yield* (yield* Scheduler).fail(claim, "No", Duration.hours(1))
      return receipt
    })
  ],
  [
    "completed",
    Effect.gen(function* () {
      const { receipt, claim } = yield* claimed(key)
      yield* (yield* Scheduler).run([claim])
      yield* TestClock.adjust("365 days")
      return receipt
    })
  ],
  [
    "dead",
    Effect.gen(function* () {
      const { receipt } = yield* claimed(key)
      for (let attempt = 1; attempt <= maximumAttempts; attempt++) {
        yield* TestClock.adjust(lease)
        yield* claimAll()
      }
      return receipt
    })
  ]
]

const whateverTheState = states.flatMap(([state, reach]) => [
  [
    `the same delivery again is a duplicate with the receipt of the first: ${state}`,
    Effect.gen(function* () {
      const receipt = yield* reach
      const { schedule } = yield* Scheduler
      for (const time of ["0 seconds", "1 milli", "30 days"] as const) {
        yield* TestClock.adjust(time)
        assert.deepStrictEqual(yield* schedule(delivery(key)), ScheduleOutcome.Duplicate({ receipt }))
      }
    })
  ] as const,
  [
    `another payload with the same key is refused, and changes nothing: ${state}`,
    Effect.gen(function* () {
      const receipt = yield* reach
      const { schedule, untilDue } = yield* Scheduler
      const before = yield* untilDue
      const other = delivery(key, { invoices: [{ invoice_id: "invoice_2" }] })
      assert.deepStrictEqual(yield* schedule(other), ScheduleOutcome.KeyReused())
      assert.deepStrictEqual(yield* untilDue, before)
      assert.deepStrictEqual(yield* schedule(delivery(key)), ScheduleOutcome.Duplicate({ receipt }))
    })
  ] as const
])

const a = { invoice_id: "a", clinic_id: "clinic", client_id: "client" }
const b = { invoice_id: "b" }
const line = { invoice_line_id: "a", invoice_id: "b", clinic_id: "c" }

/** Payloads that are the same sets of items. */
const same: ReadonlyArray<readonly [what: string, first: InvoiceDeletions, second: InvoiceDeletions]> = [
  ["the items in another order", { invoices: [a, b] }, { invoices: [b, a] }],
  ["items repeated", { invoices: [a, b] }, { invoices: [a, b, a, a] }],
  ["items no longer repeated", { invoices: [b, b] }, { invoices: [b] }],
  [
    "lines in another order, repeated",
    { invoice_lines: [line, { ...line, invoice_line_id: "x" }] },
    { invoice_lines: [{ ...line, invoice_line_id: "x" }, line, line] }
  ],
  ["an absent array as an empty one", { invoices: [a] }, { invoices: [a], invoice_lines: [] }],
  ["null for an absent id", { invoices: [b] }, { invoices: [{ ...b, clinic_id: null, client_id: null }] }]
]

/** Payloads that differ. */
const different: ReadonlyArray<readonly [what: string, first: InvoiceDeletions, second: InvoiceDeletions]> = [
  ["an item more", { invoices: [a] }, { invoices: [a, b] }],
  ["an item less", { invoices: [a, b] }, { invoices: [a] }],
  ["another clinic", { invoices: [a] }, { invoices: [{ ...a, clinic_id: "other" }] }],
  ["no clinic", { invoices: [a] }, { invoices: [{ invoice_id: "a", client_id: "client" }] }],
  ["another client", { invoices: [a] }, { invoices: [{ ...a, client_id: "other" }] }],
  [
    "clinic and client in each other's place",
    { invoices: [a] },
    { invoices: [{ ...a, clinic_id: "client", client_id: "clinic" }] }
  ],
  ["an id in another case", { invoices: [b] }, { invoices: [{ invoice_id: "B" }] }],
  ["an id with a space", { invoices: [b] }, { invoices: [{ invoice_id: "b " }] }],
  ["an id in another Unicode form", { invoices: [{ invoice_id: "é" }] }, { invoices: [{ invoice_id: "e\u0301" }] }],
  ["a line for an invoice", { invoices: [{ invoice_id: "a" }] }, { invoice_lines: [{ invoice_line_id: "a" }] }],
  ["another invoice of the line", { invoice_lines: [line] }, { invoice_lines: [{ ...line, invoice_id: "x" }] }],
  ["a line more", { invoice_lines: [line] }, { invoice_lines: [line], invoices: [a] }]
]

suite("a scheduler", [
  [
    "schedules a new delivery: received now, to run after the delay, with the items counted as received",
    Effect.gen(function* () {
      const given = delivery(key, { invoices: [a, b, a], invoice_lines: [line, line] })
      assert.deepStrictEqual(yield* scheduled(given), {
        taskId: given.taskId,
        receivedAt: DateTime.makeUnsafe(start),
        scheduledFor: DateTime.makeUnsafe(start + Duration.toMillis(delay)),
        invoicesCount: 3,
        invoiceLinesCount: 2
      })
    })
  ],
  ...whateverTheState,
  ...same.map(
    ([what, first, second]) =>
      [
        `takes for a duplicate, with the counts of the first: ${what}`,
        Effect.gen(function* () {
          const { receipt, outcome } = yield* redelivered(first, second)
          assert.deepStrictEqual(outcome, ScheduleOutcome.Duplicate({ receipt }))
          yield* TestClock.adjust(delay)
          assert.deepStrictEqual(idsOf([yield* claimOne()]), [receipt.taskId])
        })
      ] as const
  ),
  ...different.map(
    ([what, first, second]) =>
      [
        `refuses as another payload: ${what}`,
        Effect.gen(function* () {
          const { outcome } = yield* redelivered(first, second)
          assert.deepStrictEqual(outcome, ScheduleOutcome.KeyReused())
          yield* TestClock.adjust(delay)
          yield* claimOne()
        })
      ] as const
  ),
  [
    "has another task for the same key of another organization, whatever the payload",
    Effect.gen(function* () {
      const tasks = yield* Effect.forEach(["org_a", "org_b", "org_A", "org_a "], (owner) =>
        scheduled(delivery(key, undefined, owner))
      )
      assert.strictEqual(new Set(idsOf(tasks)).size, 4)
      yield* TestClock.adjust(delay)
      const claims = yield* claimAll()
      assert.sameMembers(
        claims.map((claim) => claim.organization),
        ["org_a", "org_b", "org_A", "org_a "]
      )
    })
  ],
  [
    "tells ('a', 'bc') from ('ab', 'c')",
    Effect.gen(function* () {
      const first = yield* scheduled(delivery("bc", undefined, "a"))
      const second = yield* scheduled(delivery("c", undefined, "ab"))
      assert.notStrictEqual(first.taskId, second.taskId)
      yield* TestClock.adjust(delay)
      assert.sameMembers(idsOf(yield* claimAll()), [first.taskId, second.taskId])
    })
  ]
])
