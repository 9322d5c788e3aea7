/** Claims, leases and attempts, over each scheduler, and the turns of organizations. */
import { assert } from "@effect/vitest"
import { Array, Duration, Effect } from "effect"
import { TestClock } from "effect/testing"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { sharedAttempts, maximumAttempts } from "../../../src/deletions/Retries.ts"
import {
  claimAll,
  claimed,
  claimOne,
  claimSome,
  completes,
  delay,
  delivery,
  idsOf,
  isIdle,
  isSuperseded,
  lease,
  postgres,
  scheduled,
  stores,
  suite,
  takenOver
} from "../../support/deletions/support.ts"

const keysOf = (count: number) => Array.makeBy(count, (index) => `key-${index}`)

/** Schedules tasks of an organization, a millisecond apart. */
const backlog = (count: number, owner = "org_a") =>
  Effect.forEach(keysOf(count), (key) =>
    Effect.tap(scheduled(delivery(key, undefined, owner)), TestClock.adjust("1 milli"))
  )

const attemptsOf = (claims: ReadonlyArray<{ readonly attempt: number }>) => claims.map(({ attempt }) => attempt)

const isLeased = Effect.map(claimAll(), (claims) => assert.isEmpty(claims))

const almost = (duration: Duration.Duration) => Duration.subtract(duration, Duration.millis(1))

/** Checks that no task is open, and that none is claimed later. */
const isFinished = Effect.gen(function* () {
  yield* isIdle
  yield* TestClock.adjust("365 days")
  assert.isEmpty(yield* claimAll())
})

/** Checks that nothing is claimed until a time has passed, and one task then. */
const isClaimedAfter = Effect.fnUntraced(function* (time: Duration.Duration) {
  yield* TestClock.adjust(almost(time))
  yield* isLeased
  yield* TestClock.adjust("1 milli")
  return yield* claimOne()
})

