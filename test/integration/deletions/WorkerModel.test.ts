/**
 * Any schedule of deliveries, rounds, faults, kills, pauses and clock jumps against a small model, in memory and over
 * Postgres: a task runs exactly once in effect with any number of workers, killed at any point; never before its time;
 * dead after 8 attempts; nothing is lost.
 */
import { assert, it, layer } from "@effect/vitest"
import { Arbitrary, Clock, DateTime, Deferred, Duration, Effect, Exit, Fiber, Latch, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import * as MemoryScheduler from "../../../src/deletions/MemoryScheduler.ts"
import { Scheduler, type SchedulerUnavailable, TaskFailed } from "../../../src/deletions/Scheduler.ts"
import type { Receipt } from "../../../src/deletions/Delivery.ts"
import { maximumAttempts } from "../../../src/deletions/Retries.ts"
import * as Worker from "../../../src/deletions/Worker.ts"
import { integer } from "../../support/arbitraries.ts"
import { keepTimes, outcomeOf } from "../../support/deletions/invoiceFixture.ts"
import { delay, delivery, inItsOwnTime, isIdle, onDatabase, postgres } from "../../support/deletions/support.ts"
import { type Faults, faulty, unavailable } from "../../support/deletions/workerFixture.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { long, tries } from "../../support/tries.ts"

const keys = ["1", "2", "3", "4"] as const

const workers = [0, 1, 2] as const

/** Past the lease, and past longer and longer backoffs. */
const waits = [1500, 60_000, 300_000] as const

const Event = Schema.Union([
  Schema.TaggedStruct("Deliver", { key: Schema.Literals(keys), payload: Schema.Literals(["a", "a", "a", "b"]) }),
  Schema.TaggedStruct("Wait", { millis: Schema.Literals([1, 500, ...waits]) }),
  // The clock of the machine is set, forward or back.
  Schema.TaggedStruct("Jump", { minutes: Schema.Literals([-10, -1, 30, 600]) }),
  Schema.TaggedStruct("Work", { worker: Schema.Literals(workers) }),
  Schema.TaggedStruct("Resume", { worker: Schema.Literals(workers) })
])

const Fault = Schema.Literals([
  "store does not answer",
  "response is lost",
  "worker is killed before",
  "worker is killed after",
  "worker is paused before",
  "worker is paused after",
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
const event: Arbitrary.Arbitrary<typeof Event.Type> = Arbitrary.flatMap(integer(0, 7), (choice) =>
  choice < 2
    ? Arbitrary.schema(Event)
    : choice < 6
      ? Arbitrary.map(integer(0, 2), (n) => ({ _tag: "Work", worker: workers[n] ?? 0 }) as const)
      : Arbitrary.map(integer(0, 2), (n) => ({ _tag: "Wait", millis: waits[n] ?? 1500 }) as const)
)

/** Schedules: what is delivered at first, the events, and what happens in the calls of workers, in their order. */
const schedules = {
  delivered: Arbitrary.array(Arbitrary.schema(Schema.Literals(keys)), { minLength: 1, maxLength: 6 }),
  events: Arbitrary.array(event, { minLength: 40, maxLength: 120 }),
  faults: calls
}

/** An accepted task, and how often it was claimed. */
interface Tally {
  readonly receipt: Receipt
  readonly key: string
  readonly payload: string
  claims: number
}

const small: Worker.Options = { batch: 3, concurrency: 2, lease: Duration.millis(1500) }

/** A store that keeps the tally of each task, and checks that it is not claimed too early or too often. */
const tallied = (scheduler: Scheduler["Service"], tallies: Map<string, Tally>): Scheduler["Service"] => ({
  ...scheduler,
  claim: (limits, lease) =>
    Effect.tap(scheduler.claim(limits, lease), (claims) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        for (const { taskId, attempt } of claims) {
          const tally = tallies.get(taskId) ?? assert.fail(`Nobody delivered ${taskId}`)
          // Once its time has come, setting the clock back does not take it away.
          if (tally.claims === 0) assert.isAtLeast(now, DateTime.toEpochMillis(tally.receipt.scheduled_for))
          assert.isAtMost(attempt, maximumAttempts)
          tally.claims += 1
        }
      })
    )
})

/** A worker process: it may be paused, and is replaced by a new one when it is killed. */
const makeProcess = Effect.fnUntraced(function* (scheduler: Scheduler["Service"], nextFault: () => Fault | "none") {
  const latch = yield* Latch.make(true)
  const paused = { signal: yield* Deferred.make<void>() }
  const pause = Effect.andThen(
    latch.close,
    Effect.suspend(() => Deferred.succeed(paused.signal, undefined))
  )
  const faults: Faults = {
    around: Effect.fnUntraced(function* (_, effect) {
      const happens = nextFault()
      if (happens === "store does not answer") return yield* unavailable
      if (happens === "worker is killed before") return yield* Effect.interrupt
      if (happens === "worker is paused before") yield* pause
      yield* latch.await
      const result = yield* effect
      if (happens === "response is lost") return yield* unavailable
      if (happens === "worker is killed after") return yield* Effect.interrupt
      if (happens === "worker is paused after") yield* pause
      yield* latch.await
      return result
    }),
    task: () =>
      Effect.suspend(() => {
        const happens = nextFault()
        if (happens === "task meets a bug") return Effect.die(new Error("A bug"))
        return happens === "task fails" ? Effect.fail(new TaskFailed({ message: "No" })) : Effect.void
      })
  }
  const makeRound = Effect.provideService(Worker.makeRound(small), Scheduler, faulty(scheduler, faults))
  let { round } = yield* makeRound
  let working: Fiber.Fiber<number, SchedulerUnavailable> | undefined
  /** Waits until its round is over, or it is paused. */
  const roundEnds = Effect.gen(function* () {
    if (working === undefined) return
    yield* Effect.raceFirst(Fiber.await(working), Deferred.await(paused.signal))
    const exit = working.pollUnsafe()
    if (exit === undefined) return
    working = undefined
    if (Exit.hasDies(exit)) yield* exit
    if (Exit.hasInterrupts(exit)) ({ round } = yield* makeRound)
  })
  return {
    /** Has a round, unless it still has one. */
    work: Effect.gen(function* () {
      if (working !== undefined) return
      working = yield* Effect.forkScoped(round)
      yield* roundEnds
    }),
    /** Goes on where it was paused. */
    resume: Effect.gen(function* () {
      paused.signal = yield* Deferred.make<void>()
      yield* latch.open
      yield* roundEnds
    })
  }
})

const deliver = Effect.fnUntraced(function* (
  tallies: Map<string, Tally>,
  { key, payload }: { readonly key: string; readonly payload: string }
) {
  const { schedule } = yield* Scheduler
  const given = delivery(key, { invoices: [{ invoice_id: key }], invoice_lines: [{ invoice_line_id: payload }] })
  const first = tallies.get(given.taskId)
  const outcome = yield* schedule(given)
  if (first !== undefined) {
    const { receipt } = first
    const isSame = first.payload === payload
    return assert.deepStrictEqual(outcome, isSame ? { status: "duplicate", receipt } : { status: "key_reused" })
  }
  if (outcome.status !== "scheduled") return assert.fail(`Nobody delivered ${key} before`)
  tallies.set(given.taskId, { receipt: outcome.receipt, key, payload, claims: 0 })
})

/**
 * Plays a schedule, lets everything that is left come to its end, and checks that nothing was lost: each accepted task
 * was completed once, or is dead after all its attempts.
 *
 * @param effects how often a task has had its effect
 */
const play = Effect.fnUntraced(function* <E, R>(
  given: {
    readonly delivered: ReadonlyArray<string>
    readonly events: ReadonlyArray<typeof Event.Type>
    readonly faults: ReadonlyArray<Fault | "none">
  },
  effects: (key: string) => Effect.Effect<number, E, R>
) {
  const tallies = new Map<string, Tally>()
  const scheduler = tallied(yield* Scheduler, tallies)
  const left = [...given.faults]
  const nextFault = () => left.shift() ?? "none"
  const processes = yield* Effect.forEach(workers, () => makeProcess(scheduler, nextFault))
  const of = (worker: number) => processes[worker] ?? assert.fail(`There is no worker ${worker}`)

  for (const key of given.delivered) yield* deliver(tallies, { key, payload: "a" })
  for (const { work } of processes) {
    yield* TestClock.adjust("19990 millis")
    yield* work
  }
  yield* TestClock.adjust("1 second")

  for (const now of given.events) {
    switch (now._tag) {
      case "Deliver":
        yield* deliver(tallies, now)
        break
      case "Wait":
        yield* TestClock.adjust(now.millis)
        break
      case "Jump":
        yield* TestClock.setTime((yield* Clock.currentTimeMillis) + now.minutes * 60_000)
        break
      case "Work":
        yield* of(now.worker).work
        break
      case "Resume":
        yield* of(now.worker).resume
    }
  }

  // All processes go on, through what else goes wrong, until nothing does and nothing is left to do.
  for (let round = 0; round < 200; round++) {
    yield* Effect.forEach(processes, ({ resume }) => resume)
    const untilDue = yield* scheduler.untilDue
    if (untilDue === undefined) break
    yield* TestClock.adjust(Duration.sum(untilDue, Duration.millis(1)))
    yield* of(round % workers.length).work
  }
  yield* isIdle
  for (const { key, claims } of tallies.values()) {
    const had = yield* effects(key)
    assert.isAtMost(had, 1, `${key} had its effect more than once`)
    if (had === 0) assert.isAtLeast(claims, maximumAttempts, `${key} is dead, and had attempts left`)
  }
})

const rule = "each accepted task is run exactly once in effect, or dead after 8 attempts, and never before its time"

for (const { often, options } of tries({ few: 15, many: 150, size: 60, maxShrinks: 500 }))
  it.effect.prop(
    `in memory ${rule}${often}`,
    schedules,
    (given) =>
      Effect.suspend(() => {
        const runs = new Map<string, number>()
        const scheduler = MemoryScheduler.layer(delay, (_, { idempotencyKey: key }) =>
          Effect.sync(() => {
            runs.set(key, (runs.get(key) ?? 0) + 1)
            return outcomeOf({})
          })
        )
        return play(given, (key) => Effect.succeed(runs.get(key) ?? 0)).pipe(
          Effect.provide(Layer.fresh(scheduler)),
          Effect.scoped,
          inItsOwnTime
        )
      }),
    options
  )

const [overAll, overOne] = postgres

layer(TestDatabase.layerDatabases, onDatabase)("workers", (test) => {
  const bounds = { size: 60, maxShrinks: 50 }
  const ofAll = tries({ few: 4, many: 20, ...bounds }).map((each) => ({ ...overAll, ...each }))
  const ofOne = { ...overOne, often: "", options: { ...long, arbitrary: { runs: 15, ...bounds } } }
  for (const { often, options, scheduler, store } of [...ofAll, ofOne])
    test.effect.prop(
      `${store} ${rule}${often}`,
      schedules,
      (given) =>
        Effect.gen(function* () {
          const { sql } = yield* TestDatabase
          yield* sql`truncate invoices, deletions`
          // They were changed far in the future, so that each deletion adds a microsecond.
          yield* sql.withTransaction(
            Effect.andThen(
              keepTimes,
              sql`
                insert into invoices (organization_id, id, created_at, updated_at)
                select 'org_a', n, '2026-01-01', '9000-01-01' from generate_series(1, 4) n`
            )
          )
          const effects = (key: string) =>
            sql<{ effects: number }>`
              select extract(microseconds from updated_at)::int as effects from invoices where id = ${key}`
          yield* play(given, (key) => Effect.map(effects(key), ([row]) => row?.effects ?? 0))
        }).pipe(Effect.provide(Layer.fresh(scheduler)), Effect.scoped, inItsOwnTime),
      options
    )
})
