import { setFlagsFromString, getHeapSpaceStatistics } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import * as Timeouts from "../../src/database/Timeouts.ts"

/** The garbage collector of V8. */
const collector = (): ((options: { readonly type: "minor" | "major" }) => void) => {
  setFlagsFromString("--expose-gc")
  return runInNewContext("gc")
}

const oldSpace = () =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === "old_space")?.space_used_size ?? 0

describe("Timeouts", () => {
  it.effect("expire in their order, each once, and not where they are cancelled", () =>
    Effect.gen(function* () {
      const start = yield* Timeouts.make
      const clock = yield* Clock.Clock
      const expired: Array<string> = []
      const set = (name: string, millis: number) => start(clock, millis, () => expired.push(name))
      set("a", 10)
      const cancelB = set("b", 10)
      set("c", 20)
      yield* TestClock.adjust("5 millis")
      set("d", 10)
      const cancelE = set("e", 10)
      cancelB()
      cancelB()
      yield* TestClock.adjust("5 millis")
      assert.deepStrictEqual(expired, ["a"])
      cancelE()
      yield* TestClock.adjust("10 millis")
      assert.deepStrictEqual(expired, ["a", "d", "c"])
      set("f", 10)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(expired, ["a", "d", "c", "f"])
    })
  )

  it.effect("what is cancelled goes with the young generation, whatever else has outlived it", () =>
    Effect.gen(function* () {
      const start = yield* Timeouts.make
      const clock = yield* Clock.Clock
      const collect = collector()
      const held: Array<() => void> = []
      const request = () => {
        const state = Array.from({ length: 1000 }, () => 0)
        held.push(start(clock, 1000, () => state.fill(1)))
        if (held.length > 16) held.shift()?.()
      }
      for (let count = 0; count < 100; count++) request()
      // Now what keeps the timeouts is old.
      collect({ type: "major" })
      const before = oldSpace()
      for (let count = 0; count < 5000; count++) {
        request()
        if (count % 50 === 0) collect({ type: "minor" })
      }
      // All of it has 40 MB.
      assert.isBelow(oldSpace() - before, 4_000_000)
    })
  )
})
