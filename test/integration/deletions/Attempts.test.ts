/** Attempts at tasks, over each scheduler, and the turns of organizations. */
import { assert } from "@effect/vitest"
import { Array, Duration, Effect } from "effect"
import { TestClock } from "effect/testing"
import { type Claim, Scheduler } from "../../../src/deletions/Scheduler.ts"
import { maximumAttempts } from "../../../src/deletions/Retries.ts"
import * as Task from "../../support/deletions/tasks.ts"

/** Schedules tasks of an organization, a millisecond apart. */
const backlog = (count: number, owner = "org_a") =>
  Effect.forEach(Array.range(1, count), (n) =>
    Effect.tap(Task.scheduled(Task.delivery(`key-${n}`, undefined, owner)), TestClock.adjust("1 milli"))
  )

/** Checks that a claim is void. */
const isSuperseded = (claim: Claim) => Effect.map(Task.runOne(claim), (outcome) => assert.isUndefined(outcome))

/** Checks that nothing is started until a time has passed, and one task then. */
const isStartedAfter = Effect.fnUntraced(function* (time: Duration.Duration) {
  yield* TestClock.adjust(Duration.subtract(time, Duration.millis(1)))
  assert.isEmpty(yield* Task.claimAll())
  yield* TestClock.adjust("1 milli")
  return yield* Task.claimOne()
})

Task.suiteOfEach("a task", {
  "is started when it is due, the oldest first": Effect.gen(function* () {
    const tasks = Task.idsOf(yield* backlog(40))
    yield* TestClock.adjust(Task.delay)
    assert.deepStrictEqual(Task.idsOf(yield* Task.claimAll(25)), tasks.slice(0, 25))
    assert.deepStrictEqual(Task.idsOf(yield* Task.claimAll()), tasks.slice(25))
  }),
  "is started by one of many workers at once": Effect.gen(function* () {
    yield* backlog(8)
    yield* TestClock.adjust(Task.delay)
    for (const attempt of [1, 2]) {
      const claims = (yield* Effect.replicateEffect(Task.claimAll(), 8, { concurrency: "unbounded" })).flat()
      assert.strictEqual(new Set(Task.idsOf(claims)).size, 8)
      const attempts = claims.map((claim) => claim.attempt)
      assert.deepStrictEqual(attempts, Array.replicate(attempt, 8))
      yield* TestClock.adjust(Task.lease)
    }
  }),
  "is taken over a second after its start, unless its row is locked": Effect.gen(function* () {
    const { claim } = yield* Task.claimed("1")
    const next = yield* isStartedAfter(Task.lease)
    assert.deepInclude(next, { taskId: claim.taskId, attempt: 2, isTakeover: true })
    assert.notStrictEqual(next.token, claim.token)
  }),
  "is completed by its worker, however late, unless another worker has it": Effect.gen(function* () {
    const { claim } = yield* Task.claimed("1")
    yield* TestClock.adjust("1 hour")
    yield* Task.completes(claim)
    yield* isSuperseded(claim)
    const { first, second } = yield* Task.takenOver("2")
    yield* isSuperseded(first)
    yield* Task.completes(second)
    yield* isSuperseded(first)
    yield* Task.isIdle
  }),
  "is not changed by a worker that has lost it, or has completed it": Effect.gen(function* () {
    const { fail, postpone } = yield* Scheduler
    const { first, second } = yield* Task.takenOver("1")
    yield* fail(first, "No", Duration.hours(1))
    yield* Task.completes(second)
    yield* fail(second, "No", Duration.zero)
    yield* postpone(second, Duration.zero)
    yield* Task.isIdle
  })
})

Task.suiteOfEach("an attempt", {
  "that failed is followed by another after the given time, unless it is the eighth": Effect.gen(function* () {
    const { fail, postpone } = yield* Scheduler
    let { claim } = yield* Task.claimed("1")
    for (let attempt = 1; attempt < 8; attempt++) {
      assert.strictEqual(claim.attempt, attempt)
      yield* fail(claim, "No", Duration.hours(1))
      yield* isSuperseded(claim)
      claim = yield* isStartedAfter(Duration.hours(1))
    }
    yield* fail(claim, "No", Duration.zero)
    yield* isSuperseded(claim)
    yield* postpone(claim, Duration.zero)
    yield* Task.isIdle
  }),
  "whose worker stops is the last if it is the eighth": Effect.gen(function* () {
    let { claim: last } = yield* Task.claimed("1")
    while (last.attempt < maximumAttempts) {
      yield* TestClock.adjust(Task.lease)
      last = yield* Task.claimOne()
    }
    yield* TestClock.adjust(Task.lease)
    assert.isEmpty(yield* Task.claimAll())
    yield* isSuperseded(last)
    yield* Task.isIdle
  }),
  "that was postponed does not count, however often": Effect.gen(function* () {
    const { postpone } = yield* Scheduler
    let { claim } = yield* Task.claimed("1")
    for (let time = 0; time < 2 * maximumAttempts; time++) {
      yield* postpone(claim, Duration.seconds(5))
      yield* isSuperseded(claim)
      claim = yield* isStartedAfter(Duration.seconds(5))
      assert.strictEqual(claim.attempt, 1)
    }
  }),
  "that was postponed after a takeover does not count, and the other worker keeps the task": Effect.gen(function* () {
    const { postpone } = yield* Scheduler
    const { first, second } = yield* Task.takenOver("1")
    yield* postpone(first, Duration.zero)
    yield* postpone(first, Duration.zero)
    assert.isEmpty(yield* Task.claimAll())
    yield* TestClock.adjust(Task.lease)
    assert.strictEqual((yield* Task.claimOne()).attempt, second.attempt)
    yield* isSuperseded(second)
  })
})

Task.suite("organizations take turns:", {
  "a due task is among the first, however many of another organization are older": Effect.gen(function* () {
    yield* backlog(40, "org_a")
    const { taskId } = yield* Task.scheduled(Task.delivery("honest", undefined, "org_m"))
    yield* backlog(5, "org_z")
    yield* TestClock.adjust(Task.delay)
    assert.include(Task.idsOf(yield* Task.claimAll(3)), taskId)
  }),
  "one of each, then the second of each, and within each the oldest go first": Effect.gen(function* () {
    const [tasks] = yield* Effect.all([backlog(30, "org_a"), backlog(30, "org_b"), backlog(2, "org_c")])
    yield* TestClock.adjust(Task.delay)
    const owners = (yield* Task.claimAll(12)).map(({ organization }) => organization)
    const three = ["org_a", "org_b", "org_c"]
    const two = ["org_a", "org_b"]
    assert.deepStrictEqual(owners, [...three, ...three, ...two, ...two, ...two])
    const { due } = yield* Scheduler
    const left = (yield* due(100)).filter(({ organization }) => organization === "org_a")
    assert.deepStrictEqual(Task.idsOf(left), Task.idsOf(tasks).slice(5))
  })
})
