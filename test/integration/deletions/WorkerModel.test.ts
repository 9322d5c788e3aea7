/**
 * Any schedule of deliveries, rounds, faults, kills and clock jumps against a small model: a task runs exactly once in effect with any number of workers, killed at any point; never before its time;
 * dead after 8 attempts; nothing is lost.
 */
import { assert, layer } from "@effect/vitest"
import { Arbitrary, Clock, DateTime, Effect, Fiber, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Scheduler, type SchedulerUnavailable, TaskFailed } from "../../../src/deletions/Scheduler.ts"
import type { Receipt } from "../../../src/deletions/Delivery.ts"
import { maximumAttempts } from "../../../src/deletions/Retries.ts"
import * as Worker from "../../../src/deletions/Worker.ts"
import { integer, oneOf } from "../../support/arbitraries.ts"
import { keepingTimes } from "../../../src/records/Rows.ts"
import { delivery, inItsOwnTime, layerPostgres, onDatabase } from "../../support/deletions/tasks.ts"
import { type Faults, faulty, unavailable } from "../../support/deletions/workerFixture.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { tries } from "../../support/tries.ts"

const keys = ["1", "2", "3", "4"] as const

const workers = [0, 1, 2] as const

/** Past a start, and past longer and longer backoffs. */
const Wait = Schema.TaggedStruct("Wait", { millis: Schema.Literals([1, 500, 1500, 20_000, 60_000]) })
const Work = Schema.TaggedStruct("Work", { worker: Schema.Literals(workers) })

const Event = Schema.Union([
  Schema.TaggedStruct("Deliver", { key: Schema.Literals(keys) }),
  Wait,
  // The clock of the machine is set, forward or back.
  Schema.TaggedStruct("Jump", { minutes: Schema.Literals([-10, -1, 2, 6]) }),
  Work
])

const Fault = Schema.Literals([
  "store does not answer",
  "response is lost",
  "worker is killed before",
  "worker is killed after",
  "task fails",
  "task meets a bug"
])
type Fault = typeof Fault.Type

/** What happens in calls, of which one in so many goes wrong: in calm times few do, in bad ones nearly all. */
const calls = Arbitrary.flatMap(Arbitrary.schema(Schema.Literals([1, 2, 3, 8])), (oneIn) =>
  Arbitrary.array(
    Arbitrary.flatMap(integer(1, oneIn), (one): Arbitrary.Arbitrary<Fault | "none"> =>
      one === 1 ? Arbitrary.schema(Fault) : Arbitrary.Constant("none")
    ),
    { minLength: 60, maxLength: 150 }
  )
)

/** Rounds and waits are what most schedules are made of, otherwise no task gets far. */
const [any, waiting, working] = [Arbitrary.schema(Event), Arbitrary.schema(Wait), Arbitrary.schema(Work)]
const event = oneOf<typeof Event.Type>(any, waiting, waiting, working, working)

/** Schedules: what is delivered at first, the events, and what happens in the calls of workers, in their order. */
const schedules = {
  delivered: Arbitrary.array(Arbitrary.schema(Schema.Literals(keys)), { minLength: 1, maxLength: 6 }),
  events: Arbitrary.array(event, { minLength: 15, maxLength: 40 }),
  faults: calls
}

/** An accepted task, and how often it was claimed. */
interface Tally {
  readonly receipt: Receipt
  readonly key: string
  claims: number
}

/** A store that keeps the tally of each task, and checks that it is not claimed too early or too often. */
const tallied = (scheduler: Scheduler["Service"], tallies: Map<string, Tally>): Scheduler["Service"] => ({
  ...scheduler,
  start: (task) =>
    Effect.tap(scheduler.start(task), (claim) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        if (claim === undefined || claim.isDead) return
        const tally = tallies.get(claim.taskId) ?? assert.fail(`Nobody delivered ${claim.taskId}`)
        // Once its time has come, setting the clock back does not take it away.
        if (tally.claims === 0) assert.isAtLeast(now, DateTime.toEpochMillis(tally.receipt.scheduled_for))
        assert.isAtMost(claim.attempt, maximumAttempts)
        tally.claims += 1
      })
    )
})

const real = Clock.Clock.defaultValue()
const sleep: Clock.Clock["sleep"] = (duration) => real.sleep(duration)

/** Lets statements time out in real time: a minute of the test passes while one runs. */
const inRealTime = <A, E, R>(statements: Effect.Effect<A, E, R>) =>
  Effect.updateService(statements, Clock.Clock, (clock) => Object.assign({}, clock, { sleep }))

