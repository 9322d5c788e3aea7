/** Deliveries, and the two schedulers over which every rule of tasks is checked. */
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Layer, type Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { TestClock, TestConsole } from "effect/testing"
import { makeDelivery } from "../../../src/deletions/Delivery.ts"
import type { InvoiceDeletions } from "../../../src/api/IntakeApi.ts"
import type { CredentialDatabase, RecordDatabase, TaskDatabase } from "../../../src/database/Database.ts"
import * as MemoryScheduler from "../../../src/deletions/MemoryScheduler.ts"
import { type Claim, Scheduler, type SchedulerUnavailable } from "../../../src/deletions/Scheduler.ts"
import { isDistributed, TestDatabase } from "../TestDatabase.ts"
import { empty } from "./sessions.ts"

export const delay = Duration.minutes(1)

/** The time after which another worker takes a task over whose row is not locked. */
export const lease = Duration.seconds(1)

export const start = Date.parse("2026-01-31T09:30:00.000Z")

export const organization = "org_a"

/** A delivery; by default of an invoice that nobody has. */
export const delivery = (
  key: string,
  deletions: InvoiceDeletions = { invoices: [{ invoice_id: "invoice_1" }] },
  owner = organization
) => makeDelivery({ "idempotency-key": key, "x-organization-id": owner }, deletions)

/** Schedules what must be new. */
export const scheduled = Effect.fnUntraced(function* (given: ReturnType<typeof delivery>) {
  const { schedule } = yield* Scheduler
  const was = yield* schedule(given)
  const { taskId } = given
  return was.status === "scheduled" ? { taskId, receipt: was.receipt } : assert.fail(`A new task is ${was.status}`)
})

/** Starts what is due. A task that has no attempt left is dead. */
export const claimAll = Effect.fnUntraced(function* (limit = 100) {
  const { due, start: begin } = yield* Scheduler
  const started = yield* Effect.forEach(yield* due(limit), begin)
  return started.flatMap((each) => (each === undefined || each.isDead ? [] : [each]))
})

export const claimOne = Effect.fnUntraced(function* () {
  const [claim, ...others] = yield* claimAll()
  return claim === undefined || others.length > 0 ? assert.fail("Not one task is due") : claim
})

/** Schedules a task, by default of an invoice that nobody has, lets its time come, and claims it. */
export const claimed = Effect.fnUntraced(function* (key: string, deletions?: InvoiceDeletions) {
  const { receipt } = yield* scheduled(delivery(key, deletions))
  yield* TestClock.adjust(delay)
  return { receipt, claim: yield* claimOne() }
})

/** Delivers a deletion, lets its time come, and claims its task. */
export const claimedFor = (deletions: InvoiceDeletions, key = "1") =>
  Effect.map(claimed(key, deletions), ({ claim }) => claim)

/** Delivers a deletion, lets its time come, and runs it. Returns the id of its task. */
export const deleted = (key: string, deletions: InvoiceDeletions) =>
  Effect.flatMap(claimedFor(deletions, key), (claim) => Effect.as(completes(claim), claim.taskId))

/** Claims a task, and lets another worker take it over. */
export const takenOver = Effect.fnUntraced(function* (key: string) {
  const { claim: first } = yield* claimed(key)
  yield* TestClock.adjust(lease)
  return { first, second: yield* claimOne() }
})

/** Runs a task: its outcome, or why it has none; undefined if another worker has it. */
export const runOne = (claim: Claim) =>
  Effect.flatMap(Scheduler, ({ run }) => run(claim)).pipe(
    Effect.catchTags({
      TaskPostponed: ({ message }) => Effect.succeed({ postponed: message }),
      TaskFailed: ({ message }) => Effect.succeed({ failed: message })
    })
  )

/** True of a run that left rows which others hold. */
export const isPostponed = (outcome: Effect.Success<ReturnType<typeof runOne>>) =>
  outcome !== undefined && "postponed" in outcome

export const completes = (claim: Claim) =>
  Effect.map(runOne(claim), (outcome) => {
    if (outcome === undefined || !("invoices" in outcome))
      assert.fail(`It was not completed: ${JSON.stringify(outcome)}`)
  })

/** Checks that no task is open: none is due in a year. Nothing happens meanwhile. */
export const isIdle = Effect.gen(function* () {
  const { due } = yield* Scheduler
  yield* TestClock.setTime(start + Duration.toMillis("366 days"))
  assert.isEmpty(yield* due(1))
}).pipe(Effect.provide(Layer.fresh(TestClock.layer())))

export const idsOf = (tasks: ReadonlyArray<{ readonly taskId: string }>) => tasks.map(({ taskId }) => taskId)

/** A scheduler over Postgres, without any task. No time passes while a statement runs: the test's clock has it all. */
export const emptied = <A, E, R>(scheduler: Layer.Layer<A, E, R>) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* empty(sql)
      yield* sql`
        create or replace function public.clock_timestamp() returns timestamptz language sql stable
        return statement_timestamp()`
      return scheduler
    })
  )

export const layerPostgres = emptied(Scheduler.layer(delay))

/** How a database is shared by tests: its pool lives in real time. */
export const onDatabase = { excludeTestServices: true } as const

/** Lets a test have a clock of its own, and keeps what it logs. */
export const inItsOwnTime = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.andThen(TestClock.setTime(start), test).pipe(
    Effect.provide(Layer.fresh(Layer.merge(TestClock.layer(), TestConsole.layer)))
  )

/** What a test does with a scheduler. */
export type Check<A = unknown> = Effect.Effect<
  A,
  SchedulerUnavailable | SqlError,
  Scheduler | TestDatabase | CredentialDatabase | RecordDatabase | TaskDatabase | Scope.Scope
>

/** Checks rules over schedulers, each rule on a new one. `refused`: rules that several servers cannot run, with the reason. */
const suiteOver =
  (schedulers: Readonly<Record<string, Layer.Layer<Scheduler, SqlError, TestDatabase | TaskDatabase>>>) =>
  (name: string, rules: Readonly<Record<string, Check>>, refused: Readonly<Record<string, string>> = {}) =>
    layer(TestDatabase.layerDatabases, onDatabase)(name, (it) => {
      for (const [store, scheduler] of Object.entries(schedulers))
        for (const [rule, check] of Object.entries(rules)) {
          const reason = isDistributed() ? refused[rule] : undefined
          it.effect.skipIf(reason !== undefined)(`${rule} (${reason ?? store})`, () =>
            inItsOwnTime(Effect.provide(check, Layer.fresh(scheduler)))
          )
        }
    })

/** Rules of the scheduler over Postgres. */
export const suite = suiteOver({ "over Postgres": layerPostgres })

/** Rules of every scheduler. */
export const suiteOfEach = suiteOver({ "in memory": MemoryScheduler.layer(delay), "over Postgres": layerPostgres })
