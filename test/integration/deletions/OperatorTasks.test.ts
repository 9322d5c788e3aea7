/** What operators can see of tasks and replay, the row of a task, and the privileges of the database roles. */
import { assert, layer } from "@effect/vitest"
import { Clock, DateTime, Duration, Effect, Layer, Option, Result } from "effect"
import { TestClock } from "effect/testing"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { maximumAttempts } from "../../../src/deletions/Retries.ts"
import * as Retention from "../../../src/deletions/Retention.ts"
import * as Tasks from "../../../src/deletions/OperatorTasks.ts"
import * as TaskCounts from "../../../src/operations/TaskCounts.ts"
import { CurrentOrganization } from "../../../src/api/Authorization.ts"
import { State } from "../../../src/api/DeletionTasks.ts"
import { TaskDatabase } from "../../../src/database/Database.ts"
import { IntakeSecrets } from "../../../src/intake/Signatures.ts"
import { SenderTasks } from "../../../src/deletions/SenderTasks.ts"
import * as ApiKeys from "../../../src/keys/ApiKeys.ts"
import * as Commands from "../../../src/operations/Commands.ts"
import { loginOf, readsOf, TestDatabase } from "../../support/TestDatabase.ts"
import { makeDead, Tasks as Made } from "../../support/deletions/taskFixture.ts"
import { settler } from "../../support/deletions/sessions.ts"
import { addTasks, outcomeOf, seedInvoices } from "../../support/deletions/invoiceFixture.ts"
import * as Task from "../../support/deletions/tasks.ts"

const everything = { state: undefined, organization: undefined }

const find = (id: string) => Effect.map(Tasks.show({ id, organization: undefined }), Option.getOrUndefined)

layer(Made.layer, Task.onDatabase)("Tasks", (it) => {
  it.effect("counts tasks by state, with the first due time, without reading completed tasks", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* addTasks(5000, { organization_id: "'org_old'", state: "'completed'" })
      yield* sql`analyze deletion_tasks`
      const { result: counts, rows } = yield* readsOf("deletion_tasks", TaskCounts.counts(sql))
      assert.isBelow(rows, 200)
      assert.deepInclude(counts, { scheduled: 1, running: 1, dead: 1 })
      const [due] = yield* sql<{ at: Date }>`select min(due_at) as at from deletion_tasks`
      assert.closeTo(Date.parse(counts.oldest_due_at ?? ""), due?.at.getTime() ?? -1, 1)
    })
  )

  it.effect("makes a dead task due at once with all its attempts, however many replay it together", () =>
    Effect.gen(function* () {
      const id = yield* makeDead("org_c", "replayed")
      const dead = yield* find(id)
      const replayedAt = yield* Clock.currentTimeMillis
      const replay = Effect.result(Tasks.replay({ id, organization: "org_c" }))
      const replays = yield* Effect.replicateEffect(replay, 4, { concurrency: 4 })
      const notDead = Result.fail(new Tasks.NotChanged({ state: "scheduled" }))
      assert.sameDeepMembers<unknown>(replays, [Result.succeed("org_c"), notDead, notDead, notDead])
      const replayed = yield* find(id)
      const dueAt = DateTime.toEpochMillis(DateTime.makeUnsafe(replayed?.due_at ?? ""))
      assert.isAtLeast(dueAt, replayedAt)
      assert.isAtMost(dueAt, yield* Clock.currentTimeMillis)
      const fresh = { state: "scheduled", attempts: 0, due_at: replayed?.due_at ?? null, finished_at: null }
      assert.deepStrictEqual<unknown>(replayed, { ...dead, ...fresh })
      const claim = (yield* Task.claimAll()).find(({ taskId }) => taskId === id) ?? assert.fail("It is not due")
      assert.deepInclude(claim, { organization: "org_c", taskId: id, attempt: 1 })
      yield* Task.completes(claim)
      assert.deepInclude(yield* find(id), { state: "completed", attempts: 1, last_error: null })
    })
  )

  it.effect.each(State.literals)("lists the first of many %s tasks in order", (state) =>
    Effect.gen(function* () {
      const isOpen = state === "scheduled" || state === "running"
      // Some share a time.
      const time = "'2026-01-01'::timestamptz + n / 3 * interval '1 second'"
      const owned = { organization_id: "'org_many'", idempotency_key: "'many ' || n", state: `'${state}'` }
      yield* addTasks(101, { ...owned, scheduled_for: time, [isOpen ? "due_at" : "finished_at"]: time })
      for (const organization of [undefined, "org_many"]) {
        const rows = yield* Tasks.list({ state, organization }, 100)
        assert.strictEqual(new Set(rows.map(({ id }) => id)).size, 100)
        const times = rows.map(({ due_at, finished_at, scheduled_for }) =>
          organization === undefined ? (due_at ?? finished_at ?? "") : scheduled_for
        )
        assert.deepStrictEqual(times, times.toSorted().toReversed())
      }
      assert.isEmpty(yield* Tasks.list({ state, organization: "org_nobody" }, 100))
    })
  )

  it.effect("changes nothing that cannot be logged", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`alter table audit_log add constraint refused check (organization_id <> 'org_refused')`
      yield* Effect.flip(Commands.createKey({ organization: "org_refused", name: "k" }))
      yield* sql`alter table audit_log drop constraint refused`
      assert.deepStrictEqual(yield* ApiKeys.list("org_refused"), [])
    })
  )
})