/** A worker process, which is replaced by a new one when it is killed. */
const makeProcess = (scheduler: Scheduler["Service"], nextFault: () => Fault | "none") => {
  let running = 0
  let isKilled = false
  let worker: Fiber.Fiber<unknown, SchedulerUnavailable> | undefined
  const killed = Effect.suspend(() => {
    isKilled = true
    return Effect.interruptible(Effect.never)
  })
  const count = (by: number) => Effect.sync(() => void (running += by))
  /** Counts an effect among those that are under way. */
  const counted = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.acquireUseRelease(
      count(1),
      () => effect,
      () => count(-1)
    )
  const faults: Faults = {
    around: Effect.fnUntraced(function* (_, effect) {
      const happens = nextFault()
      if (happens === "store does not answer") return yield* unavailable
      if (happens === "worker is killed before") return yield* killed
      const result = yield* counted(inRealTime(effect))
      if (happens === "response is lost") return yield* unavailable
      if (happens === "worker is killed after") return yield* killed
      return result
    }),
    task: () =>
      Effect.suspend(() => {
        const happens = nextFault()
        if (happens === "task meets a bug") return Effect.die(new Error("A bug"))
        return happens === "task fails" ? Effect.fail(new TaskFailed({ message: "No" })) : Effect.void
      })
  }
  const start = Effect.provideService(Worker.run(2), Scheduler, faulty(scheduler, faults))
  return {
    /** Waits until it does nothing but wait for its time, and buries it if it was killed. */
    rests: Effect.gen(function* () {
      for (let turns = 0; turns < 20; turns++) {
        yield* Effect.yieldNow
        if (running > 0) turns = 0
      }
      if (!isKilled || worker === undefined) return
      // What it waits for may come later.
      yield* Effect.forkScoped(Fiber.interrupt(worker))
      worker = undefined
      isKilled = false
    }),
    /** Begins to work, unless it does. */
    work: Effect.gen(function* () {
      worker ??= yield* Effect.forkScoped(start, { startImmediately: true })
    })
  }
}

const deliver = Effect.fnUntraced(function* (tallies: Map<string, Tally>, key: string) {
  const { schedule } = yield* Scheduler
  const given = delivery(key, { invoices: [{ invoice_id: key }] })
  const first = tallies.get(given.taskId)
  const outcome = yield* schedule(given)
  if (first !== undefined) return assert.deepStrictEqual(outcome, { status: "duplicate", receipt: first.receipt })
  if (outcome.status !== "scheduled") return assert.fail(`Nobody delivered ${key} before`)
  tallies.set(given.taskId, { receipt: outcome.receipt, key, claims: 0 })
})

interface Given {
  readonly delivered: ReadonlyArray<string>
  readonly events: ReadonlyArray<typeof Event.Type>
  readonly faults: ReadonlyArray<Fault | "none">
}

/**
 * Plays a schedule, lets everything that is left come to its end, and checks that nothing was lost: each accepted task
 * was completed once, or is dead after all its attempts.
 */
const play = Effect.fnUntraced(function* (given: Given) {
  const { sql } = yield* TestDatabase
  yield* sql`truncate invoices, deletions`
  // They were changed far in the future, so that each deletion adds a microsecond.
  const insert = sql`
    insert into invoices (organization_id, id, created_at, updated_at)
    select 'org_a', n, '2026-01-01', '9000-01-01' from generate_series(1, 4) n`
  yield* keepingTimes(sql, insert)
  const open = sql`select from deletion_tasks where state in ('scheduled', 'running')`
  const hasEnded = Effect.map(open, ({ length }) => length === 0)

  const tallies = new Map<string, Tally>()
  const scheduler = tallied(yield* Scheduler, tallies)
  const left = [...given.faults]
  const processes = workers.map(() => makeProcess(scheduler, () => left.shift() ?? "none"))
  const of = (worker: number) => processes[worker] ?? assert.fail(`There is no worker ${worker}`)
  const rest = Effect.forEach(processes, ({ rests }) => rests, { discard: true })

  for (const key of given.delivered) yield* deliver(tallies, key)
  for (const { work } of processes) {
    yield* TestClock.adjust("19990 millis")
    yield* work
  }
  yield* TestClock.adjust("1 second")

  for (const now of given.events) {
    switch (now._tag) {
      case "Deliver":
        yield* deliver(tallies, now.key)
        break
      case "Wait":
        yield* TestClock.adjust(now.millis)
        break
      case "Jump":
        yield* TestClock.setTime((yield* Clock.currentTimeMillis) + now.minutes * 60_000)
        break
      case "Work":
        yield* of(now.worker).work
    }
    yield* rest
  }

  // All processes go on, through what else goes wrong, until nothing does and nothing is left to do. The first one is started
  // again where it was killed.
  for (let round = 0; round < 400 && !(yield* hasEnded); round++) {
    yield* of(0).work
    yield* TestClock.adjust(round < 20 ? "1 second" : "20 seconds")
    yield* rest
  }
  assert.isTrue(yield* hasEnded)
  // A worker that could not tell the store how an attempt ended tries it again in its time, and ends it before it stops.
  left.length = 0
  yield* TestClock.adjust("1 second")
  yield* rest
  for (const { key, claims } of tallies.values()) {
    const [row] = yield* sql<{ effects: number }>`
      select extract(microseconds from updated_at)::int as effects from invoices where id = ${key}`
    assert.isAtMost(row?.effects ?? 0, 1, `${key} had its effect more than once`)
    if (row?.effects !== 1) assert.isAtLeast(claims, maximumAttempts, `${key} is dead, and had attempts left`)
  }
})

layer(TestDatabase.layerDatabases, onDatabase)("workers", (test) => {
  for (const { often, options } of tries({ few: 2, many: 6, size: 60, maxShrinks: 50 }))
    test.effect.prop(
      `run each task once in effect, or until its death at 8 attempts, and never before its time${often}`,
      schedules,
      (given) => play(given).pipe(Effect.provide(Layer.fresh(layerPostgres)), Effect.scoped, inItsOwnTime),
      options
    )
})
