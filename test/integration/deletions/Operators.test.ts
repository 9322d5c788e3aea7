/**
 * What operators read of a task in the table `deletion_tasks`, and that the intake's and the worker's database roles are
 * all that they need. Decisions: "Tables".
 */
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { IntakeSecrets } from "../../../src/deletions/IntakeSecrets.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { attemptsBesideOthers, maximumAttempts } from "../../../src/deletions/Task.ts"
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
  lease,
  onDatabase,
  runOne,
  scheduled
} from "../../support/deletions/support.ts"
import { seedInvoices, outcomeOf } from "../../support/deletions/invoiceFixture.ts"

/** The only task, as the table shows it, its times as those of the test's day. */
const row = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  const [found] = yield* sql`
    select state, attempts, last_error, outcome, idempotency_key, invoices_count, invoice_lines_count,
      received_at::time(0)::text, scheduled_for::time(0)::text, started_at::time(0)::text, finished_at::time(0)::text
    from deletion_tasks`
  return found
})

const received = {
  idempotency_key: "key",
  invoices_count: 1,
  invoice_lines_count: 0,
  received_at: "09:30:00",
  scheduled_for: "09:31:00"
}

const fresh = { state: "scheduled", attempts: 0, last_error: null, outcome: null, started_at: null, finished_at: null }

layer(Layer.provideMerge(layerPostgres, TestDatabase.layerDatabases), onDatabase)("of a task operators read", (it) => {
  it.effect("when it was received, is to run, was started and finished, and what it did", () =>
    Effect.gen(function* () {
      yield* seedInvoices
      yield* scheduled(delivery("key"))
      assert.deepStrictEqual(yield* row, { ...received, ...fresh })
      yield* TestClock.adjust("62 seconds")
      const claim = yield* claimOne()
      const running = { ...received, ...fresh, state: "running", attempts: 1, started_at: "09:31:02" }
      assert.deepStrictEqual(yield* row, running)
      yield* TestClock.adjust("3 seconds")
      yield* completes(claim)
      assert.deepStrictEqual(yield* row, {
        ...running,
        state: "completed",
        finished_at: "09:31:05",
        outcome: outcomeOf({ invoices: { not_found: 1 } })
      })
    }).pipe(inItsOwnTime)
  )

  it.effect("how often it was tried, and why it failed last, until it is completed", () =>
    Effect.gen(function* () {
      yield* seedInvoices
      const { fail } = yield* Scheduler
      const { claim } = yield* claimed("key")
      yield* fail(claim, "The first reason", Duration.seconds(5))
      const failed = { ...received, ...fresh, attempts: 1, started_at: "09:31:00", last_error: "The first reason" }
      assert.deepStrictEqual(yield* row, failed)
      yield* TestClock.adjust("5 seconds")
      const again = yield* claimOne()
      assert.deepStrictEqual(yield* row, { ...failed, state: "running", attempts: 2 })
      yield* completes(again)
      assert.deepInclude(yield* row, { state: "completed", attempts: 2, last_error: null, started_at: "09:31:00" })
    }).pipe(inItsOwnTime)
  )

  it.effect.each([
    ["it failed", "The last reason"],
    ["its leases expired", "The worker stopped during the attempt"]
  ] as const)("that it is dead, since when, and why: %s", ([, reason]) =>
    Effect.gen(function* () {
      yield* seedInvoices
      const { fail } = yield* Scheduler
      let { claim } = yield* claimed("key")
      for (let attempt = 1; attempt < maximumAttempts; attempt++) {
        yield* TestClock.adjust(lease)
        claim = yield* claimOne()
      }
      yield* TestClock.adjust(lease)
      if (reason === "The last reason") yield* fail(claim, reason, Duration.zero)
      else yield* claimAll()
      assert.deepStrictEqual(yield* row, {
        ...received,
        ...fresh,
        state: "dead",
        attempts: 8,
        last_error: reason,
        started_at: "09:31:00",
        finished_at: "09:32:20"
      })
    }).pipe(inItsOwnTime)
  )
})

/** Does something with the privileges of a role. */
const under = Effect.fnUntraced(function* <A, E, R>(role: string, work: Effect.Effect<A, E, R>) {
  const { sql } = yield* TestDatabase
  return yield* sql.withTransaction(Effect.andThen(sql`set local role ${sql(role)}`, work))
})

const intake = "practice_data_intake"
const worker = "practice_data_worker"

layer(Layer.provideMerge(layerPostgres, TestDatabase.layerDatabases), onDatabase)("the role", (it) => {
  it.effect("of the intake schedules, finds duplicates and reads secrets", () =>
    Effect.gen(function* () {
      yield* seedInvoices
      const { schedule } = yield* Scheduler
      const { of } = yield* IntakeSecrets
      const done = Effect.all([schedule(delivery("1")), schedule(delivery("1")), of("org_a")])
      const [first, second] = yield* under(intake, done)
      assert.deepStrictEqual([first._tag, second._tag], ["Scheduled", "Duplicate"])
    }).pipe(Effect.provide(IntakeSecrets.layer), inItsOwnTime)
  )

  it.effect("of the worker claims, renews, deletes, fails and releases", () =>
    Effect.gen(function* () {
      yield* seedInvoices
      const { fail, release, renew, untilDue } = yield* Scheduler
      const deletions = { invoices: [{ invoice_id: "i1" }], invoice_lines: [{ invoice_line_id: "loose" }] }
      yield* scheduled(delivery("1", deletions))
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

  it.effect.each([
    [intake, "update deletion_tasks set attempts = 0"],
    [intake, "insert into deletion_tasks (state) values ('completed')"],
    [intake, "insert into deletion_tasks (attempts) values (8)"],
    [intake, "insert into intake_secrets (secret) values ('')"],
    [intake, "update intake_secrets set revoked_at = now()"],
    [intake, "delete from deletion_tasks"],
    [intake, "select 1 from invoices"],
    [intake, "select name from organizations"],
    [intake, "select 1 from api_keys"],
    [worker, "insert into deletion_tasks (organization_id) values ('x')"],
    [worker, "delete from deletion_tasks"],
    ...[
      "organization_id",
      "id",
      "idempotency_key",
      "fingerprint",
      "invoices_count",
      "invoice_lines_count",
      "received_at",
      "scheduled_for"
    ].map((column) => [worker, `update deletion_tasks set ${column} = ${column}`] as const),
    [worker, "delete from invoices"],
    [worker, "update invoices set total = 0"],
    [worker, "update charges set status = ''"],
    [worker, "select 1 from intake_secrets"],
    [worker, "select 1 from api_keys"],
    [worker, "select touch_api_key('')"],
    [intake, "select touch_api_key('')"],
    ["practice_data_api", "select payload from deletion_tasks"],
    ["practice_data_api", "select last_error from deletion_tasks"],
    ["practice_data_api", "select 1 from intake_secrets"]
  ] as const)("%s may not: %s", ([role, statement]) =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const error = yield* Effect.flip(under(role, sql.unsafe(statement)))
      assert.deepInclude(Object(error.reason.cause), { code: "42501" })
    })
  )
})