suite("a task", stores, {
  "is claimed once, the oldest first, up to the limit": Effect.gen(function* () {
    const tasks = idsOf(yield* backlog(40))
    yield* TestClock.adjust(delay)
    const claims = [yield* claimAll(25), yield* claimAll(10), yield* claimAll(10), yield* claimAll(10)]
    assert.deepStrictEqual(claims.map(idsOf), [tasks.slice(0, 25), tasks.slice(25, 35), tasks.slice(35), []])
  }),
  "is as old as the time of its next attempt": Effect.gen(function* () {
    const { fail } = yield* Scheduler
    const { claim } = yield* claimed("first")
    const second = yield* scheduled(delivery("second"))
    yield* fail(claim, "No", Duration.sum(delay, Duration.seconds(1)))
    yield* TestClock.adjust("1 hour")
    assert.deepStrictEqual(idsOf(yield* claimAll()), [second.taskId, claim.taskId])
  }),
  "that is due, or whose lease expired, is claimed by one of many workers at once": Effect.gen(function* () {
    yield* backlog(8)
    yield* TestClock.adjust(delay)
    for (const attempt of [1, 2]) {
      const claiming = Effect.replicateEffect(claimAll(3), 8, { concurrency: "unbounded" })
      const claims = [...(yield* claiming).flat(), ...(yield* claimAll())]
      assert.strictEqual(new Set(idsOf(claims)).size, 8)
      assert.deepStrictEqual(attemptsOf(claims), Array.replicate(attempt, 8))
      yield* TestClock.adjust(lease)
    }
  }),
  "belongs to its worker until the lease ends, which a renewal puts off from that moment": Effect.gen(function* () {
    const { renew } = yield* Scheduler
    const { claim } = yield* claimed("1")
    for (let beat = 0; beat < 3; beat++) {
      yield* TestClock.adjust(almost(lease))
      yield* isLeased
      yield* renew([claim], lease)
    }
    const next = yield* isClaimedAfter(lease)
    assert.deepInclude(next, { taskId: claim.taskId, attempt: 2, isTakeover: true })
    assert.notStrictEqual(next.token, claim.token)
  }),
  "with an expired lease is claimed up to a limit of its own, the first to expire first": Effect.gen(function* () {
    const { claim } = yield* Scheduler
    yield* backlog(3)
    yield* TestClock.adjust(delay)
    yield* claim({ due: 1 }, lease)
    const shorter = yield* claim({ due: 2 }, Duration.seconds(5))
    yield* Effect.forEach(["4", "5"], (key) => scheduled(delivery(key)))
    yield* TestClock.adjust(delay)
    assert.deepStrictEqual(attemptsOf(yield* claimSome({ due: 1 })), [1])
    assert.sameMembers(idsOf(yield* claimSome({ expired: 2 })), idsOf(shorter))
    assert.sameMembers(attemptsOf(yield* claimSome({ due: 1, expired: 100 })), [1, 2])
  }),
  "whose lease expired four times is claimed isolated": Effect.gen(function* () {
    const tasks = yield* backlog(3)
    yield* TestClock.adjust(delay)
    assert.lengthOf(yield* claimSome({ due: 100 }), 3)
    for (let attempt = 2; attempt <= sharedAttempts; attempt++) {
      yield* TestClock.adjust(lease)
      assert.isEmpty(yield* claimSome({ due: 100, isolated: 1 }))
      assert.deepStrictEqual(attemptsOf(yield* claimSome({ expired: 100 })), [attempt, attempt, attempt])
    }
    yield* TestClock.adjust(lease)
    assert.isEmpty(yield* claimSome({ due: 100, expired: 100 }))
    const isolated = yield* Effect.replicateEffect(claimSome({ isolated: 1 }), 3)
    assert.deepStrictEqual(isolated.map(attemptsOf), [[5], [5], [5]])
    assert.sameMembers(idsOf(isolated.flat()), idsOf(tasks))
  }),
  "is completed by its worker, though the lease has ended, unless another worker has it": Effect.gen(function* () {
    const { claim } = yield* claimed("1")
    yield* TestClock.adjust("1 hour")
    yield* completes(claim)
    yield* isSuperseded(claim)
    const { first, second } = yield* takenOver("2")
    yield* isSuperseded(first)
    yield* completes(second)
    yield* isSuperseded(first)
    yield* isFinished
  }),
  "is not changed by a worker that has lost it, or has completed it": Effect.gen(function* () {
    const { fail, release, renew, untilDue } = yield* Scheduler
    const { first, second } = yield* takenOver("1")
    yield* TestClock.adjust("1 second")
    const before = yield* untilDue
    yield* renew([first], Duration.hours(1))
    yield* fail(first, "No", Duration.hours(1))
    assert.deepStrictEqual(yield* untilDue, before)
    yield* completes(second)
    yield* renew([second], lease)
    yield* fail(second, "No", Duration.zero)
    yield* release(second)
    yield* isFinished
  }),
  "is waited for until its time, is claimed then, and waited for until its lease ends": Effect.gen(function* () {
    const { untilDue } = yield* Scheduler
    assert.isUndefined(yield* untilDue)
    const { taskId } = yield* scheduled(delivery("1"))
    yield* TestClock.adjust("2 seconds")
    assert.deepStrictEqual(yield* untilDue, Duration.seconds(58))
    const claim = yield* isClaimedAfter(Duration.seconds(58))
    assert.deepInclude(claim, { organization: "org_a", taskId, attempt: 1 })
    assert.deepStrictEqual(yield* untilDue, lease)
    yield* TestClock.adjust("1 minute")
    assert.deepStrictEqual(yield* untilDue, Duration.zero)
    yield* completes(claim)
    assert.isUndefined(yield* untilDue)
  })
})

