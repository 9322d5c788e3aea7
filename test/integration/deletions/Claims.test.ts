/**
 * Claiming tasks and what becomes of a claim, by any scheduler: when tasks are due, leases, attempts, and what a worker
 * may do that no longer holds its task. Decisions: "Invoice deletion intake".
 */
import { assert } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { TestClock } from "effect/testing"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { attemptsBesideOthers, maximumAttempts } from "../../../src/deletions/Task.ts"
import {
  almost,
  claimAll,
  claimed,
  claimOne,
  claimSome,
  completes,
  delay,
  delivery,
  idsOf,
  isFinished,
  isSuperseded,
  lease,
  scheduled,
  suite,
  takenOver
} from "../../support/deletions/support.ts"

/** Schedules tasks a second apart. */
const scheduledOneByOne = (keys: ReadonlyArray<string>) =>
  Effect.forEach(keys, (key) => Effect.tap(scheduled(delivery(key)), TestClock.adjust("1 second")))

suite("a task", [
  [
    "is claimed when its time has come, and not a millisecond earlier",
    Effect.gen(function* () {
      const { taskId } = yield* scheduled(delivery("1"))
      assert.isEmpty(yield* claimAll())
      yield* TestClock.adjust(almost(delay))
      assert.isEmpty(yield* claimAll())
      yield* TestClock.adjust("1 milli")
      const claim = yield* claimOne()
      assert.deepInclude(claim, { organization: "org_a", taskId, attempt: 1 })
    })
  ],
  [
    "is claimed in the order of due times, oldest first",
    Effect.gen(function* () {
      const keys = Array.from({ length: 40 }, (_, index) => `key-${index}`)
      const tasks = yield* scheduledOneByOne(keys)
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(idsOf(yield* claimAll(25)), idsOf(tasks.slice(0, 25)))
      assert.deepStrictEqual(idsOf(yield* claimAll(25)), idsOf(tasks.slice(25)))
    })
  ],
  [
    "that waits for another attempt is as old as that attempt's time",
    Effect.gen(function* () {
      const { fail } = yield* Scheduler
      const { claim } = yield* claimed("first")
      const second = yield* scheduled(delivery("second"))
      yield* fail(claim, "No", Duration.sum(delay, Duration.seconds(1)))
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(idsOf(yield* claimAll()), [second.taskId, claim.taskId])
    })
  ],
  [
    "is left for the next claim when there are more than the limit",
    Effect.gen(function* () {
      yield* scheduledOneByOne(["1", "2", "3", "4", "5"])
      yield* TestClock.adjust(delay)
      const claims = [yield* claimAll(2), yield* claimAll(2), yield* claimAll(2), yield* claimAll(2)]
      assert.deepStrictEqual(
        claims.map(({ length }) => length),
        [2, 2, 1, 0]
      )
      assert.strictEqual(new Set(idsOf(claims.flat())).size, 5)
    })
  ],
  [
    "is claimed by one of many workers that claim at once",
    Effect.gen(function* () {
      yield* scheduledOneByOne(["1", "2", "3", "4", "5", "6", "7", "8"])
      yield* TestClock.adjust(delay)
      const claims = yield* Effect.all(
        Array.from({ length: 8 }, () => claimAll(3)),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(new Set(idsOf(claims.flat())).size, claims.flat().length)
      assert.strictEqual(claims.flat().length + (yield* claimAll()).length, 8)
    })
  ],
  [
    "is its worker's until the lease ends, and then anyone's, as another attempt",
    Effect.gen(function* () {
      const { claim } = yield* claimed("1")
      yield* TestClock.adjust(almost(lease))
      assert.isEmpty(yield* claimAll())
      yield* TestClock.adjust("1 milli")
      const next = yield* claimOne()
      assert.deepInclude(next, { taskId: claim.taskId, attempt: 2 })
      assert.notStrictEqual(next.token, claim.token)
    })
  ],
  [
    "whose lease expired is claimed with as many others as there are, whatever is due beside them",
    Effect.gen(function* () {
      const old = yield* scheduledOneByOne(["1", "2", "3"])
      yield* TestClock.adjust(delay)
      yield* claimAll()
      const [first, second] = yield* scheduledOneByOne(["4", "5"])
      yield* TestClock.adjust(delay)
      assert.deepStrictEqual(idsOf(yield* claimSome({ due: 1 })), [first?.taskId])
      const expired = yield* claimSome({ expired: 2 })
      const claims = yield* claimSome({ due: 1, expired: 100 })
      const [last] = claims.filter(({ attempt }) => attempt === 2)
      assert.sameMembers(idsOf([...expired, ...(last === undefined ? [] : [last])]), idsOf(old))
      assert.deepStrictEqual(idsOf(claims.filter(({ attempt }) => attempt === 1)), [second?.taskId])
    })
  ],
  [
    "whose lease expired four times is claimed alone, since it may be what ended its workers",
    Effect.gen(function* () {
      const tasks = yield* scheduledOneByOne(["1", "2", "3"])
      yield* TestClock.adjust(delay)
      assert.lengthOf(yield* claimSome({ due: 100 }), 3)
      for (let attempt = 2; attempt <= attemptsBesideOthers; attempt++) {
        yield* TestClock.adjust(lease)
        assert.isEmpty(yield* claimSome({ due: 100, alone: 1 }))
        const claims = yield* claimSome({ expired: 100 })
        assert.deepStrictEqual(
          claims.map((claim) => claim.attempt),
          [attempt, attempt, attempt]
        )
      }
      yield* TestClock.adjust(lease)
      assert.isEmpty(yield* claimSome({ due: 100, expired: 100 }))
      const alone = [yield* claimSome({ alone: 1 }), yield* claimSome({ alone: 1 }), yield* claimSome({ alone: 1 })]
      assert.deepStrictEqual(
        alone.map((claims) => claims.map(({ attempt }) => attempt)),
        [[attemptsBesideOthers + 1], [attemptsBesideOthers + 1], [attemptsBesideOthers + 1]]
      )
      assert.sameMembers(idsOf(alone.flat()), idsOf(tasks))
    })
  ],
  [
    "that failed, however often, is claimed as any other that is due",
    Effect.gen(function* () {
      const { fail } = yield* Scheduler
      yield* scheduledOneByOne(["1"])
      yield* TestClock.adjust(delay)
      for (let attempt = 1; attempt < maximumAttempts; attempt++) {
        const [claim] = yield* claimSome({ due: 1 })
        assert.strictEqual(claim?.attempt, attempt)
        if (claim !== undefined) yield* fail(claim, "No", Duration.zero)
      }
    })
  ],
  [
    "stays its worker's when the lease is renewed, from that moment on",
    Effect.gen(function* () {
      const { renew } = yield* Scheduler
      const { claim } = yield* claimed("1")
      for (let beat = 0; beat < 3; beat++) {
        yield* TestClock.adjust(almost(lease))
        yield* renew([claim], lease)
      }
      yield* TestClock.adjust(almost(lease))
      assert.isEmpty(yield* claimAll())
      yield* TestClock.adjust("1 milli")
      assert.deepInclude(yield* claimOne(), { attempt: 2 })
    })
  ],
  [
    "is completed by its worker, also when the lease has ended and nobody has taken it over",
    Effect.gen(function* () {
      const { claim } = yield* claimed("1")
      yield* TestClock.adjust("1 hour")
      yield* completes(claim)
      yield* isSuperseded(claim)
      yield* isFinished
    })
  ],
  [
    "is completed by who has taken it over, before or after the first worker tries",
    Effect.gen(function* () {
      for (const tries of [true, false]) {
        const { first, second } = yield* takenOver(`key-${tries}`)
        if (tries) yield* isSuperseded(first)
        yield* completes(second)
        yield* isSuperseded(first)
      }
      yield* isFinished
    })
  ],
  [
    "is not changed by the renewal or failure of a worker that no longer holds it",
    Effect.gen(function* () {
      const { fail, renew, untilDue } = yield* Scheduler
      const { first, second } = yield* takenOver("1")
      yield* TestClock.adjust("1 second")
      const before = yield* untilDue
      yield* renew([first], Duration.hours(1))
      yield* fail(first, "No", Duration.hours(1))
      assert.deepStrictEqual(yield* untilDue, before)
      yield* completes(second)
    })
  ],
  [
    "that is completed stays so, whatever its worker says next",
    Effect.gen(function* () {
      const { fail, release, renew } = yield* Scheduler
      const { claim } = yield* claimed("1")
      yield* completes(claim)
      yield* renew([claim], lease)
      yield* fail(claim, "No", Duration.zero)
      yield* release(claim)
      yield* isSuperseded(claim)
      yield* isFinished
    })
  ],
  [
    "says how long until it wants a worker: until its time, then not at all, then until the lease ends",
    Effect.gen(function* () {
      const { untilDue } = yield* Scheduler
      assert.isUndefined(yield* untilDue)
      yield* scheduledOneByOne(["1", "2"])
      assert.deepStrictEqual(yield* untilDue, Duration.seconds(58))
      yield* TestClock.adjust("58 seconds")
      assert.deepStrictEqual(yield* untilDue, Duration.zero)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* untilDue, Duration.zero)
      const [first, second] = yield* claimAll()
      assert.deepStrictEqual(yield* untilDue, lease)
      if (first !== undefined) yield* completes(first)
      assert.deepStrictEqual(yield* untilDue, lease)
      if (second !== undefined) yield* completes(second)
      assert.isUndefined(yield* untilDue)
    })
  ]
])
