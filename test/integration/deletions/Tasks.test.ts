/** What operators can see of tasks, and replaying dead ones. */
import { assert, layer } from "@effect/vitest"
import { Array, Clock, DateTime, Effect, Option, Order } from "effect"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { maximumAttempts } from "../../../src/deletions/Task.ts"
import * as Tasks from "../../../src/deletions/Tasks.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { claimAll, deliveryWith, makeDead, owners, reason, Tasks as Made } from "../../support/deletions/taskFixture.ts"

const everything = { state: undefined, organization: undefined, limit: 100 }

const idsOf = (tasks: ReadonlyArray<Tasks.Task>) => tasks.map(({ id }) => id)

const find = (id: string, organization?: string) => Effect.map(Tasks.show({ id, organization }), Option.getOrUndefined)

layer(Made.layer, { excludeTestServices: true })("Tasks", (it) => {
  it.effect("lists the tasks of all organizations, the latest first, as many as asked", () =>
    Effect.gen(function* () {
      const { dead, completed, running, scheduled } = yield* Made
      assert.deepStrictEqual(idsOf(yield* Tasks.list(everything)), [scheduled, running, completed, dead])
      assert.deepStrictEqual(idsOf(yield* Tasks.list({ ...everything, limit: 2 })), [scheduled, running])
    })
  )

  it.effect("shows everything about a task: its times, attempts, error, outcome and payload", () =>
    Effect.gen(function* () {
      const { dead, completed } = yield* Made
      const task = yield* find(completed)
      assert.deepInclude(task, {
        organization_id: "org_a",
        id: completed,
        idempotency_key: "completed",
        state: "completed",
        due_at: null,
        attempts: 1,
        last_error: null,
        invoices_count: 1,
        invoice_lines_count: 1,
        outcome: {
          invoices: { deleted: 0, not_found: 1, clinic_mismatch: 0, client_mismatch: 0 },
          invoice_lines: { deleted: 0, not_found: 1, invoice_mismatch: 0, clinic_mismatch: 0 },
          lines_of_invoices: 0
        },
        payload: deliveryWith("org_a", "completed").deletions
      })
      const times = [task?.received_at, task?.scheduled_for, task?.started_at, task?.finished_at]
      const millis = times.map((time) => DateTime.toEpochMillis(DateTime.makeUnsafe(time ?? "")))
      assert.deepStrictEqual(millis, Array.sort(millis, Order.Number))
      assert.deepInclude(yield* find(dead), { attempts: maximumAttempts, last_error: reason, outcome: null })
    })
  )

  it.effect("shows nothing for an id that no task has, or that another organization's task has", () =>
    Effect.gen(function* () {
      const { dead } = yield* Made
      assert.isUndefined(yield* find("00000000-0000-5000-8000-000000000000"))
      assert.isUndefined(yield* find(dead, "org_b"))
      assert.strictEqual((yield* find(dead, "org_a"))?.id, dead)
    })
  )

  it.effect("counts tasks by state, with the time at which the first is due", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const counts = yield* Tasks.counts(sql)
      assert.deepInclude(counts, { scheduled: 1, running: 1, dead: 1 })
      const [first] = yield* sql<{ due: Date }>`select min(due_at) as due from deletion_tasks`
      assert.closeTo(Date.parse(counts.oldest_due_at ?? ""), first?.due.getTime() ?? -1, 1)
    })
  )

  it.effect("counts without reading completed tasks", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`
        insert into deletion_tasks (organization_id, id, idempotency_key, fingerprint, payload, invoices_count,
          invoice_lines_count, received_at, scheduled_for, state)
        select 'org_old', gen_random_uuid(), 'key ' || n, '', '{}', 0, 0, now(), now(), 'completed'
        from generate_series(1, 5000) n`
      yield* sql`analyze deletion_tasks`
      const [read] = yield* sql.withTransaction(
        Effect.andThen(
          Tasks.counts(sql),
          sql<{ rows: number }>`
            select (seq_tup_read + idx_tup_fetch)::int as rows from pg_stat_xact_user_tables where relname = 'deletion_tasks'`
        )
      )
      assert.isBelow(read?.rows ?? Infinity, 200)
    })
  )

  it.effect.each(["scheduled", "running", "completed"] as const)("leaves a task that is %s as it is", (state) =>
    Effect.gen(function* () {
      const id = (yield* Made)[state]
      const before = yield* find(id)
      assert.deepStrictEqual(
        yield* Tasks.replay({ id, organization: undefined }),
        Tasks.Replay.NotDead({ organization: owners[state], state })
      )
      assert.deepStrictEqual(yield* find(id), before)
    })
  )

  it.effect("replays nothing for an id that no task has, or that another organization's task has", () =>
    Effect.gen(function* () {
      const { dead } = yield* Made
      const before = yield* find(dead)
      for (const identity of [
        { id: "00000000-0000-5000-8000-000000000000", organization: undefined },
        { id: dead, organization: "org_b" }
      ]) {
        assert.deepStrictEqual(yield* Tasks.replay(identity), Tasks.Replay.NotFound())
      }
      assert.deepStrictEqual(yield* find(dead), before)
    })
  )

  it.effect("makes a dead task due at once with all its attempts, so that the next worker runs it", () =>
    Effect.gen(function* () {
      const scheduler = yield* Scheduler
      const id = yield* makeDead("org_c", "replayed")
      const dead = yield* find(id)
      const replayedAt = yield* Clock.currentTimeMillis
      assert.deepStrictEqual(
        yield* Tasks.replay({ id, organization: "org_c" }),
        Tasks.Replay.Replayed({ organization: "org_c" })
      )
      const replayed = yield* find(id)
      const dueAt = DateTime.toEpochMillis(DateTime.makeUnsafe(replayed?.due_at ?? ""))
      assert.isAtLeast(dueAt, replayedAt)
      assert.isAtMost(dueAt, yield* Clock.currentTimeMillis)
      assert.deepStrictEqual<unknown>(replayed, {
        ...dead,
        state: "scheduled",
        attempts: 0,
        due_at: replayed?.due_at ?? null,
        finished_at: null
      })
      const [claim] = yield* claimAll
      assert.deepInclude(claim, { organization: "org_c", taskId: id, attempt: 1 })
      if (claim !== undefined) assert.lengthOf(yield* scheduler.run([claim]), 1)
      assert.deepInclude(yield* find(id), { state: "completed", attempts: 1, last_error: null })
    })
  )

  it.effect("counts and replays the dead tasks of an organization, a reason and a time, up to a number", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const times = ["2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z", "2026-01-03T00:00:00.000Z"] as const
      for (const [index, time] of times.entries()) {
        const id = yield* makeDead(index === 0 ? "org_f" : "org_e", time)
        yield* sql`update deletion_tasks set finished_at = ${time}::timestamptz, last_error = ${`fault 10${index}%`}
          where id = ${id}::uuid`
      }
      const all = { organization: undefined, reason: "fault", since: undefined, before: undefined }
      const counts = yield* Effect.forEach(
        [
          all,
          { ...all, organization: "org_e" },
          { ...all, reason: "102%" },
          { ...all, reason: "1%" },
          { ...all, since: times[1] },
          { ...all, before: times[1] },
          { ...all, organization: "org_f", since: times[1] }
        ],
        Tasks.countDead
      )
      assert.deepStrictEqual(counts, [3, 2, 1, 1, 2, 1, 0])
      assert.strictEqual(yield* Tasks.replayDead(all, 2), 2)
      assert.strictEqual(yield* Tasks.countDead(all), 1)
      const [left] = yield* Tasks.list({ ...everything, state: "dead", organization: "org_e" })
      assert.strictEqual(left?.last_error, "fault 102%")
    })
  )

  it.effect("replays a dead task once, however many operators do so at once", () =>
    Effect.gen(function* () {
      const id = yield* makeDead("org_d", "replayed by two")
      const replays = yield* Effect.replicateEffect(Tasks.replay({ id, organization: undefined }), 4, {
        concurrency: 4
      })
      const counted = replays.map(({ _tag }) => _tag).toSorted()
      assert.deepStrictEqual(counted, ["NotDead", "NotDead", "NotDead", "Replayed"])
      assert.deepInclude(yield* find(id), { state: "scheduled", attempts: 0 })
    })
  )
})
