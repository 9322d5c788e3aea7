/** Scheduling a delivery, over each scheduler: what is stored once, a duplicate, refused, or beyond the bounds; and for how long its payload is kept. */
import { assert, layer } from "@effect/vitest"
import { Array, Clock, DateTime, Duration, Effect, Layer, Record } from "effect"
import { TestClock } from "effect/testing"
import type { State } from "../../../src/api/DeletionTasks.ts"
import type * as Backlog from "../../../src/deletions/Backlog.ts"
import { makeScheduler, Scheduler } from "../../../src/deletions/Scheduler.ts"
import { maximumAttempts } from "../../../src/deletions/Retries.ts"
import type { Receipt } from "../../../src/deletions/Delivery.ts"
import * as Retention from "../../../src/deletions/Retention.ts"
import * as Task from "../../support/deletions/tasks.ts"
import { isDistributed, TestDatabase } from "../../support/TestDatabase.ts"

const key = "delivery-1"
const another = { invoices: [{ invoice_id: "another" }] }

const completed = (name: string) => Effect.tap(Task.claimed(name), ({ claim }) => Task.completes(claim))

/** The tasks that wait, claimed and completed. */
const completeAll = Effect.gen(function* () {
  yield* TestClock.adjust(Task.delay)
  for (const claim of yield* Task.claimAll()) yield* Task.completes(claim)
})

/** The ways to each state of a task. Each returns the receipt of its delivery. */
const states: Readonly<Record<Exclude<State, "cancelled">, Task.Check<Receipt>>> = {
  scheduled: Effect.map(Task.scheduled(Task.delivery(key)), ({ receipt }) => receipt),
  running: Effect.map(Task.claimed(key), ({ receipt }) => receipt),
  completed: Effect.map(Effect.tap(completed(key), TestClock.adjust("365 days")), ({ receipt }) => receipt),
  dead: Effect.gen(function* () {
    const { receipt } = yield* Task.claimed(key)
    yield* Effect.replicateEffect(Effect.andThen(TestClock.adjust(Task.lease), Task.claimAll()), maximumAttempts)
    return receipt
  })
}

Task.suiteOfEach("a scheduler", {
  "schedules a new delivery: received now, to run after the delay, with its counts": Effect.gen(function* () {
    const [invoice, line] = [{ invoice_id: "a" }, { invoice_line_id: "l" }]
    const given = Task.delivery(key, { invoices: [invoice, invoice], invoice_lines: [line, line, line] })
    const { receipt } = yield* Task.scheduled(given)
    assert.deepStrictEqual(receipt, {
      received_at: DateTime.makeUnsafe(Task.start),
      scheduled_for: DateTime.makeUnsafe(Task.start + Duration.toMillis(Task.delay)),
      invoices_count: 2,
      invoice_lines_count: 3
    })
  }),
  ...Record.mapEntries(states, (reach, state) => [
    `recognizes a repeated delivery, and refuses another payload, while its task is ${state}`,
    Effect.gen(function* () {
      const receipt = yield* reach
      const { schedule } = yield* Scheduler
      assert.deepStrictEqual(yield* schedule(Task.delivery(key, another)), { status: "key_reused" })
      for (const time of ["0 seconds", "30 days"] as const) {
        yield* TestClock.adjust(time)
        assert.deepStrictEqual(yield* schedule(Task.delivery(key)), { status: "duplicate", receipt })
      }
    })
  ])
})

const bounds: Backlog.Bounds = { unknown: 3, known: 6, allUnknown: 6 }

const statusOf = (name: string, owner = Task.organization) =>
  Effect.flatMap(Scheduler, (scheduler) =>
    Effect.map(scheduler.schedule(Task.delivery(name, undefined, owner)), ({ status }) => status)
  )

const outcomesOf = (count: number, owner = Task.organization) =>
  Effect.forEach(Array.range(1, count), (index) => statusOf(`${owner}-${index}`, owner))

const bounded = Task.emptied(Layer.effect(Scheduler, makeScheduler(Task.delay, bounds)))

const retention = Duration.days(90)

/** Empties what is older than the retention. */
const empty = (limit = 100) =>
  Effect.flatMap(DateTime.now, (now) => Retention.empty(DateTime.subtractDuration(now, retention), limit))