/** The only task, without what identifies it, and the time of day of each of its times. */
const row = Effect.gen(function* () {
  const [{ id } = { id: "" }] = yield* Tasks.list(everything, 2)
  const task = Option.getOrThrow(yield* Tasks.show({ id, organization: undefined }))
  const times = ["received_at", "scheduled_for", "started_at", "finished_at"] as const
  const { attempts, last_error, outcome, state } = task
  return { attempts, last_error, outcome, state, times: times.map((name) => task[name]?.slice(11, 19)) }
})

/** The row of a task in a state, and when it was received, is due, started and ended. */
const rowOf = (state: State, times: string, fields: Partial<Effect.Success<typeof row>> = {}) => ({
  attempts: 1,
  last_error: null,
  outcome: null,
  state,
  times: times.split(" ").map((time) => (time === "-" ? undefined : time)),
  ...fields
})

/** Runs over a login that has the privileges of a role. */
const under = <A, E, R>(role: "api" | "intake" | "worker", work: Effect.Effect<A, E, R>) =>
  Effect.flatMap(loginOf(role), (login) =>
    Layer.mergeAll(Scheduler.layer(Task.delay), IntakeSecrets.layer, SenderTasks.layer).pipe(
      Layer.provideMerge(Layer.succeed(TaskDatabase, login)),
      Layer.fresh,
      (services) => Effect.provide(work, services)
    )
  )

const diesOf = (last_error: string) =>
  Effect.gen(function* () {
    const { fail } = yield* Scheduler
    let { claim } = yield* Task.claimed("key")
    while (claim.attempt < maximumAttempts) {
      yield* TestClock.adjust(Task.lease)
      claim = yield* Task.claimOne()
    }
    yield* TestClock.adjust(Task.lease)
    if (last_error === "The last reason") yield* fail(claim, last_error, Duration.zero)
    else yield* Task.claimAll()
    const dead = rowOf("dead", "09:30:00 09:31:00 09:31:00 09:31:08", { attempts: 8, last_error })
    assert.deepStrictEqual(yield* row, dead)
  })

Task.suite("the row of a task", {
  "has its times, attempts and outcome, and the last error until it is completed": Effect.gen(function* () {
    const { fail } = yield* Scheduler
    yield* Task.scheduled(Task.delivery("key"))
    assert.deepStrictEqual(yield* row, rowOf("scheduled", "09:30:00 09:31:00 - -", { attempts: 0 }))
    yield* TestClock.adjust("62 seconds")
    const first = yield* Task.claimOne()
    const times = "09:30:00 09:31:00 09:31:02"
    assert.deepStrictEqual(yield* row, rowOf("running", `${times} -`))
    const failed = { last_error: "The first reason" }
    yield* fail(first, failed.last_error, Duration.seconds(5))
    assert.deepStrictEqual(yield* row, rowOf("scheduled", `${times} -`, failed))
    yield* TestClock.adjust("5 seconds")
    const second = yield* Task.claimOne()
    assert.deepStrictEqual(yield* row, rowOf("running", `${times} -`, { ...failed, attempts: 2 }))
    yield* TestClock.adjust("3 seconds")
    yield* Task.completes(second)
    const outcome = outcomeOf({ invoices: { not_found: 1 } })
    assert.deepStrictEqual(yield* row, rowOf("completed", `${times} 09:31:10`, { attempts: 2, outcome }))
  }),
  "has the time and the reason of its death: its last failure": diesOf("The last reason"),
  "has the time and the reason of its death: the end of its last attempt": diesOf(
    "The worker stopped during the attempt"
  ),
  "is all that the role of the intake needs, with the secrets": under(
    "intake",
    Effect.gen(function* () {
      const { schedule } = yield* Scheduler
      const { of } = yield* IntakeSecrets
      const [first, second] = yield* Effect.all([
        schedule(Task.delivery("1")),
        schedule(Task.delivery("1")),
        of("org_a")
      ])
      assert.deepStrictEqual([first.status, second.status], ["scheduled", "duplicate"])
    })
  ),
  "is what the role of the data API may read, for its organization": Effect.gen(function* () {
    const { taskId } = yield* Task.scheduled(Task.delivery("read", undefined, "org_read"))
    const reading = Effect.flatMap(SenderTasks, ({ get, search }) =>
      Effect.all([search({ state: "scheduled" }, { limit: 1, offset: 0 }), get(taskId)])
    )
    const [[found], task] = yield* Effect.orDie(under("api", reading))
    assert.deepStrictEqual(found, task)
  }).pipe(Effect.provideService(CurrentOrganization, CurrentOrganization.of({ id: "org_read" }))),
  "is all that the role of the worker needs, with invoices and lines": Effect.gen(function* () {
    yield* seedInvoices
    yield* Task.scheduled(
      Task.delivery("1", { invoices: [{ invoice_id: "i1" }], invoice_lines: [{ invoice_line_id: "loose" }] })
    )
    yield* TestClock.adjust(Task.delay)
    const done = Effect.gen(function* () {
      const { fail, postpone } = yield* Scheduler
      yield* postpone(yield* Task.claimOne(), Duration.zero)
      yield* fail(yield* Task.claimOne(), "No", Duration.zero)
      yield* Task.completes(yield* Task.claimOne())
      const { steps } = yield* settler
      yield* steps(2)
      yield* Retention.empty(yield* DateTime.now, 1)
      yield* steps(2)
    })
    yield* under("worker", done)
  })
})
