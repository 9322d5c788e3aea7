/** Deliveries, claims and renewals that meet each other in the database. Decisions: "Invoice deletion intake". */
import { assert, layer } from "@effect/vitest"
import { Array, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { elsewhere, openTransaction, untilDoneOrBlocked } from "../../support/deletions/sessions.ts"
import {
  claimAll,
  claimOne,
  completes,
  delay,
  delivery,
  idsOf,
  inItsOwnTime,
  layerPostgres,
  lease,
  onDatabase,
  overPostgres,
  scheduled
} from "../../support/deletions/support.ts"

const keys = Array.makeBy(48, (index) => `key-${index}`)

const countOf = (outcomes: ReadonlyArray<{ readonly _tag: string }>, tag: string) =>
  outcomes.filter(({ _tag }) => _tag === tag).length

const atOnce = { concurrency: "unbounded" } as const

overPostgres("of what happens at once", (it) => {
  it.effect("64 identical deliveries are one task, and 63 duplicates with its receipt", () =>
    Effect.gen(function* () {
      const { schedule } = yield* Scheduler
      for (const key of keys) {
        const outcomes = yield* Effect.forEach(
          Array.makeBy(64, () => delivery(key)),
          schedule,
          atOnce
        )
        assert.strictEqual(countOf(outcomes, "Scheduled"), 1)
        assert.strictEqual(countOf(outcomes, "Duplicate"), 63)
        const receipts = new Set(outcomes.map((outcome) => JSON.stringify("receipt" in outcome && outcome.receipt)))
        assert.strictEqual(receipts.size, 1)
      }
      yield* TestClock.adjust(delay)
      assert.strictEqual((yield* claimAll(1000)).length, keys.length)
    }).pipe(inItsOwnTime)
  )

  it.effect("two payloads with one key: one is scheduled, the other is refused", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const { schedule } = yield* Scheduler
      yield* sql`truncate deletion_tasks`
      for (const key of keys) {
        const deliveries = ["a", "b"].map((invoice_id) => delivery(key, { invoices: [{ invoice_id }] }))
        const outcomes = yield* Effect.forEach(deliveries, schedule, atOnce)
        assert.sameMembers(
          outcomes.map(({ _tag }) => _tag),
          ["Scheduled", "KeyReused"]
        )
        const winner = outcomes[0]?._tag === "Scheduled" ? "a" : "b"
        const [row] = yield* sql<{ invoice: string }>`
          select payload #>> '{invoices,0,invoice_id}' as invoice from deletion_tasks where idempotency_key = ${key}`
        assert.strictEqual(row?.invoice, winner)
      }
    }).pipe(inItsOwnTime)
  )

  it.effect.each([
    ["commit", "a duplicate of it"],
    ["rollback", "scheduled, as if that had never been"]
  ] as const)("a delivery waits for the same one in flight: after its %s it is %s", ([end]) =>
    Effect.gen(function* () {
      const other = yield* elsewhere
      const { schedule } = yield* Scheduler
      const given = delivery(`in-flight-${end}`)
      const first = yield* openTransaction(
        other,
        other`
          insert into deletion_tasks (
            organization_id, id, idempotency_key, fingerprint, payload,
            invoices_count, invoice_lines_count, received_at, scheduled_for, due_at
          ) values (
            ${given.organization}, ${given.taskId}, ${given.idempotencyKey}, ${given.fingerprint}, '{}', 7, 0,
            '2026-01-01', '2026-01-02', '2026-01-02'
          )`
      )
      const second = yield* Effect.forkScoped(schedule(given))
      assert.strictEqual(yield* untilDoneOrBlocked(other, second), "blocked")
      yield* first[end]
      const outcome = yield* Fiber.join(second)
      assert.strictEqual(outcome._tag, end === "commit" ? "Duplicate" : "Scheduled")
      assert.strictEqual("receipt" in outcome && outcome.receipt.invoicesCount, end === "commit" ? 7 : 1)
    }).pipe(inItsOwnTime)
  )

  it.effect("a claim does not wait for a task that is being claimed, and takes the next", () =>
    Effect.gen(function* () {
      const other = yield* elsewhere
      yield* other`truncate deletion_tasks`
      const [first, second] = [yield* scheduled(delivery("1")), yield* scheduled(delivery("2"))]
      yield* TestClock.adjust(delay)
      const held = yield* openTransaction(
        other,
        other`select 1 from deletion_tasks where id = ${first.taskId}::uuid for update`
      )
      const claiming = yield* Effect.forkScoped(claimAll())
      assert.strictEqual(yield* untilDoneOrBlocked(other, claiming), "done")
      yield* held.rollback
      assert.deepStrictEqual(idsOf(yield* Fiber.join(claiming)), [second.taskId])
      assert.deepStrictEqual(idsOf([yield* claimOne()]), [first.taskId])
    }).pipe(inItsOwnTime)
  )

  it.effect("a renewal does not wait for a task that is being run, so that the others of its batch are renewed", () =>
    Effect.gen(function* () {
      const other = yield* elsewhere
      const { renew } = yield* Scheduler
      yield* other`truncate deletion_tasks`
      yield* Effect.forEach(["1", "2", "3"], (key) => scheduled(delivery(key)))
      yield* TestClock.adjust(delay)
      const claims = yield* claimAll()
      const [running] = claims
      const run = yield* openTransaction(
        other,
        other`select 1 from deletion_tasks where id = ${running?.taskId ?? ""}::uuid for update`
      )
      yield* TestClock.adjust("9 seconds")
      const renewing = yield* Effect.forkScoped(renew(claims, lease))
      const state = yield* untilDoneOrBlocked(other, renewing)
      yield* run.rollback
      yield* Fiber.join(renewing)
      assert.strictEqual(state, "done")
    }).pipe(inItsOwnTime)
  )

  it.effect("a run that waits for a renewal is still completed", () =>
    Effect.gen(function* () {
      const other = yield* elsewhere
      yield* other`truncate deletion_tasks`
      yield* scheduled(delivery("1"))
      yield* TestClock.adjust(delay)
      const claim = yield* claimOne()
      const renewal = yield* openTransaction(
        other,
        other`update deletion_tasks set due_at = due_at + interval '1 second' where id = ${claim.taskId}::uuid`
      )
      const running = yield* Effect.forkScoped(completes(claim))
      assert.strictEqual(yield* untilDoneOrBlocked(other, running), "blocked")
      yield* renewal.commit
      yield* Fiber.join(running)
    }).pipe(inItsOwnTime)
  )

  it.effect("a claim of a whole batch is in the order of due times, also on a table that the planner knows well", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`truncate deletion_tasks`
      yield* sql`
        insert into deletion_tasks (
          organization_id, id, idempotency_key, fingerprint, payload,
          invoices_count, invoice_lines_count, received_at, scheduled_for, due_at
        ) select 'org_a', gen_random_uuid(), n, '', '{}', 0, 0, at, at, at
        from generate_series(1, 2000) n, lateral (select '2026-01-01'::timestamptz + (n * 7919 % 2003) * interval '1 second' as at) due`
      yield* sql`analyze deletion_tasks`
      const oldest = yield* sql<{ id: string }>`select id from deletion_tasks order by due_at limit 64`
      assert.deepStrictEqual(
        idsOf(yield* claimAll(64)),
        oldest.map(({ id }) => id)
      )
    }).pipe(inItsOwnTime)
  )
})