suite("an attempt", stores, {
  "that failed is followed by another after the given time, unless it is the eighth": Effect.gen(function* () {
    const { fail, release } = yield* Scheduler
    let { claim } = yield* claimed("1")
    for (let attempt = 1; attempt < 8; attempt++) {
      assert.strictEqual(claim.attempt, attempt)
      yield* fail(claim, "No", Duration.hours(1))
      yield* isSuperseded(claim)
      claim = yield* isClaimedAfter(Duration.hours(1))
    }
    yield* fail(claim, "No", Duration.zero)
    yield* isSuperseded(claim)
    yield* release(claim)
    yield* isFinished
  }),
  "whose lease expires is the last if it is the eighth, unless its worker releases it after that": Effect.gen(
    function* () {
      const { fail, release, renew } = yield* Scheduler
      let { claim: last } = yield* claimed("1")
      while (last.attempt < maximumAttempts) {
        yield* TestClock.adjust(lease)
        last = yield* claimOne()
      }
      yield* TestClock.adjust(lease)
      yield* isLeased
      yield* renew([last], lease)
      yield* fail(last, "No", Duration.zero)
      yield* isSuperseded(last)
      yield* isFinished
      yield* release(last)
      yield* release(last)
      const again = yield* claimOne()
      assert.strictEqual(again.attempt, maximumAttempts)
      yield* completes(again)
      yield* isFinished
    }
  ),
  "that was released does not count, however often, and the task is due at once": Effect.gen(function* () {
    const { release } = yield* Scheduler
    let { claim } = yield* claimed("1")
    for (let time = 0; time < 2 * maximumAttempts; time++) {
      yield* release(claim)
      yield* isSuperseded(claim)
      claim = yield* claimOne()
      assert.strictEqual(claim.attempt, 1)
    }
  }),
  "that was released after a takeover, perhaps twice, does not count, and the task stays with the other worker":
    Effect.gen(function* () {
      const { release } = yield* Scheduler
      const { first, second } = yield* takenOver("1")
      yield* release(first)
      yield* release(first)
      yield* isLeased
      yield* TestClock.adjust(lease)
      assert.strictEqual((yield* claimOne()).attempt, second.attempt)
      yield* isSuperseded(second)
    })
})

const ownersOf = (claims: ReadonlyArray<{ readonly organization: string }>) =>
  claims.map(({ organization }) => organization)

suite("organizations take turns:", postgres, {
  "a due task is claimed by the third claim, however many of another organization are older": Effect.gen(function* () {
    for (const flood of ["org_a", "org_z"]) {
      yield* backlog(40, flood)
      const { taskId } = yield* scheduled(delivery("honest", undefined, `org_m beside ${flood}`))
      yield* TestClock.adjust(delay)
      const claims = (yield* Effect.replicateEffect(claimSome({ due: 8 }), 3)).flat()
      assert.include(idsOf(claims), taskId)
      yield* Effect.replicateEffect(claimSome({ due: 8 }), 4)
    }
  }),
  "they share the places of a claim equally, and within each the oldest go first": Effect.gen(function* () {
    const [tasks] = yield* Effect.all([backlog(30, "org_a"), backlog(30, "org_b"), backlog(2, "org_c")])
    yield* TestClock.adjust(delay)
    const claims = yield* Effect.replicateEffect(claimSome({ due: 12 }), 7)
    const equal = [...Array.replicate("org_a", 4), ...Array.replicate("org_b", 4), "org_c", "org_c"]
    // Turns begin with the first claim, or with the second one, which follows a full one.
    assert.deepInclude(
      claims.slice(0, 2).map((claim) => ownersOf(claim).toSorted()),
      equal
    )
    const ofOne = claims.flat().filter(({ organization }) => organization === "org_a")
    assert.deepStrictEqual(idsOf(ofOne), idsOf(tasks))
  }),
  "a worker may claim those of organizations that it has no task of": Effect.gen(function* () {
    yield* Effect.all([backlog(5, "org_a"), backlog(3, "org_b"), backlog(3, "org_c")])
    yield* TestClock.adjust(delay)
    const except = new Set(["org_a", "org_c"])
    assert.deepStrictEqual(ownersOf(yield* claimSome({ due: 8, except })), Array.replicate("org_b", 3))
    assert.isEmpty(yield* claimSome({ due: 8, except }))
  })
})