Task.suite("the payload of a task", {
  "is emptied so long after the task's end, and a repeated delivery is still a duplicate": Effect.gen(function* () {
    const { schedule } = yield* Scheduler
    const { receipt } = yield* completed("1")
    yield* TestClock.adjust(Duration.subtract(retention, Duration.seconds(1)))
    assert.strictEqual(yield* empty(), 0)
    yield* TestClock.adjust("2 seconds")
    assert.strictEqual(yield* empty(), 1)
    assert.strictEqual(yield* empty(), 0)
    assert.deepStrictEqual(yield* schedule(Task.delivery("1")), { status: "duplicate", receipt })
    assert.deepStrictEqual(yield* schedule(Task.delivery("1", another)), { status: "key_reused" })
  }),
  "is emptied a few at a time, of any organizations": Effect.gen(function* () {
    yield* Effect.forEach(Array.range(1, 5), (index) => Task.scheduled(Task.delivery("1", undefined, `org_${index}`)))
    yield* completeAll
    yield* TestClock.adjust(Duration.sum(retention, Duration.seconds(1)))
    assert.deepStrictEqual([yield* empty(2), yield* empty(2), yield* empty(2), yield* empty(2)], [2, 2, 1, 0])
  }),
  "is kept while only the clock of the worker says that the time is over": Effect.gen(function* () {
    yield* TestClock.setTime(yield* TestClock.withLive(Clock.currentTimeMillis))
    yield* completed("1")
    yield* TestClock.adjust("365 days")
    assert.strictEqual(yield* empty(), 0)
  }),
  "is kept of a task that is not completed, however old": Effect.gen(function* () {
    const { fail } = yield* Scheduler
    yield* Task.scheduled(Task.delivery("dead"))
    yield* TestClock.adjust(Task.delay)
    for (let attempt = 1; attempt <= maximumAttempts; attempt++)
      yield* fail(yield* Task.claimOne(), "No", Duration.zero)
    yield* Task.scheduled(Task.delivery("waiting"))
    yield* TestClock.adjust(Duration.times(retention, 2))
    assert.strictEqual(yield* empty(), 0)
  })
})

layer(TestDatabase.layerDatabases, Task.onDatabase)("over the database", (it) => {
  it.effect("a backlog has a bound, and room once tasks are done", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`insert into organizations (organization_id, id) values ('org_known', 'org_known') on conflict do nothing`
      assert.deepStrictEqual(yield* outcomesOf(4), ["scheduled", "scheduled", "scheduled", "full"])
      assert.deepStrictEqual(yield* outcomesOf(1, "org_b"), ["scheduled"])
      assert.deepStrictEqual(yield* outcomesOf(7, "org_known"), [...Array.replicate("scheduled", 6), "full"])
      assert.strictEqual(yield* statusOf(`${Task.organization}-1`), "duplicate")
      const { schedule } = yield* Scheduler
      assert.strictEqual((yield* schedule(Task.delivery(`${Task.organization}-1`, another))).status, "key_reused")
      assert.strictEqual(yield* statusOf("next"), "full")
      yield* completeAll
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* statusOf("next"), "scheduled")
    }).pipe(Effect.provide(bounded), Task.inItsOwnTime)
  )

  it.effect("all unknown organizations together have a bound; those that sign are known", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const owners = Array.makeBy(20, (index) => `made_up_${index}`)
      const statuses = yield* Effect.forEach(owners, (owner) => statusOf("key", owner))
      const taken = statuses.indexOf("full")
      assert.isTrue(taken > 2 && taken < 12, `${taken}`)
      assert.deepStrictEqual([...new Set(statuses.slice(taken))], ["full"])
      const stored = yield* sql`select from deletion_tasks where starts_with(organization_id, 'made_up_')`
      assert.lengthOf(stored, taken)
      assert.strictEqual(yield* statusOf("key", "made_up_0"), "duplicate")
      const [row, secret] = ["made_up_18", "made_up_19"]
      yield* sql`insert into organizations (organization_id, id) values (${row}, ${row})`
      yield* sql`insert into intake_secrets (organization_id, id, secret) values (${secret}, 's', '')`
      for (const owner of [row, secret]) assert.strictEqual(yield* statusOf("key", owner), "scheduled")
      assert.strictEqual(yield* statusOf("key", "made_up_17"), "full")
      yield* completeAll
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* statusOf("key", "made_up_17"), "scheduled")
      yield* sql`delete from organizations where id = ${row}`
      yield* sql`delete from intake_secrets where id = 's'`
    }).pipe(Effect.provide(bounded), Task.inItsOwnTime)
  )

  // A session of Citus passes no setting on to the server of the task, which has its own.
  it.effect.skipIf(isDistributed())("a delivery is committed synchronously, whatever its session is set to", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const { schedule } = yield* makeScheduler(Task.delay)
      const inSession = Effect.gen(function* () {
        yield* sql`set local synchronous_commit = off`
        yield* schedule(Task.delivery("durable"))
        return yield* sql`show synchronous_commit`
      })
      assert.deepStrictEqual(yield* sql.withTransaction(inSession), [{ synchronous_commit: "on" }])
    })
  )
})
