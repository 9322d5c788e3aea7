/** The table `deletion_tasks` as operators read it, and the privileges of the database roles. */
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { CurrentOrganization } from "../../../src/api/CurrentOrganization.ts"
import { IntakeSecrets } from "../../../src/deletions/IntakeSecrets.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { TaskReads } from "../../../src/deletions/TaskReads.ts"
import { attemptsBesideOthers, maximumAttempts } from "../../../src/deletions/Task.ts"
import { outcomeOf, seedInvoices } from "../../support/deletions/invoiceFixture.ts"
import {
  claimAll,
  claimed,
  claimOne,
  completes,
  delay,
  delivery,
  inItsOwnTime,
  layerPostgres,
  lease,
  onDatabase,
  runOne,
  scheduled
} from "../../support/deletions/support.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** The only task, its times as those of the test's day. */
const row = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  const [found] = yield* sql`
    select state, attempts, last_error, outcome, idempotency_key, invoices_count, invoice_lines_count,
      received_at::time(0)::text, scheduled_for::time(0)::text, started_at::time(0)::text, finished_at::time(0)::text
    from deletion_tasks`
  return found
})

const fresh = {
  idempotency_key: "key",
  invoices_count: 1,
  invoice_lines_count: 0,
  received_at: "09:30:00",
  scheduled_for: "09:31:00",
  state: "scheduled",
  attempts: 0,
  last_error: null,
  outcome: null,
  started_at: null,
  finished_at: null
}

/** Runs with the privileges of a role. */
const under = Effect.fnUntraced(function* <A, E, R>(role: string, work: Effect.Effect<A, E, R>) {
  const { sql } = yield* TestDatabase
  return yield* sql.withTransaction(Effect.andThen(sql`set local role ${sql(role)}`, work))
})

const [api, intake, worker] = ["practice_data_api", "practice_data_intake", "practice_data_worker"] as const

layer(Layer.provideMerge(layerPostgres, TestDatabase.layerDatabases), onDatabase)("the row of a task", (it) => {
  it.effect("has its times, attempts and outcome, and the last error until it is completed", () =>
    Effect.gen(function* () {
      yield* seedInvoices
      const { fail } = yield* Scheduler
      yield* scheduled(delivery("key"))
      assert.deepStrictEqual(yield* row, fresh)
      yield* TestClock.adjust("62 seconds")
      const first = yield* claimOne()
      const running = { ...fresh, state: "running", attempts: 1, started_at: "09:31:02" }
      assert.deepStrictEqual(yield* row, running)
      yield* fail(first, "The first reason", Duration.seconds(5))
      assert.deepStrictEqual(yield* row, { ...running, state: "scheduled", last_error: "The first reason" })
      yield* TestClock.adjust("5 seconds")
      const second = yield* claimOne()
      assert.deepStrictEqual(yield* row, { ...running, attempts: 2, last_error: "The first reason" })
      yield* TestClock.adjust("3 seconds")
      yield* completes(second)
      const outcome = outcomeOf({ invoices: { not_found: 1 } })
      const completed = { ...running, state: "completed", attempts: 2, finished_at: "09:31:10", outcome }
      assert.deepStrictEqual(yield* row, completed)
    }).pipe(inItsOwnTime)
  )

  it.effect.each(["The last reason", "The worker stopped during the attempt"])(
    "has the time and the reason of its death: %s",
    (reason) =>
      Effect.gen(function* () {
        yield* seedInvoices
        const { fail } = yield* Scheduler
        let { claim } = yield* claimed("key")
        while (claim.attempt < maximumAttempts) {
          yield* TestClock.adjust(lease)
          claim = yield* claimOne()
        }
        yield* TestClock.adjust(lease)
        if (reason === "The last reason") yield* fail(claim, reason, Duration.zero)
        else yield* claimAll()
        const times = { started_at: "09:31:00", finished_at: "09:32:20" }
        assert.deepStrictEqual(yield* row, { ...fresh, ...times, state: "dead", attempts: 8, last_error: reason })
      }).pipe(inItsOwnTime)
  )

  it.effect("is all that the role of the intake needs, with the secrets", () =>
    Effect.gen(function* () {
      const { schedule } = yield* Scheduler
      const { of } = yield* IntakeSecrets
      const done = Effect.all([schedule(delivery("1")), schedule(delivery("1")), of("org_a")])
      const [first, second] = yield* under(intake, done)
      assert.deepStrictEqual([first._tag, second._tag], ["Scheduled", "Duplicate"])
    }).pipe(Effect.provide(IntakeSecrets.layer), inItsOwnTime)
  )

  it.effect("is what the role of the data API may read, for its organization", () =>
    Effect.gen(function* () {
      const { taskId } = yield* scheduled(delivery("read", undefined, "org_read"))
      const { get, search } = yield* TaskReads
      const all = search({ states: ["scheduled"] }, { limit: 1, offset: 0 })
      const [[found], task] = yield* under(api, Effect.all([all, get(taskId)]))
      assert.deepStrictEqual(found, task)
    }).pipe(
      Effect.provideService(CurrentOrganization, CurrentOrganization.known("org_read")),
      Effect.provide(TaskReads.layer),
      inItsOwnTime
    )
  )

  it.effect("is all that the role of the worker needs, with invoices and lines", () =>
    Effect.gen(function* () {
      yield* seedInvoices
      const { fail, release, renew, untilDue } = yield* Scheduler
      yield* scheduled(
        delivery("1", { invoices: [{ invoice_id: "i1" }], invoice_lines: [{ invoice_line_id: "loose" }] })
      )
      yield* TestClock.adjust(delay)
      const done = Effect.gen(function* () {
        yield* release(yield* claimOne())
        const claim = yield* claimOne()
        yield* renew([claim], lease)
        yield* fail(claim, "No", Duration.zero)
        yield* untilDue
        for (let attempt = 2; attempt <= attemptsBesideOthers + 1; attempt++) {
          yield* claimAll()
          yield* TestClock.adjust(lease)
        }
        return yield* runOne(yield* claimOne())
      })
      assert.strictEqual((yield* under(worker, done))._tag, "Completed")
    }).pipe(inItsOwnTime)
  )
})