layer(Layer.provideMerge(layerPostgres, TestDatabase.layerDatabases), onDatabase)("a claim", (it) => {
  it.effect("never reads the whole table, also by a plan that was made for any claim", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const { claim } = yield* Scheduler
      yield* sql`truncate deletion_tasks`
      yield* sql`
        insert into deletion_tasks (
          organization_id, id, idempotency_key, fingerprint, payload,
          invoices_count, invoice_lines_count, received_at, scheduled_for, due_at, state
        ) select 'org_a', gen_random_uuid(), n, '', '{}', 0, 0, at, at, case when n % 2 = 0 then at end,
          case n % 2 when 0 then 'scheduled' else 'completed' end
        from generate_series(1, 20000) n, lateral (select '2026-01-01'::timestamptz + n * interval '1 second' as at) due`
      yield* sql`analyze deletion_tasks`
      const scanned = sql`
        select seq_tup_read::integer as rows from pg_stat_xact_user_tables where relname = 'deletion_tasks'`
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`set local plan_cache_mode = force_generic_plan`
          const before = yield* scanned
          assert.lengthOf(yield* claim({ due: 64, expired: 16, alone: 0 }, lease), 64)
          assert.deepStrictEqual(yield* scanned, before)
        })
      )
    }).pipe(inItsOwnTime)
  )
})
