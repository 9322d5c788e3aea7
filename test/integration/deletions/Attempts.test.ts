/**
 * The attempts of a task, by any scheduler: which count, which do not, and that a task is dead when all are used up.
 * Decisions: "Invoice deletion intake": fails 8 times; a database outage uses up no attempt.
 */
import { assert } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { TestClock } from "effect/testing"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import { maximumAttempts } from "../../../src/deletions/Task.ts"
import {
  almost,
  claimAll,
  claimed,
  claimOne,
  completes,
  isFinished,
  isSuperseded,
  lease,
  suite,
  takenOver
} from "../../support/deletions/support.ts"

/** Lets leases expire, one after the other, and claims the task again. */
const abandon = Effect.fnUntraced(function* (attempts: number) {
  for (let attempt = 0; attempt < attempts; attempt++) {
    yield* TestClock.adjust(lease)
    yield* claimOne()
  }
})

/** The last attempt of a task whose leases all expired. */
const lastClaim = Effect.gen(function* () {
  yield* claimed("1")
  yield* abandon(maximumAttempts - 2)
  yield* TestClock.adjust(lease)
  return yield* claimOne()
})

/** The last attempt of a task that is dead because that lease expired too. */
const deadByExpiry = Effect.gen(function* () {
  const last = yield* lastClaim
  yield* TestClock.adjust(lease)
  assert.isEmpty(yield* claimAll())
  return last
})

suite("a task", [
  [
    "that failed is due after the given time, as another attempt, and no longer its worker's",
    Effect.gen(function* () {
      const { fail } = yield* Scheduler
      const { claim } = yield* claimed("1")
      yield* fail(claim, "No", Duration.hours(1))
      yield* isSuperseded(claim)
      yield* TestClock.adjust(almost(Duration.hours(1)))
      assert.isEmpty(yield* claimAll())
      yield* TestClock.adjust("1 milli")
      const next = yield* claimOne()
      assert.strictEqual(next.attempt, 2)
      yield* completes(next)
    })
  ],
  [
    "is dead after 8 attempts that failed",
    Effect.gen(function* () {
      const { fail } = yield* Scheduler
      let { claim } = yield* claimed("1")
      for (let attempt = 1; attempt < maximumAttempts; attempt++) {
        assert.strictEqual(claim.attempt, attempt)
        yield* fail(claim, "No", Duration.zero)
        claim = yield* claimOne()
      }
      assert.strictEqual(claim.attempt, 8)
      yield* fail(claim, "No", Duration.zero)
      yield* isSuperseded(claim)
      yield* isFinished
    })
  ],
  [
    "is dead after 8 attempts whose lease expired",
    Effect.gen(function* () {
      yield* claimed("1")
      yield* abandon(maximumAttempts - 1)
      yield* TestClock.adjust(lease)
      assert.isEmpty(yield* claimAll())
      yield* isFinished
    })
  ],
  [
    "that is dead stays so, whatever the worker of its last attempt does",
    Effect.gen(function* () {
      const { fail, renew } = yield* Scheduler
      const last = yield* deadByExpiry
      yield* renew([last], lease)
      yield* fail(last, "No", Duration.zero)
      yield* isSuperseded(last)
      yield* isFinished
    })
  ],
  [
    "that failed for the last time is dead, also when its worker releases it after that",
    Effect.gen(function* () {
      const { fail, release } = yield* Scheduler
      const last = yield* lastClaim
      yield* fail(last, "No", Duration.zero)
      yield* release(last)
      yield* isFinished
    })
  ],
  [
    "that is dead because its last lease expired is tried again when the worker of that attempt releases it",
    Effect.gen(function* () {
      const { release } = yield* Scheduler
      const last = yield* deadByExpiry
      yield* release(last)
      yield* release(last)
      const again = yield* claimOne()
      assert.strictEqual(again.attempt, maximumAttempts)
      yield* completes(again)
      yield* isFinished
    })
  ],
  [
    "may still be completed in its eighth attempt",
    Effect.gen(function* () {
      yield* completes(yield* lastClaim)
      yield* isFinished
    })
  ],
  [
    "that is released is due at once, the attempt not counted, any number of times",
    Effect.gen(function* () {
      const { release } = yield* Scheduler
      let { claim } = yield* claimed("1")
      for (let time = 0; time < 2 * maximumAttempts; time++) {
        yield* release(claim)
        yield* isSuperseded(claim)
        claim = yield* claimOne()
        assert.strictEqual(claim.attempt, 1)
      }
      yield* completes(claim)
    })
  ],
  [
    "that another worker has taken over stays with that worker when the first one releases it, and that attempt does not count",
    Effect.gen(function* () {
      const { release } = yield* Scheduler
      const { first, second } = yield* takenOver("1")
      yield* release(first)
      assert.isEmpty(yield* claimAll())
      yield* TestClock.adjust(lease)
      assert.strictEqual((yield* claimOne()).attempt, second.attempt)
      yield* isSuperseded(second)
    })
  ],
  [
    "that was taken over has neither attempt counted when both workers release it",
    Effect.gen(function* () {
      const { release } = yield* Scheduler
      const { first, second } = yield* takenOver("1")
      yield* release(first)
      yield* release(second)
      assert.strictEqual((yield* claimOne()).attempt, 1)
    })
  ],
  [
    "may be released twice, by a worker whose first response was lost: one attempt does not count",
    Effect.gen(function* () {
      const { release } = yield* Scheduler
      const { second } = yield* takenOver("1")
      yield* release(second)
      yield* release(second)
      assert.strictEqual((yield* claimOne()).attempt, second.attempt)
    })
  ]
])
