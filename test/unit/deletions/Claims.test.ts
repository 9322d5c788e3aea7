/** Where a worker looks for due tasks. */
import { assert, describe, it } from "@effect/vitest"
import { DateTime, Duration, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { makeFloor } from "../../../src/deletions/Claims.ts"

/** Looks that find nothing, and since when they looked, in milliseconds. The first one takes a time. */
const looksOf = (first: Duration.Duration) => {
  const looks: Array<number> = []
  const floor = makeFloor((since) =>
    Effect.suspend(() =>
      looks.push(DateTime.toEpochMillis(since)) === 1 ? Effect.as(Effect.sleep(first), undefined) : Effect.undefined
    )
  )
  return { looks, floor }
}

const pause = Duration.hours(1)

/** Looks in which the process was paused, and the time of their begin. */
const paused = Effect.gen(function* () {
  const { floor, looks } = looksOf(pause)
  const begun = DateTime.toEpochMillis(yield* DateTime.now)
  const looking = yield* Effect.forkChild(floor.earliest)
  yield* TestClock.adjust(pause)
  yield* Fiber.join(looking)
  return { begun, floor, looks }
})

describe("A worker that was paused while it looked for due tasks", () => {
  it.effect("finds tasks that were scheduled during its pause", () =>
    Effect.gen(function* () {
      const { begun, floor, looks } = yield* paused
      yield* floor.earliest
      assert.isAtMost(looks[1] ?? Number.NaN, begun)
    })
  )

  it.effect("looks for all tasks again within a minute", () =>
    Effect.gen(function* () {
      const { floor, looks } = yield* paused
      yield* TestClock.adjust("1 minute")
      yield* floor.earliest
      assert.strictEqual(looks[1], 0)
    })
  )
})
