/** Attempts at tasks, over each scheduler, and the turns of organizations. */
import { assert } from "@effect/vitest"
import { Array, Duration, Effect } from "effect"
import { TestClock } from "effect/testing"
import { type Claim, Scheduler } from "../../../src/deletions/Scheduler.ts"
import { maximumAttempts } from "../../../src/deletions/Retries.ts"
import {
  claimAll,
  claimed,
  claimOne,
  completes,
  delay,
  delivery,
  idsOf,
  isIdle,
  runOne,
  lease,
  postgres,
  scheduled,
  stores,
  suite,
  takenOver
} from "../../support/deletions/support.ts"

/** Schedules tasks of an organization, a millisecond apart. */
const backlog = (count: number, owner = "org_a") =>
  Effect.forEach(Array.range(1, count), (n) =>
    Effect.tap(scheduled(delivery(`key-${n}`, undefined, owner)), TestClock.adjust("1 milli"))
  )

const attemptsOf = (claims: ReadonlyArray<{ readonly attempt: number }>) => claims.map(({ attempt }) => attempt)

/** Checks that a claim is void. */
const isSuperseded = (claim: Claim) => Effect.map(runOne(claim), (outcome) => assert.isUndefined(outcome))

/** Checks that nothing is started until a time has passed, and one task then. */
const isStartedAfter = Effect.fnUntraced(function* (time: Duration.Duration) {
  yield* TestClock.adjust(Duration.subtract(time, Duration.millis(1)))
  assert.isEmpty(yield* claimAll())
  yield* TestClock.adjust("1 milli")
  return yield* claimOne()
})

suite("a task", stores, {
  "is started when it is due, the oldest first": Effect.gen(function* () {
    const tasks = idsOf(yield* backlog(40))
    yield* TestClock.adjust(delay)
    assert.deepStrictEqual(idsOf(yield* claimAll(25)), tasks.slice(0, 25))
    assert.deepStrictEqual(idsOf(yield* claimAll()), tasks.slice(25))
  }),
  "is started by one of many workers at once": Effect.gen(function* () {
    yield* backlog(8)
    yield* TestClock.adjust(delay)
    for (const attempt of [1, 2]) {
      const claims = (yield* Effect.replicateEffect(claimAll(), 8, { concurrency: "unbounded" })).flat()
      assert.strictEqual(new Set(idsOf(claims)).size, 8)
      assert.deepStrictEqual(attemptsOf(claims), Array.replicate(attempt, 8))
      yield* TestClock.adjust(lease)
    }
  }),
  "is taken over a second after its start, unless its row is locked": Effect.gen(function* () {
    const { claim } = yield* claimed("1")
    const next = yield* isStartedAfter(lease)
    assert.deepInclude(next, { taskId: claim.taskId, attempt: 2, isTakeover: true })
    assert.notStrictEqual(next.token, claim.token)
  }),
  "is completed by its worker, however late, unless another worker has it": Effect.gen(function* () {
    const { claim } = yield* claimed("1")
    yield* TestClock.adjust("1 hour")
    yield* completes(claim)
    yield* isSuperseded(claim)
    const { first, second } = yield* takenOver("2")
    yield* isSuperseded(first)
    yield* completes(second)
    yield* isSuperseded(first)
    yield* isIdle
  }),
  "is not changed by a worker that has lost it, or has completed it": Effect.gen(function* () {
    const { fail, postpone } = yield* Scheduler
    const { first, second } = yield* takenOver("1")
    yield* fail(first, "No", Duration.hours(1))
    yield* completes(second)
    yield* fail(second, "No", Duration.zero)
    yield* postpone(second, Duration.zero)
    yield* isIdle
  })
})

suite("an attempt", stores, {
  "that failed is followed by another after the given time, unless it is the eighth": Effect.gen(function* () {
    const { fail, postpone } = yield* Scheduler
    let { claim } = yield* claimed("1")
    for (let attempt = 1; attempt < 8; attempt++) {
      assert.strictEqual(claim.attempt, attempt)
      yield* fail(claim, "No", Duration.hours(1))
      yield* isSuperseded(claim)
      claim = yield* isStartedAfter(Duration.hours(1))
    }
    yield* fail(claim, "No", Duration.zero)
    yield* isSuperseded(claim)
    yield* postpone(claim, Duration.zero)
    yield* isIdle
  }),
  "whose worker stops is the last if it is the eighth": Effect.gen(function* () {
    let { claim: last } = yield* claimed("1")
    while (last.attempt < maximumAttempts) {
      yield* TestClock.adjust(lease)
      last = yield* claimOne()
    }
    yield* TestClock.adjust(lease)
    assert.isEmpty(yield* claimAll())
    yield* isSuperseded(last)
    yield* isIdle
  }),
  "that was postponed does not count, however often": Effect.gen(function* () {
    const { postpone } = yield* Scheduler
    let { claim } = yield* claimed("1")
    for (let time = 0; time < 2 * maximumAttempts; time++) {
      yield* postpone(claim, Duration.seconds(5))
      yield* isSuperseded(claim)
      claim = yield* isStartedAfter(Duration.seconds(5))
      assert.strictEqual(claim.attempt, 1)
    }
  }),
  "that was postponed after a takeover does not count, and the other worker keeps the task": Effect.gen(function* () {
    const { postpone } = yield* Scheduler
    const { first, second } = yield* takenOver("1")
    yield* postpone(first, Duration.zero)
    yield* postpone(first, Duration.zero)
    assert.isEmpty(yield* claimAll())
    yield* TestClock.adjust(lease)
    assert.strictEqual((yield* claimOne()).attempt, second.attempt)
    yield* isSuperseded(second)
  })
})

suite("organizations take turns:", postgres, {
  "a due task is among the first, however many of another organization are older": Effect.gen(function* () {
    yield* backlog(40, "org_a")
    const { taskId } = yield* scheduled(delivery("honest", undefined, "org_m"))
    yield* backlog(5, "org_z")
    yield* TestClock.adjust(delay)
    assert.include(idsOf(yield* claimAll(3)), taskId)
  }),
  "one of each, then the second of each, and within each the oldest go first": Effect.gen(function* () {
    const [tasks] = yield* Effect.all([backlog(30, "org_a"), backlog(30, "org_b"), backlog(2, "org_c")])
    yield* TestClock.adjust(delay)
    const owners = (yield* claimAll(12)).map(({ organization }) => organization)
    const three = ["org_a", "org_b", "org_c"]
    const two = ["org_a", "org_b"]
    assert.deepStrictEqual(owners, [...three, ...three, ...two, ...two, ...two])
    const { due } = yield* Scheduler
    const left = (yield* due(100)).filter(({ organization }) => organization === "org_a")
    assert.deepStrictEqual(idsOf(left), idsOf(tasks).slice(5))
  })
})
