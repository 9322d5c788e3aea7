/** How long the payload of a task is kept. */
import { assert, layer } from "@effect/vitest"
import { Array, DateTime, Duration, Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { maximumAttempts, ScheduleOutcome } from "../../../src/deletions/Task.ts"
import * as Tasks from "../../../src/deletions/Tasks.ts"
import { layerRetention } from "../../../src/deletions/Worker.ts"
import { OperatorStore } from "../../../src/operations/OperatorStore.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import {
  claimAll,
  claimed,
  claimOne,
  completes,
  delay,
  delivery,
  inItsOwnTime,
  layerPostgres,
  onDatabase,
  scheduled,
  suite
} from "../../support/deletions/support.ts"

const retention = Duration.days(90)

/** Empties what is older than the retention. */
const empty = (limit = 100) =>
  Effect.gen(function* () {
    const scheduler = yield* Scheduler
    return yield* scheduler.empty(DateTime.subtractDuration(yield* DateTime.now, retention), limit)
  })

const completed = (key: string) => Effect.tap(claimed(key), ({ claim }) => completes(claim))

suite("the payload of a task", [
  [
    "is emptied when the task has been completed for so long, and a repeated delivery is still a duplicate",
    Effect.gen(function* () {
      const { schedule } = yield* Scheduler
      const { receipt } = yield* completed("1")
      yield* TestClock.adjust(Duration.subtract(retention, Duration.seconds(1)))
      assert.strictEqual(yield* empty(), 0)
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* empty(), 1)
      assert.strictEqual(yield* empty(), 0)
      assert.deepStrictEqual(yield* schedule(delivery("1")), ScheduleOutcome.Duplicate({ receipt }))
      const other = delivery("1", { invoices: [{ invoice_id: "another" }] })
      assert.deepStrictEqual(yield* schedule(other), ScheduleOutcome.KeyReused())
    })
  ],
  [
    "is emptied a few at a time, of any organizations",
    Effect.gen(function* () {
      yield* Effect.forEach(Array.range(1, 5), (index) => scheduled(delivery("1", undefined, `org_${index}`)))
      yield* TestClock.adjust(delay)
      for (const claim of yield* claimAll()) yield* completes(claim)
      yield* TestClock.adjust(Duration.sum(retention, Duration.seconds(1)))
      assert.deepStrictEqual([yield* empty(2), yield* empty(2), yield* empty(2), yield* empty(2)], [2, 2, 1, 0])
    })
  ],
  [
    "is kept of a task that is not completed, however old",
    Effect.gen(function* () {
      const { fail } = yield* Scheduler
      yield* scheduled(delivery("dead"))
      yield* TestClock.adjust(delay)
      for (let attempt = 1; attempt <= maximumAttempts; attempt++) yield* fail(yield* claimOne(), "No", Duration.zero)
      yield* scheduled(delivery("waiting"))
      yield* TestClock.adjust(Duration.times(retention, 2))
      assert.strictEqual(yield* empty(), 0)
    })
  ]
])

layer(
  TestDatabase.layerDatabases,
  onDatabase
)((it) => {
  it.effect("the worker empties payloads by itself, and operators see what is left of the task", () =>
    Effect.gen(function* () {
      const { receipt } = yield* completed("1")
      yield* TestClock.adjust(Duration.sum(retention, Duration.seconds(1)))
      yield* Layer.build(layerRetention(retention))
      const id = receipt.taskId
      const isEmptied = Effect.map(Tasks.show({ id, organization: undefined }), (task) =>
        Option.exists(task, ({ payload }) => payload === null)
      )
      assert.isTrue(yield* Effect.repeat(isEmptied, { until: (yes) => yes, times: 1000 }))
      const task = Option.getOrUndefined(yield* Tasks.show({ id, organization: undefined }))
      assert.deepInclude(task, { state: "completed", invoices_count: 1, payload: null })
      assert.strictEqual(task?.outcome?.invoices.not_found, 1)
      const store = yield* OperatorStore
      const shown = Option.getOrUndefined(yield* store.task("org_a", id))
      assert.deepInclude(shown, { invoices_count: 1, invoices: [], invoice_lines: [] })
    }).pipe(Effect.provide([layerPostgres, OperatorStore.layer]), Effect.scoped, inItsOwnTime)
  )
})
